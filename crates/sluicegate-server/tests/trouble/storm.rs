//! T36: a storm of denials at the maximum rate of this machine. Rows are written at the configured rate, memory stays
//! bounded, and every denial is on record or counted as dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, thread};

use serde_json::{Value, json};
use sluicegate_tests::seed::Seed;

use crate::common::{Client, Server, now, pause};
use crate::trouble::place::Place;
use crate::trouble::support::{Stop, ask, count, fired, memory, metric, mib, ms, report, sized};

/// Number of requests in a batch.
const BATCH: u64 = 100;
/// Number of client connections.
const CONNECTIONS: u64 = 2;
/// One request in this many is of a frequent user.
const HOT_EVERY: u64 = 10;

/// Maximum time until pending violations are written or dropped.
const QUIET_MAX: Duration = Duration::from_secs(90);

/// Maximum lasting growth of memory by a storm: the ring of recent requests, pending violations, and memory that the
/// allocator keeps.
pub(crate) const GROWTH_MAX: u64 = 48 << 20;

/// Two rules that deny every request of the storm, whose cost is above their capacity; the second in shadow mode.
pub(crate) fn rules() -> Value {
    let rule = |rule_id: u64, mode: &str| {
        json!({
            "rule_id": rule_id, "key_pattern": format!("{mode}:{{user_id}}"), "tokens": 1, "period": "1d",
            "burst_capacity": 3, "mode": mode,
        })
    };
    json!({"rules": [rule(1, "enforce"), rule(2, "shadow")]})
}

/// Puts these rules in force.
pub(crate) fn prepare(server: &Server) {
    let done = ask(server, "PUT", "/v1/rules", None, &rules());
    assert_eq!(done.status, 200, "{done:?}");
}

/// Denials of a storm, as counted by the clients.
#[derive(Debug, Default)]
pub(crate) struct Storm {
    /// Number of requests denied by the first rule.
    denied: AtomicU64,
    /// Number of requests that the second rule would have denied.
    shadow: AtomicU64,
    /// Number of the next request; each is used once.
    next: AtomicU64,
}

/// Durations of the batches of one part of a storm.
#[derive(Debug)]
pub(crate) struct Gust {
    took: Vec<Duration>,
    lasted: Duration,
}

impl Storm {
    /// Causes denials for this time.
    pub(crate) fn blow(&self, server: &Server, lasts: Duration) -> Gust {
        self.blow_while(server, || pause(lasts))
    }

    /// Causes denials while `meanwhile` runs.
    pub(crate) fn blow_while(&self, server: &Server, meanwhile: impl FnOnce()) -> Gust {
        let (stop, started) = (AtomicBool::new(false), now());
        let took = thread::scope(|scope| {
            let start = |_| scope.spawn(|| self.blow_until(server.connect(), &stop));
            let threads: Vec<_> = (0..CONNECTIONS).map(start).collect();
            let stopping = Stop(&stop);
            meanwhile();
            drop(stopping);
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        Gust { took, lasted: now() - started }
    }

    fn blow_until(&self, mut client: Client, stop: &AtomicBool) -> Vec<Duration> {
        let mut took = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            let body = batch(first);
            let started = now();
            let headers = [("content-type", "application/json")];
            let answer = client.request("POST", "/v1/check/batch", &headers, body.as_bytes());
            took.push(now() - started);
            let answer = answer.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            let denied = answer.body.matches(r#""violated_rule":""#).count() as u64;
            let shadow = answer.body.matches(r#""mode":"shadow","allowed":false"#).count() as u64;
            assert_eq!((denied, shadow), (BATCH, BATCH), "{}", answer.body);
            self.denied.fetch_add(denied, Ordering::Relaxed);
            self.shadow.fetch_add(shadow, Ordering::Relaxed);
        }
        took
    }

    /// Number of violations.
    pub(crate) fn violations(&self) -> u64 {
        self.denied.load(Ordering::Relaxed) + self.shadow.load(Ordering::Relaxed)
    }

    /// Waits until no violation is pending, then asserts that violations on record and dropped ones add up exactly to
    /// the denials. `on_record` sums the counts in the database.
    pub(crate) fn all_is_accounted_for(
        &self,
        server: &Server,
        on_record: impl FnOnce() -> u64,
    ) -> Account {
        let started = now();
        let account = loop {
            let [dropped, written] = ["dropped", "written"]
                .map(|what| count(server, &format!("violations_{what}_total")));
            let waiting = metric(server, "violations_waiting_rows");
            if waiting == 0.0 && dropped + written >= self.violations() {
                break Account { violations: self.violations(), dropped, written };
            }
            let text = || server.get("/metrics").body;
            assert!(now() - started < QUIET_MAX, "{waiting} rows still wait in\n{}", text());
            pause(Duration::from_millis(50));
        };
        assert_eq!(count(server, "violations_noted_total"), account.violations);
        assert_eq!(account.written + account.dropped, account.violations, "{account}");
        assert_eq!(on_record(), account.written, "{account}");
        account
    }
}

/// Number of violations by outcome.
#[derive(Debug)]
pub(crate) struct Account {
    violations: u64,
    pub(crate) dropped: u64,
    written: u64,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { violations, dropped, written } = self;
        write!(f, "{violations} violations = {written} on record + {dropped} dropped")
    }
}

impl Gust {
    /// Percentile of the durations.
    pub(crate) fn took(&self, of_hundred: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        took.get(took.len() * of_hundred / 100).copied().unwrap_or_default()
    }
}

impl fmt::Display for Gust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = (self.took.len() as u64 * BATCH) as f64 / self.lasted.as_secs_f64();
        write!(
            f,
            "{per_second:.0} denials/s, batches p50 {} p99 {}",
            ms(self.took(50)),
            ms(self.took(99))
        )
    }
}

