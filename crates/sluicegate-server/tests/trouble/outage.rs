//! T33 while serving: PostgreSQL is killed, stopped or cut off. Checks are not affected, the administration answers
//! 503 in time, and changes made meanwhile are in force soon after.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluicegate_tests::proxy::{FaultProxy, Faults};
use sluicegate_tests::seed::Seed;

use crate::common::{Launch, Server, eventually, now, pause};
use crate::trouble::load::{ENEMY, Load, Shots};
use crate::trouble::place::{BY_USER, Place};
use crate::trouble::support::{
    ask, count, fired, is_blocked, limit_of_ip, metric, ms, report, sized, soon, within,
};

/// Timeout of the database in milliseconds.
pub(crate) const TIMEOUT_MS: u64 = 1000;
/// Additional time allowed for an answer.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);
/// Time of the measurement before the fault.
const BASE: Duration = Duration::from_millis(1500);

/// An outage under load.
pub(crate) struct Outage<'a> {
    pub(crate) name: &'a str,
    /// URL of the database.
    pub(crate) url: String,
    /// Duration of the outage.
    pub(crate) lasts: Duration,
}

impl Outage<'_> {
    /// Runs the outage. `begin` starts the fault; `end` ends it, sets the limit of addresses to 7, and returns the time
    /// at which both were done. `seen` counts how often the fault acted.
    pub(crate) fn endure(
        &self,
        begin: impl FnOnce(),
        end: impl FnOnce() -> Instant,
        seen: impl FnOnce() -> u64,
    ) {
        let seed = Seed::announce(self.name);
        let timeout = TIMEOUT_MS.to_string();
        let server = Launch::serve(&["--database-timeout-ms", &timeout])
            .env("SLUICEGATE_DATABASE_URL", &self.url)
            .start();
        let block = json!({"rule_id": BY_USER, "subject": ENEMY, "blocked": true});
        assert_eq!(ask(&server, "POST", "/v1/overrides", None, &block).status, 201);
        assert_eq!((is_blocked(&server, ENEMY), limit_of_ip(&server)), (true, Some(2)));

        let load = Load::start(&server, true);
        let started = now();
        pause(sized(BASE, Duration::from_secs(10)));
        let broken = now();
        begin();
        let noticed = eventually("the outage to be noticed", || {
            (metric(&server, "database_up") == 0.0).then(|| now() - broken)
        });
        let refused = admin_is_refused_in_time(&server);
        says_so(&server);
        pause(self.lasts.saturating_sub(now() - broken));
        let age = metric(&server, "rules_age_seconds");
        assert!(age >= (self.lasts - Duration::from_secs(1)).as_secs_f64() - 1.0, "{age}");
        let mended = end();
        let back = soon("the change", mended, || limit_of_ip(&server) == Some(7));
        eventually("the end of it to be noticed", || {
            (metric(&server, "database_up") == 1.0).then_some(())
        });
        administration_is_back(&server);
        let shots = load.stop();
        fired(self.name, seen());
        server.wait_for_log("the database answers again");
        let latency = latency(&shots, started, broken, mended);
        let measured = format!(
            "noticed in {}, administration refused in {}, change in force {} after the end; {latency}",
            ms(noticed),
            ms(refused),
            ms(back)
        );
        report(self.name, &seed, format_args!("{:?}", mended - broken), measured);
        assert_eq!(count(&server, "panics_total"), 0);
    }
}

