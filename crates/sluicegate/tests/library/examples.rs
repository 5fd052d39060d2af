//! The examples run, and print what they promise.

#[path = "../../examples/limit_by_key.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod limit_by_key;
#[path = "../../examples/plans.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod plans;
#[cfg(feature = "tokio")]
#[path = "../../examples/wait_for_tokens.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod wait_for_tokens;

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn limit_by_key_shows_who_must_wait() {
    let mut out = Vec::new();
    limit_by_key::run(&mut out).unwrap();
    assert_eq!(
        text(out),
        "203.0.113.9    attempt 1: ok, 2 left
203.0.113.9    attempt 2: ok, 1 left
203.0.113.9    attempt 3: ok, 0 left
203.0.113.9    attempt 4: too many, try again in 20 min
198.51.100.7   attempt 1: ok, 2 left
"
    );
}

#[test]
fn plans_shows_a_table() {
    let mut out = Vec::new();
    plans::run(&mut out).unwrap();
    assert_eq!(
        text(out),
        "user   plan  sent  allowed  stopped by      come back in
ann    free    40        5  user:{user_id}        12 min
bob    pro     40       20  user:{user_id}         3 min
carol          40        5  user:{user_id}        12 min
dave   pro     40       10  global                 2 min
"
    );
}

/// In real time: the limiter's clock is the machine's.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn wait_for_tokens_paces_its_work() {
    let mut out = Vec::new();
    wait_for_tokens::run(&mut out).await.unwrap();
    let text = text(out);
    let lines: Vec<&str> = text.lines().collect();
    let jobs = lines.iter().filter(|line| line.starts_with("job ")).count();
    assert_eq!((jobs, lines.len()), (6, 7), "{text}");
    let start = "a job that may wait 10 ms: ";
    assert!(lines[6].starts_with(start), "{text}");
}
