//! Time limits, reports and requests common to these tests.

use std::fmt::Display;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluicegate_tests::noise;
use sluicegate_tests::seed::Seed;

use crate::common::{Response, Server, eventually, now};

/// Maximum time until a change is in force in every process.
pub(crate) const IN_FORCE_MAX: Duration = Duration::from_secs(2);

/// True if the tests run in full size.
pub(crate) fn is_full() -> bool {
    std::env::var("SLUICEGATE_FAULTS").is_ok_and(|size| size == "full")
}

/// Chooses between the quick and the full size.
pub(crate) fn sized<T>(quick: T, full: T) -> T {
    if is_full() { full } else { quick }
}

/// Waits until a change made at `since` is in force, and fails the test if that took too long. Returns the time it
/// took; if it exceeds the limit, without the time that the scheduler withheld.
pub(crate) fn soon(what: &str, since: Instant, mut is_so: impl FnMut() -> bool) -> Duration {
    within(what, IN_FORCE_MAX, since, || is_so().then_some(()))
}

/// Like [`soon`], with another time limit.
pub(crate) fn within(
    what: &str,
    limit: Duration,
    since: Instant,
    look: impl FnMut() -> Option<()>,
) -> Duration {
    noise::listen();
    eventually(what, look);
    let took = now() - since;
    if took <= limit {
        return took;
    }
    let took = took.saturating_sub(noise::since(since.into()));
    assert!(took <= limit, "waited {took:?} for {what}, and at most {limit:?} is allowed");
    took
}

/// Fails a test whose fault never acted.
pub(crate) fn fired(what: &str, times: u64) {
    assert!(times > 0, "VACUOUS: {what} never happened");
}

/// Prints the result line of a test.
pub(crate) fn report(name: &str, seed: &Seed, fault: impl Display, measured: impl Display) {
    println!("{name}: seed {} | fault: {fault} | {measured}", seed.seed());
}

/// Formats a time in milliseconds.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Sets the flag when dropped, also by a panic: otherwise a scope would wait for its threads forever.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// ===== the service =====

/// Verdict on a request.
pub(crate) fn check(server: &Server, request: &Value) -> Value {
    let response = server.post_json("/v1/check", &request.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// Limit of an address; `None` if no rule applies. Spends no tokens.
pub(crate) fn limit_of_ip(server: &Server) -> Option<u64> {
    check(server, &json!({"ip": "203.0.113.77", "cost": 0}))["limit"].as_u64()
}

/// True if a user is blocked. Spends no tokens.
pub(crate) fn is_blocked(server: &Server, user_id: &str) -> bool {
    check(server, &json!({"user_id": user_id, "cost": 0}))["limit"] == 0
}

/// Sends a request to the administration, with a token if one is given.
pub(crate) fn ask(
    server: &Server,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Response {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.request(method, path, &headers, &body)
}

/// Sum of a metric over all its labels.
pub(crate) fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").body;
    let of_line = |line: &str| {
        let rest = line.strip_prefix("sluicegate_")?.strip_prefix(name)?;
        let is_it = rest.starts_with(' ') || rest.starts_with('{');
        is_it.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok()).flatten()
    };
    let values: Vec<_> = text.lines().filter_map(of_line).collect();
    assert!(!values.is_empty(), "no {name} in\n{text}");
    values.iter().sum()
}

/// Like [`metric`], as a whole number.
pub(crate) fn count(server: &Server, name: &str) -> u64 {
    metric(server, name) as u64
}

/// Resident memory of the process in bytes.
pub(crate) fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// Formats a number of bytes.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
