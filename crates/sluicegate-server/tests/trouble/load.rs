//! Continuous load of checks that asserts every verdict and measures the latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Client, Server, now, pause};

/// Number of client connections.
const CONNECTIONS: usize = 2;
/// Pause of a connection between two checks: the load measures latency, not throughput.
const BETWEEN: Duration = Duration::from_millis(3);

/// User blocked by an override; [`Load`] asserts that if `has_enemy` is set.
pub(crate) const ENEMY: &str = "enemy";

/// Load that runs until stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Shot>>>,
}

/// Time and duration of a check.
#[derive(Clone, Copy, Debug)]
struct Shot {
    sent: Instant,
    took: Duration,
}

/// All checks of a load.
#[derive(Debug)]
pub(crate) struct Shots(Vec<Shot>);

impl Load {
    /// Starts the load: every user is granted three checks and denied the fourth; the enemy is always denied.
    pub(crate) fn start(server: &Server, has_enemy: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |number: usize| {
            let (client, stop) = (server.connect(), Arc::clone(&stop));
            thread::spawn(move || fire(client, number, has_enemy, &stop))
        };
        Self { threads: (0..CONNECTIONS).map(start).collect(), stop }
    }

    /// Stops the load and returns its checks.
    ///
    /// # Panics
    ///
    /// If any verdict was wrong or missing.
    pub(crate) fn stop(self) -> Shots {
        self.stop.store(true, Ordering::Relaxed);
        let shots = self.threads.into_iter().flat_map(|thread| thread.join().unwrap());
        Shots(shots.collect())
    }
}

fn fire(mut client: Client, number: usize, has_enemy: bool, stop: &AtomicBool) -> Vec<Shot> {
    let mut shots = Vec::new();
    for user in 0_u64.. {
        let user_id = format!("load-{number}-{user}");
        for (allowed, remaining) in [(true, 2), (true, 1), (true, 0), (false, 0)] {
            let verdict = shoot(&mut client, &user_id, &mut shots);
            assert_eq!(
                (&verdict["allowed"], &verdict["remaining"], &verdict["limit"]),
                (&json!(allowed), &json!(remaining), &json!(3)),
                "{verdict}"
            );
        }
        if has_enemy {
            let verdict = shoot(&mut client, ENEMY, &mut shots);
            assert_eq!((&verdict["allowed"], &verdict["limit"]), (&json!(false), &json!(0)));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    shots
}

fn shoot(client: &mut Client, user_id: &str, shots: &mut Vec<Shot>) -> Value {
    pause(BETWEEN);
    let body = json!({"user_id": user_id}).to_string();
    let sent = now();
    let headers = [("content-type", "application/json")];
    let response = client.request("POST", "/v1/check", &headers, body.as_bytes()).unwrap();
    shots.push(Shot { sent, took: now() - sent });
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

impl Shots {
    /// Number of checks sent between these times.
    pub(crate) fn count(&self, from: Instant, to: Instant) -> usize {
        self.between(from, to).len()
    }

    /// Latency that `of_thousand` per mille of the checks did not exceed.
    pub(crate) fn took(&self, from: Instant, to: Instant, of_thousand: usize) -> Duration {
        let mut took = self.between(from, to);
        took.sort_unstable();
        let place = (took.len() * of_thousand).div_ceil(1000).saturating_sub(1);
        took.get(place).copied().unwrap_or_default()
    }

    fn between(&self, from: Instant, to: Instant) -> Vec<Duration> {
        let sent = self.0.iter().filter(|shot| (from..to).contains(&shot.sent));
        sent.map(|shot| shot.took).collect()
    }
}
