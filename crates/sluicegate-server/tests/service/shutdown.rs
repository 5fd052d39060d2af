//! Graceful shutdown: readiness fails first, then no new connections are accepted, and every request is answered.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;
use std::{io, thread};

use crate::common::{Client, Launch, Server, now};

const ENDING: &str = "shutting down: not ready any more";
const BODY: &str = r#"{"user_id":"1"}"#;

/// Sends a request without the end of its body.
fn begin(server: &Server) -> Client {
    let mut client = server.connect();
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{}",
        server.address,
        BODY.len(),
        &BODY[..4]
    );
    client.send(head.as_bytes()).unwrap();
    // Once a later request is answered, the first has arrived as well.
    assert_eq!(server.get("/livez").status, 200);
    client
}

#[test]
fn a_signal_ends_it_with_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let server = Server::start(&[]);
        let asked = now();
        server.signal(signal);
        let finished = server.wait();
        assert_eq!(finished.code, Some(0), "{signal}");
        assert!(now() - asked < Duration::from_secs(2), "{:?}", now() - asked);
        assert!(
            finished.stderr.contains("stopped: all requests were answered"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn requests_in_flight_are_answered() {
    let server = Server::start(&[]);
    let mut client = begin(&server);
    server.signal("TERM");
    server.wait_for_log(ENDING);
    client.send(&BODY.as_bytes()[4..]).unwrap();
    let response = client.read_response().unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.header("connection"), Some("close"));
    assert!(client.is_closed());
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn a_header_that_has_begun_may_end() {
    let server = Server::start(&["--shutdown-grace-ms", "0"]);
    let mut client = server.connect();
    client.send(b"GET /livez HTTP/1.1\r\nhost: local").unwrap();
    assert_eq!(server.get("/livez").status, 200);
    server.signal("TERM");
    server.wait_for_log(ENDING);
    client.send(b"host\r\n\r\n").unwrap();
    assert_eq!(client.read_response().unwrap().status, 200);
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn readiness_is_off_first_and_requests_are_still_taken() {
    let server = Server::start(&["--shutdown-grace-ms", "2000"]);
    let mut kept = server.connect();
    assert_eq!(kept.request("GET", "/readyz", &[], b"").unwrap().status, 200);
    server.signal("TERM");
    server.wait_for_log(ENDING);
    let response = kept.request("GET", "/readyz?verbose", &[], b"").unwrap();
    assert_eq!(response.status, 503);
    assert!(response.body.contains("[-]shutdown failed: shutting down after SIGTERM\n"));
    assert_eq!(response.header("connection"), Some("close"), "so that the client goes elsewhere");
    assert_eq!(server.get("/livez").status, 200);
    assert_eq!(server.post_json("/v1/check", BODY).status, 200);
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn quiet_connections_are_closed_and_do_not_hold_it_up() {
    let server = Server::start(&[]);
    let mut used = server.connect();
    assert_eq!(used.request("GET", "/livez", &[], b"").unwrap().status, 200);
    let mut silent = server.connect();
    let asked = now();
    server.signal("TERM");
    assert!(used.is_closed() && silent.is_closed());
    assert_eq!(server.wait().code, Some(0));
    assert!(now() - asked < Duration::from_secs(2), "{:?}", now() - asked);
}

#[test]
fn a_request_that_never_ends_does_not_hold_it_up_for_long() {
    let server = Server::start(&["--limits-body-timeout-ms", "60000"]);
    let _client = begin(&server);
    let asked = now();
    server.signal("TERM");
    let finished = server.wait();
    assert_eq!(finished.code, Some(0));
    assert!(now() - asked < Duration::from_secs(5), "{:?}", now() - asked);
    assert!(
        finished
            .stderr
            .contains("stopped: these connections were closed before they were answered"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = Server::start(&["--limits-body-timeout-ms", "60000"]);
    let _client = begin(&server);
    server.signal("TERM");
    server.wait_for_log(ENDING);
    let asked = now();
    server.signal("TERM");
    assert_eq!(server.wait().code, Some(128 + 15));
    assert!(now() - asked < Duration::from_secs(1), "{:?}", now() - asked);
}

/// T44: sends requests without pause over persistent connections, as a proxy does, until connecting fails.
fn ask_until_refused(server: &Server, answered: &AtomicUsize) -> io::Result<()> {
    while let Ok(mut client) = Client::connect(server.address) {
        let mut is_new = true;
        loop {
            match client.request(
                "POST",
                "/v1/check",
                &[("content-type", "application/json")],
                BODY.as_bytes(),
            ) {
                Ok(response) if response.status == 200 => {
                    answered.fetch_add(1, Relaxed);
                    if response.header("connection") == Some("close") {
                        break;
                    }
                }
                Ok(response) => return Err(io::Error::other(format!("{response:?}"))),
                // Connected while the listener closed: the request was never accepted.
                Err(_) if is_new => return Ok(()),
                Err(error) => return Err(error),
            }
            is_new = false;
        }
    }
    Ok(())
}

#[test]
fn nothing_is_dropped_under_load() {
    for _ in 0..3 {
        let server = Launch::serve(&[]).start();
        let (answered, has_ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let asking: Vec<_> =
                (0..8).map(|_| scope.spawn(|| ask_until_refused(&server, &answered))).collect();
            while answered.load(Relaxed) < 500 {
                thread::yield_now();
            }
            server.signal("TERM");
            for asker in asking {
                asker.join().unwrap().unwrap();
            }
            has_ended.store(true, Relaxed);
        });
        assert!(has_ended.load(Relaxed));
        let finished = server.wait();
        assert_eq!(finished.code, Some(0));
        assert!(
            finished.stderr.contains("stopped: all requests were answered"),
            "{}",
            finished.stderr
        );
    }
}