fn batch(first: u64) -> String {
    let member = |number: u64| {
        let user_id = match number % HOT_EVERY {
            0 => format!("hot{}", number / HOT_EVERY % 7),
            _ => format!("once{number}"),
        };
        json!({"user_id": user_id, "ip": "203.0.113.5", "endpoint": "/storm", "method": "POST", "cost": 9})
    };
    Value::Array((first..first + BATCH).map(member).collect()).to_string()
}

fn storm(place: &Place) {
    const ROWS_PER_SECOND: u64 = 100;
    const QUEUE_MAX: u64 = 300;
    let name = format!("T36 storm on {}", place.dialect());
    let seed = Seed::announce(&name);
    let (rows, queue) = (ROWS_PER_SECOND.to_string(), QUEUE_MAX.to_string());
    let settings = ["--audit-rows-per-second", &rows, "--audit-queue-max", &queue];
    let server = place.launch(&settings).start();
    prepare(&server);
    let storm = Storm::default();
    let started = now();
    storm.blow(&server, Duration::from_millis(800));
    let before = memory(&server);
    let (mut most_rows, mut most_waiting) = (0.0_f64, 0.0_f64);
    let lasts = Duration::from_secs(sized(4, 60));
    let mut hand = place.hand();
    let gust = storm.blow_while(&server, || {
        let until = now() + lasts;
        while now() < until {
            let rows = hand.number("SELECT count(*) FROM rate_limit_violations");
            let allowed = (now() - started).as_secs_f64() + 1.0;
            assert!(rows as f64 <= allowed * ROWS_PER_SECOND as f64, "{rows} rows in {allowed} s");
            most_rows = most_rows.max(rows as f64 / allowed);
            most_waiting = most_waiting.max(metric(&server, "violations_waiting_rows"));
            pause(Duration::from_millis(100));
        }
    });
    assert!(most_waiting <= QUEUE_MAX as f64, "{most_waiting} rows waited");
    let after = memory(&server);
    assert!(after <= before + GROWTH_MAX, "{} became {}", mib(before), mib(after));
    let remembered = ring_is_bounded(&server);
    let account = storm.all_is_accounted_for(&server, || hand.number(SUM));
    fired("a violation that found no room", account.dropped);
    let fault = format!("{gust}");
    let measured = format!(
        "{account}; at most {most_rows:.0} rows/s and {most_waiting} rows waiting; {remembered} requests \
         remembered; memory {} became {}",
        mib(before),
        mib(after)
    );
    report(&name, &seed, fault, measured);
    assert_eq!(count(&server, "panics_total"), 0);
}

/// SQL that sums all counts on record.
pub(crate) const SUM: &str =
    "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM rate_limit_violations";

/// Asserts that recent requests are recorded, and no more than the settings allow.
fn ring_is_bounded(server: &Server) -> u64 {
    let rule = json!({"rule": {"key_pattern": "p:{user_id}", "tokens": 1, "period": 1}});
    let preview = ask(server, "POST", "/v1/rules/preview", None, &rule);
    assert_eq!(preview.status, 200, "{preview:?}");
    let requests = preview.json()["requests"].as_u64().unwrap();
    assert!((1..=10_000).contains(&requests), "{requests}");
    requests
}

#[test]
fn t36_storm_on_sqlite() {
    storm(&Place::sqlite());
}

#[test]
fn t36_storm_on_postgres() {
    storm(&Place::postgres());
}
