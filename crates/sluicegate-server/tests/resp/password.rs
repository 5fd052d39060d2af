//! Authentication with a password.

use crate::common::{Launch, Server};
use crate::resp::support::{Reply, connect, words};

fn start() -> Server {
    Launch::serve(&[]).with_resp().env("SLUICEGATE_RESP_PASSWORD", "canary").start()
}

fn ok() -> Reply {
    Reply::Status("OK".to_owned())
}

#[test]
fn commands_before_authentication_are_rejected() {
    let server = start();
    let mut redis = connect(&server);
    for line in ["PING", "CL.THROTTLE k 1 1 1", "INFO", "CLIENT ID", "GET k", "SG.CHECK", "COMMAND"]
    {
        assert_eq!(redis.error(line), "NOAUTH Authentication required.", "{line}");
    }
    assert!(redis.error("HELLO 3").starts_with("NOAUTH HELLO must be called"));
    assert_eq!(redis.ask("RESET"), Reply::Status("RESET".to_owned()));
    assert!(redis.error("AUTH wrong").starts_with("WRONGPASS "));
    assert!(redis.error("AUTH somebody canary").starts_with("WRONGPASS "));
    assert_eq!(redis.ask("AUTH canary"), ok());
    assert_eq!(redis.numbers("CL.THROTTLE k 0 1 3600")[..3], [0, 1, 0]);
    assert_eq!(redis.ask("RESET"), Reply::Status("RESET".to_owned()));
    assert_eq!(redis.error("PING"), "NOAUTH Authentication required.");
    assert_eq!(redis.ask("AUTH default canary"), ok());
    assert_eq!(redis.ask("QUIT"), ok());
}

#[test]
fn hello_can_show_it() {
    let server = start();
    let mut redis = connect(&server);
    assert!(redis.error("HELLO 3 AUTH default wrong").starts_with("WRONGPASS "));
    let greeting = redis.ask("HELLO 3 AUTH default canary SETNAME me");
    assert_eq!(*greeting.get("proto"), Reply::Integer(3));
    assert_eq!(redis.ask("CLIENT GETNAME").text(), "me");
    // HELLO takes effect completely or not at all.
    let mut redis = connect(&server);
    let long = "x".repeat(321);
    assert!(
        redis.error(&format!("HELLO 3 AUTH default canary SETNAME {long}")).starts_with("ERR ")
    );
    assert_eq!(redis.error("PING"), "NOAUTH Authentication required.");
}

#[test]
fn limits_are_small_before_authentication() {
    let server = start();
    let long = "x".repeat(5000);
    let mut redis = connect(&server);
    assert!(redis.error(&format!("AUTH {long}")).starts_with("WRONGPASS "));
    // An oversized command is rejected before it has arrived.
    redis.send(format!("*2\r\n$4\r\nAUTH\r\n$60000\r\n{long}{long}").as_bytes());
    let refused = "ERR Protocol error: a command has more than 8192 bytes".to_owned();
    assert_eq!(redis.reply(), Reply::Error(refused));
    assert!(redis.is_closed());
    // After authentication the limits are larger.
    let mut redis = connect(&server);
    let echo = "x".repeat(60_000);
    redis.send(&[words("AUTH canary"), words(&format!("ECHO {echo}"))].concat());
    assert_eq!(redis.reply(), ok());
    assert_eq!(redis.reply().text(), echo);
}

#[test]
fn guessing_is_bounded_counted_and_not_logged() {
    let server = start();
    let mut redis = connect(&server);
    for _ in 0..8 {
        assert!(redis.error("AUTH guessed-password").starts_with("WRONGPASS "));
    }
    assert!(redis.is_closed());
    server.wait_for_log("connection closed: too many wrong passwords");
    let log = server.stderr();
    assert!(!log.contains("guessed-password") && !log.contains("canary"), "{log}");
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_resp_auth_failures_total 8\n"), "{metrics}");
}

#[test]
fn a_password_that_is_not_needed_is_taken() {
    let server = Launch::serve(&[]).with_resp().start();
    let mut redis = connect(&server);
    assert!(redis.error("AUTH x").starts_with("ERR AUTH <password> called without any password"));
    assert_eq!(redis.ask("AUTH default x"), ok());
    assert!(redis.error("AUTH somebody x").starts_with("WRONGPASS "));
}