/// Asserts that the administration answers 503 within the timeout. Returns the longest time it took.
pub(crate) fn admin_is_refused_in_time(server: &Server) -> Duration {
    let limit = Duration::from_millis(TIMEOUT_MS) + TIMEOUT_GRACE;
    let change = json!({"rule_id": BY_USER, "subject": "somebody", "unlimited": true});
    let calls = [("POST", "/v1/overrides", change), ("GET", "/v1/violations", Value::Null)];
    let times = calls.map(|(method, path, body)| {
        let started = now();
        let response = ask(server, method, path, None, &body);
        assert_eq!(response.status, 503, "{method} {path}: {response:?}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
        within("a refusal", limit, started, || Some(()))
    });
    times.into_iter().max().unwrap()
}

fn says_so(server: &Server) {
    let ready = server.get("/readyz?verbose");
    assert_eq!(ready.status, 200, "{ready:?}");
    let told = "[~]database degraded (does not affect readiness)\n    the database does not answer";
    assert!(ready.body.contains(told), "{}", ready.body);
    assert!(ready.body.contains("checks continue with the rules in force"), "{}", ready.body);
    server.wait_for_log("the database does not answer: checks continue with the rules in force");
}

fn administration_is_back(server: &Server) {
    let body = json!({"rule_id": BY_USER, "subject": "friend", "unlimited": true});
    eventually("the administration", || {
        (ask(server, "POST", "/v1/overrides", None, &body).status < 300).then_some(())
    });
    assert_eq!(check_friend(server), json!([]));
}

fn check_friend(server: &Server) -> Value {
    crate::trouble::support::check(server, &json!({"user_id": "friend"}))["tiers"].clone()
}

/// Latencies of checks before and during the outage. Fails only on a difference that a busy machine cannot explain.
pub(crate) fn latency(shots: &Shots, started: Instant, broken: Instant, mended: Instant) -> String {
    let of = |from, to| (shots.took(from, to, 500), shots.took(from, to, 990));
    let ((base_50, base_99), (during_50, during_99)) = (of(started, broken), of(broken, mended));
    fired("a check during the outage", shots.count(broken, mended) as u64);
    let most = base_99 * 10 + Duration::from_millis(250);
    assert!(during_99 <= most, "p99 {during_99:?} during the outage, {base_99:?} before");
    format!(
        "{} checks before, p50 {} p99 {}; {} during, p50 {} p99 {}",
        shots.count(started, broken),
        ms(base_50),
        ms(base_99),
        shots.count(broken, mended),
        ms(during_50),
        ms(during_99)
    )
}

#[test]
fn t33_postgres_killed() {
    let (postgres, place) = Place::own_postgres();
    let lasts = Duration::from_secs(sized(3, 30));
    let url = place.url();
    let outage = Outage { name: "T33 killed", url, lasts };
    let end = || {
        postgres.restart();
        place.set_by_ip(7);
        now()
    };
    // `endure` has waited for `database_up` to become 0, which only the fault can cause.
    outage.endure(|| postgres.kill(), end, || 1);
}

#[test]
fn t33_postgres_stopped() {
    let (postgres, place) = Place::own_postgres();
    let lasts = Duration::from_secs(sized(5, 30));
    let url = place.url();
    let outage = Outage { name: "T33 stopped", url, lasts };
    let end = || {
        postgres.resume();
        place.set_by_ip(7);
        now()
    };
    outage.endure(|| postgres.pause(), end, || 1);
}

#[test]
fn t33_postgres_in_a_black_hole() {
    let place = Place::postgres();
    let Place::Postgres { server: postgres, .. } = &place else { panic!("a server") };
    let proxy = FaultProxy::start(postgres.port());
    let lasts = Duration::from_secs(sized(5, 30));
    let url = place.url_through(proxy.port());
    let outage = Outage { name: "T33 black hole", url, lasts };
    let end = || {
        // Other clients still reach the database.
        place.set_by_ip(7);
        proxy.heal();
        now()
    };
    let begin = || proxy.set_both(Faults::BLACK_HOLE);
    outage.endure(begin, end, || proxy.counts().up.swallowed_bytes);
}

#[test]
fn t33_a_forgotten_transaction() {
    let place = Place::postgres();
    let lasts = Duration::from_secs(sized(4, 30));
    let url = place.url();
    let outage = Outage { name: "T33 idle in transaction", url, lasts };
    let hand = parking_lot::Mutex::new(place.hand());
    let begin = || {
        let lock = "BEGIN; LOCK TABLE rate_limit_generation, rate_limit_rules, rate_limit_violations \
                    IN ACCESS EXCLUSIVE MODE";
        hand.lock().sql(&format!("{lock}; {}", crate::trouble::place::set_by_ip(7)));
    };
    let end = || {
        hand.lock().sql("COMMIT");
        now()
    };
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    let seen = std::cell::Cell::new(0);
    let begin = || {
        begin();
        seen.set(place.number(idle));
    };
    outage.endure(begin, end, || seen.get());
}
