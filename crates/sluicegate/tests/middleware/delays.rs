//! Queues, on the runtime's paused time.

use std::time::Duration;

use http::StatusCode;
use sluicegate::middleware::RateLimitLayer;
use sluicegate::{Algorithm, Rule};
use tokio::time::Instant;

use crate::middleware::support::{call, get, guarded, ms, on_runtime_time, quota};

/// One every 100 ms, and at most 300 ms in the queue.
fn queue() -> Vec<Rule> {
    let quota = quota("10/s burst 100").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let quota = quota.with_max_wait(ms(300)).unwrap();
    vec![Rule::new(1, "global", quota).unwrap()]
}

#[tokio::test(start_paused = true)]
async fn a_queued_request_waits_for_its_turn() {
    let app = guarded(&RateLimitLayer::new(on_runtime_time(queue())));
    let started = Instant::now();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let app = app.clone();
            tokio::spawn(async move { (call(&app, get("/")).await.status(), started.elapsed()) })
        })
        .collect();
    let mut served = Vec::new();
    let mut denied = 0;
    for call in calls {
        match call.await.unwrap() {
            (StatusCode::OK, after) => served.push(after),
            (status, after) => {
                assert_eq!((status, after), (StatusCode::TOO_MANY_REQUESTS, Duration::ZERO));
                denied += 1;
            }
        }
    }
    assert_eq!(served, [ms(0), ms(100), ms(200), ms(300)]);
    assert_eq!(denied, 2, "the line is as long as it may be");
}

#[tokio::test(start_paused = true)]
async fn in_shadow_mode_no_request_waits() {
    let app = guarded(&RateLimitLayer::new(on_runtime_time(queue())).shadow());
    let started = Instant::now();
    for _ in 0..6 {
        assert_eq!(call(&app, get("/")).await.status(), StatusCode::OK);
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}
