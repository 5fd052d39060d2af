//! `OutgoingLayer`, on the runtime's paused time.

use std::time::Duration;

use http::{Request, Response};
use sluicegate::middleware::{OutgoingError, OutgoingLayer};
use sluicegate::{Algorithm, MemoryStore, Rule};
use tokio::time::{Instant, timeout};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use crate::middleware::support::{RuntimeClock, ms, on_runtime_time, quota, rule};

type Client = BoxCloneSyncService<Request<()>, Response<Duration>, OutgoingError<&'static str>>;

/// A client that answers with the time until it was called.
fn client(layer: &OutgoingLayer<MemoryStore<RuntimeClock>>) -> Client {
    let started = Instant::now();
    let send = move |request: Request<()>| async move {
        if request.uri().path() == "/broken" {
            Err("broken")
        } else {
            Ok(Response::new(started.elapsed()))
        }
    };
    BoxCloneSyncService::new(layer.layer(service_fn(send)))
}

async fn send(client: &Client, uri: &str) -> Result<Duration, OutgoingError<&'static str>> {
    let request = Request::get(uri).body(()).unwrap();
    client.clone().oneshot(request).await.map(Response::into_body)
}

fn paced(rules: Vec<Rule>, within: Duration) -> Client {
    client(&OutgoingLayer::new(on_runtime_time(rules), within))
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_their_turn() {
    let client = paced(vec![rule(1, "host:{host}", "10/s burst 2")], ms(1000));
    for expected in [0, 0, 100, 200, 300] {
        assert_eq!(send(&client, "http://a.example/x").await.unwrap(), ms(expected));
    }
    // Another host has its own limit, and one host in two spellings has one.
    assert_eq!(send(&client, "http://b.example/").await.unwrap(), ms(300));
    assert_eq!(send(&client, "http://A.Example/").await.unwrap(), ms(400));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_sent_in_time_fails_at_once_with_the_wait() {
    let client = paced(vec![rule(1, "global", "1/s")], ms(999));
    assert!(send(&client, "/").await.is_ok());
    let started = Instant::now();
    let error = send(&client, "/").await.unwrap_err();
    assert!(matches!(error, OutgoingError::TooLate { retry_after } if retry_after == ms(1000)));
    assert_eq!(error.to_string(), "longer than the maximum wait: retry in 1000 ms");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_can_never_be_sent_fails_at_once() {
    let layer =
        OutgoingLayer::new(on_runtime_time(vec![rule(1, "global", "1/s burst 5")]), Duration::MAX);
    let client = client(&layer.cost(|request| if request.uri.path() == "/huge" { 6 } else { 1 }));
    assert!(matches!(send(&client, "/huge").await, Err(OutgoingError::Never)));
    assert!(send(&client, "/").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_client_are_passed_on() {
    let client = paced(Vec::new(), ms(0));
    let error = send(&client, "/broken").await.unwrap_err();
    assert!(matches!(error, OutgoingError::Client("broken")));
    assert_eq!(error.to_string(), "broken");
}

#[tokio::test(start_paused = true)]
async fn attributes_are_to_be_chosen() {
    let layer =
        OutgoingLayer::new(on_runtime_time(vec![rule(1, "key:{key}", "10/s burst 1")]), ms(100));
    let client = client(&layer.attribute("key", |request| Some(request.uri.path().into())));
    for (path, expected) in [("/a", 0), ("/b", 0), ("/a", 100)] {
        assert_eq!(send(&client, path).await.unwrap(), ms(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_waited_for_within_the_same_time() {
    let queue = quota("10/s burst 100").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let client = paced(vec![Rule::new(1, "global", queue).unwrap()], ms(250));
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { send(&client, "/").await })
        })
        .collect();
    let mut sent = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            Ok(after) => sent.push(after),
            Err(OutgoingError::TooLate { retry_after }) => assert_eq!(retry_after, ms(300)),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(sent, [ms(0), ms(100), ms(200)], "who gave up does not stand in line");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_spends_nothing() {
    let client = paced(vec![rule(1, "global", "10/s burst 1")], ms(1000));
    assert!(send(&client, "/").await.is_ok());
    for _ in 0..20 {
        assert!(timeout(ms(1), send(&client, "/")).await.is_err());
    }
    assert_eq!(send(&client, "/").await.unwrap(), ms(100));
}

/// In real time: the limiter's clock is the machine's.
#[tokio::test]
async fn a_quota_for_every_host_needs_no_rules() {
    let layer = OutgoingLayer::per_host("1/hour".parse().unwrap(), ms(100));
    let service =
        layer.layer(service_fn(|_: Request<()>| async { Ok::<_, &str>(Response::new(())) }));
    let send = |uri: &'static str| service.clone().oneshot(Request::get(uri).body(()).unwrap());
    assert!(send("http://a.example/").await.is_ok() && send("http://b.example/").await.is_ok());
    let error = send("http://a.example/other").await.unwrap_err();
    let OutgoingError::TooLate { retry_after } = error else { panic!("{error}") };
    assert!(retry_after > Duration::from_secs(3500));
}
