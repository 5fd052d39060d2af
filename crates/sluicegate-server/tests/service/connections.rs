//! Slow, idle, excessive and hostile connections do not affect other clients.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::common::{Client, Launch, Server, eventually, now, pause};

/// Value of a metric without labels, requested over this connection.
fn metric(client: &mut Client, name: &str) -> u64 {
    let text = client.request("GET", "/metrics", &[], b"").unwrap().body;
    let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn impatient() -> Server {
    Server::start(&["--limits-header-timeout-ms", "300", "--limits-idle-timeout-ms", "60000"])
}

#[test]
fn headers_that_trickle_in_are_cut() {
    let server = impatient();
    let mut slow: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    let started = now();
    for client in &mut slow {
        client.send(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n").unwrap();
    }
    // A byte now and then does not extend the timeout.
    while now() - started < Duration::from_secs(2) {
        let is_any_open = slow.iter_mut().any(|client| client.send(b"x").is_ok());
        if !is_any_open {
            break;
        }
        pause(Duration::from_millis(20));
    }
    assert!(slow.iter_mut().all(|client| client.send(b"x").is_err()), "some are still open");
    assert_eq!(server.get("/livez").status, 200);
    eventually("the slots to be free", || {
        (metric(&mut server.connect(), "sluicegate_connections") == 1).then_some(())
    });
}

#[test]
fn connections_that_say_nothing_are_cut() {
    let server = impatient();
    let started = now();
    assert!(server.connect().is_closed());
    let took = now() - started;
    assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(5), "{took:?}");
    // The same with the beginning of an HTTP/2 preface.
    let mut maybe = server.connect();
    maybe.send(b"PRI * HT").unwrap();
    assert!(maybe.is_closed());
}

#[test]
fn a_second_header_has_its_timeout_too() {
    let server = impatient();
    let mut client = server.connect();
    client.request("GET", "/livez", &[], b"").unwrap();
    client.send(b"GET /livez HTTP/1.1\r\nhost:").unwrap();
    let started = now();
    assert!(client.is_closed());
    assert!(now() - started < Duration::from_secs(5), "{:?}", now() - started);
}

#[test]
fn between_requests_a_connection_may_be_quiet_but_not_for_ever() {
    let timeouts = ["--limits-header-timeout-ms", "100", "--limits-idle-timeout-ms", "1500"];
    let server = Server::start(&timeouts);
    let mut client = server.connect();
    assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    pause(Duration::from_millis(500));
    assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    let started = now();
    assert!(client.is_closed());
    let took = now() - started;
    assert!(took >= Duration::from_millis(1400) && took < Duration::from_secs(5), "{took:?}");
}

/// An idle connection releases its buffers, but not the bytes in them.
#[test]
fn a_header_that_came_with_the_request_before_is_not_lost() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /readyz HTT").unwrap();
    assert_eq!(client.read_response().unwrap().status, 200);
    pause(Duration::from_millis(300));
    client.send(b"P/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(client.read_response().unwrap().status, 200);

    // Nor does it bypass the header timeout.
    let server = impatient();
    let mut client = server.connect();
    client.send(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /readyz HTT").unwrap();
    assert_eq!(client.read_response().unwrap().status, 200);
    let started = now();
    assert!(client.is_closed());
    assert!(now() - started < Duration::from_secs(5), "{:?}", now() - started);
}

#[test]
fn many_requests_may_come_at_once() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send(&b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(20)).unwrap();
    for _ in 0..20 {
        assert_eq!(client.read_response().unwrap().status, 200);
    }
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    let server = Server::start(&["--limits-idle-timeout-ms", "500"]);
    let mut client = server.connect();
    // Requests more than all buffers hold, and does not read the answers.
    let asking = std::thread::spawn(move || {
        let request = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
        for _ in 0..100_000 {
            if client.send(&request).is_err() {
                return;
            }
        }
        panic!("the service takes requests for ever");
    });
    asking.join().unwrap();
    assert_eq!(server.get("/livez").status, 200);
    eventually("the slot to be free", || {
        (metric(&mut server.connect(), "sluicegate_connections") == 1).then_some(())
    });
}

#[test]
fn beyond_the_limit_the_longest_idle_connection_makes_room() {
    let server = Server::start(&["--limits-connections-max", "4"]);
    let mut held: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut held {
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
        pause(Duration::from_millis(5));
    }
    let mut newcomer = server.connect();
    assert_eq!(newcomer.request("GET", "/livez", &[], b"").unwrap().status, 200);
    assert!(held.remove(0).is_closed());
    for client in &mut held {
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    }
    let name = "sluicegate_connections_evicted_total{listener=\"http\"}";
    assert_eq!(metric(&mut newcomer, name), 1);
    server.wait_for_log(
        "idle connection closed: its network has the most, and limits.connections_max is near",
    );
}

#[test]
fn connections_of_trusted_proxies_are_refused_beyond_the_limit_and_never_evicted() {
    let server =
        Server::start(&["--limits-connections-max", "4", "--proxies-trusted", "127.0.0.0/8"]);
    let mut held: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut held {
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    }
    for _ in 0..3 {
        assert!(server.connect().is_closed());
    }
    // Open connections are not affected, and a closed one frees its slot.
    assert_eq!(held[0].request("GET", "/livez", &[], b"").unwrap().status, 200);
    drop(held.pop());
    eventually("room", || server.connect().request("GET", "/livez", &[], b"").ok());
    assert!(metric(&mut held[0], "sluicegate_connections_refused_total") >= 3);
}

#[test]
fn no_more_connections_are_held_than_there_are_descriptors_for() {
    let server = Launch::serve(&[]).after_shell("ulimit -n 200").start();
    let line = server.wait_for_log(
        "fewer descriptors than limits.connections_max needs: raise the limit of open files",
    );
    assert_eq!(line["fitting"], 136, "{line}");
    let held: Vec<Client> = (0..300).map(|_| server.connect()).collect();
    assert_eq!(server.get("/livez").status, 200);
    assert!(!server.stderr().contains("cannot accept"), "{}", server.stderr());
    drop(held);
}

/// T39: a failed accept must not end the listener (compare RUSTSEC-2024-0376).
#[test]
fn it_survives_being_out_of_file_descriptors() {
    let server = Server::start(&[]);
    // From here on: enough for some dozens of connections.
    let few = Rlimit { current: Some(64), maximum: Some(64) };
    prlimit(Pid::from_raw(server.pid() as i32), Resource::Nofile, few).unwrap();
    let mut held: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    server.wait_for_log("cannot accept connections");
    assert_eq!(held[0].request("GET", "/livez", &[], b"").unwrap().status, 200);
    drop(held);
    let freed = now();
    assert_eq!(server.get("/livez").status, 200);
    assert!(now() - freed < Duration::from_secs(1), "{:?}", now() - freed);
    server.wait_for_log("connections are accepted again");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn headers_have_bounds() {
    let server = Server::start(&[]);
    let many: String = (0..130).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "x".repeat(65 * 1024));
    for headers in [many, long] {
        let mut client = server.connect();
        let request = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        // The answer may arrive before the whole request is sent.
        let _ = client.send(request.as_bytes());
        let answer = client.read_to_end();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert_eq!(server.get("/livez").status, 200);
    }
    // Many and long fields, as proxies forward them, are accepted.
    let long = "x".repeat(400);
    let some: Vec<_> = (0..120).map(|n| (format!("x-{n}"), long.as_str())).collect();
    let some: Vec<_> = some.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(server.request("GET", "/livez", &some, "").status, 200);
}

#[test]
fn malformed_requests_are_rejected_and_end_nothing() {
    let server = Server::start(&[]);
    for nonsense in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\r\n\r\n\r\n\r\nhello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame, though it looks like one to some",
        b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut client = server.connect();
        client.send(nonsense).unwrap();
        let answer = client.read_to_end();
        assert!(!answer.starts_with("HTTP/1.1 5"), "{answer}");
    }
    assert_eq!(server.get("/livez").status, 200);
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}
