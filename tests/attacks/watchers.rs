//! Attempts to keep others from watching.

use std::net::{IpAddr, TcpStream};

use crate::common::{Launch, Server, eventually};
use crate::sockets::{ATTACKER, NEWCOMER, ask, connect};

/// Requests a stream, and returns it with the status and the text of the answer's beginning.
fn watch(server: &Server, from: IpAddr, token: &str) -> (TcpStream, u16, String) {
    let mut stream = connect(from, server.address).unwrap();
    let request = format!(
        "GET /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    // The first event, or the detail of the problem.
    let answer = match ask(&mut stream, request.as_bytes(), "data: ") {
        Ok(answer) => answer,
        Err(error) => error.to_string(),
    };
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (stream, status.unwrap_or_default(), answer)
}

/// Opens as many streams as are accepted, of 64 requested; the last answer must be a 429 that names the limit.
fn take_all(server: &Server, from: IpAddr, token: impl Fn(usize) -> String) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for n in 0..64 {
        let (stream, status, answer) = watch(server, from, &token(n));
        if status == 200 {
            held.push(stream);
            continue;
        }
        assert_eq!(status, 429, "{answer}");
        assert!(answer.contains("has 16 watchers, the maximum"), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
    eprintln!("  {from} holds {} of 64 streams", held.len());
    held
}

#[test]
fn a15_one_address_does_not_take_all_streams_of_events() {
    let server = Launch::serve(&[]).start();
    // Where no token is needed, a made-up one makes no other client.
    let held = take_all(&server, ATTACKER, |n| format!("made-up-{n}"));
    assert_eq!(held.len(), 16);
    let (_stream, status, answer) = watch(&server, NEWCOMER, "none");
    assert_eq!(status, 200, "{answer}");
    drop(held);
    eventually("the share to be free", || {
        (watch(&server, ATTACKER, "none").1 == 200).then_some(())
    });
}

#[test]
fn a15_one_token_does_not_take_all_streams_of_events() {
    const ADMIN: &str = "correct-horse-battery-staple";
    let server = Launch::serve(&["--database-url", "sqlite:rules.db"])
        .env("SLUICEGATE_ADMIN_TOKEN", ADMIN)
        .start();
    let database = format!("sqlite:{}", server.folder().join("rules.db").display());
    let create = ["tokens", "create", "reader", "--role", "read", "--database", &database];
    let created = Launch::new(&create).run();
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let held = take_all(&server, ATTACKER, |_| ADMIN.to_owned());
    assert_eq!(held.len(), 16);
    // The share is the token's, from whatever address.
    assert_eq!(watch(&server, NEWCOMER, ADMIN).1, 429);
    // Another token has its own, from the same address.
    let reader = created.stdout.trim();
    eventually("the new token", || (watch(&server, ATTACKER, reader).1 == 200).then_some(()));
}
