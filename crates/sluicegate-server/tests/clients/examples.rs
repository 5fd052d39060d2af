//! The programs in `examples/clients`: each is allowed, denied with a wait, waits, and is allowed again.

use crate::clients::program::{Program, root, serve};

/// Maximum number of attempts, each with a new service: on a slow machine a token may be refilled between two calls,
/// and nothing is denied.
const TRIES: usize = 5;

/// Expected output, without the waits.
const PRINTED: [&str; 5] =
    ["allowed, 2 left", "allowed, 1 left", "allowed, 0 left", "denied", "allowed, 0 left"];

fn waits_and_is_let_through(example: &str) {
    let source = root().join("examples/clients").join(example);
    let mut printed = String::new();
    for _ in 0..TRIES {
        let server = serve();
        printed = Program::new(&source).ask(&server).run();
        let lines: Vec<_> = printed.lines().map(without_wait).collect();
        let allowed = lines.iter().filter(|line| line.starts_with("allowed")).count();
        assert_eq!(allowed, 4, "{example}:\n{printed}");
        if lines == PRINTED {
            return;
        }
    }
    panic!("{example} never printed what it should, but:\n{printed}");
}

/// A line without its wait, if the wait is plausible.
fn without_wait(line: &str) -> &str {
    let Some(wait) = line.strip_prefix("denied, waiting ") else { return line };
    let milliseconds = wait.strip_suffix(" ms").and_then(|wait| wait.parse::<u64>().ok());
    let can_be = wait == "1 s" || milliseconds.is_some_and(|wait| (1..=1000).contains(&wait));
    if can_be { "denied" } else { line }
}

#[test]
fn python() {
    waits_and_is_let_through("python/redis_py.py");
    waits_and_is_let_through("python/http_check.py");
}

#[test]
fn node() {
    waits_and_is_let_through("node/node-redis.mjs");
    waits_and_is_let_through("node/ioredis.mjs");
    waits_and_is_let_through("node/fetch.mjs");
}

#[test]
fn go() {
    waits_and_is_let_through("go/redigo/main.go");
    waits_and_is_let_through("go/http/main.go");
}

#[test]
fn java() {
    waits_and_is_let_through("java/Check.java");
}

#[test]
fn php() {
    waits_and_is_let_through("php/phpredis.php");
    waits_and_is_let_through("php/predis.php");
}

#[test]
fn ruby() {
    waits_and_is_let_through("ruby/check.rb");
}

#[test]
fn rust() {
    waits_and_is_let_through("rust/check.rs");
}
