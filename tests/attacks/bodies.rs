//! Bodies that cost more than they should.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::Duration;

use sluicegate_tests::hostile::{self, BATCH, Body, GRPC};

use crate::common::{Client, Launch, PATIENCE, Server, eventually, now, pause, suite_line};
use crate::http2::{Attacker, DATA, END_HEADERS, END_STREAM, HEADERS, fields, frame};
use crate::sockets::{ATTACKER, NEWCOMER, ask, connect, metric};

/// A hostile batch may cost at most this many times as much processor time per byte as an accepted one.
/// `make bench-bodies` counts the instructions of parsing alone.
const RATIO_MAX: f64 = 3.0;
/// Bodies that are sent at a time to measure the time of one, and the maximum of all.
const REPEATS: usize = 20;
const REPEATS_MAX: usize = 100 * REPEATS;
/// Length of the kernel's ticks.
const TICK: Duration = Duration::from_millis(10);
/// Ticks that a measurement takes at least: its error is one of them.
const TICKS_MIN: u32 = 20;

/// Processor time that a service has used.
fn processor_time(server: &Server) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    // The name of the process is in parentheses, and may contain spaces.
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u32 = fields[11..13].iter().map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    TICK * ticks
}

/// Processor time per byte of sending a body again and again, in nanoseconds.
fn cost_per_byte(server: &Server, client: &mut Client, body: &Body) -> f64 {
    let (started, mut sent) = (processor_time(server), 0);
    loop {
        for _ in 0..REPEATS {
            send(client, body);
        }
        sent += REPEATS;
        let took = processor_time(server) - started;
        if took >= TICK * TICKS_MIN || sent == REPEATS_MAX {
            // Never zero, so that a ratio is a number.
            return took.max(TICK).as_nanos() as f64 / (sent * body.bytes.len()) as f64;
        }
    }
}

/// Status of the answer.
fn send(client: &mut Client, Body { path, name, bytes }: &Body) -> u16 {
    let json = [("content-type", "application/json")];
    let response = client.request("POST", path, &json, bytes).unwrap();
    let is_problem = response.header("content-type") == Some("application/problem+json");
    assert_eq!(is_problem, response.status == 400, "{path}, {name}: {response:?}");
    response.status
}

/// All are answered with 400 over a connection that lives on, or are accepted.
#[test]
fn a02_hostile_bodies_are_rejected() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let bodies: Vec<_> = hostile::hostile().into_iter().filter(|body| body.path != GRPC).collect();
    let before = processor_time(&server);
    let statuses: Vec<_> = bodies.iter().map(|body| send(&mut client, body)).collect();
    assert!(statuses.iter().all(|status| [200, 400].contains(status)), "{statuses:?}");
    let rejected = statuses.iter().filter(|status| **status == 400).count();
    let bytes: usize = bodies.iter().map(|body| body.bytes.len()).sum();
    eprintln!(
        "{} hostile bodies of {} KiB, {rejected} of them rejected, took {:?} of processor time",
        bodies.len(),
        bytes / 1024,
        processor_time(&server) - before
    );
    for body in hostile::accepted().iter().filter(|body| body.path != GRPC) {
        assert!([200, 429].contains(&send(&mut client, body)), "{}, {}", body.path, body.name);
    }
}

/// A batch with as many attributes as fit was compared pairwise: 2.2 s for 261 KB.
#[test]
fn a02_a_batch_of_many_attributes_costs_no_more_than_an_ordinary_one() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let accepted = hostile::accepted().into_iter().find(|body| body.path == BATCH).unwrap();
    let ordinary = cost_per_byte(&server, &mut client, &accepted);
    for body in hostile::hostile().iter().filter(|body| body.path == BATCH).take(2) {
        let hostile = cost_per_byte(&server, &mut client, body);
        let ratio = hostile / ordinary;
        eprintln!("{}: {hostile:.0} ns a byte, {ratio:.2} times an accepted one", body.name);
        assert!(ratio < RATIO_MAX, "{}: {ratio}", body.name);
    }
}

/// Bytes of an unfinished batch, which announces more.
const UNFINISHED: usize = 100_000;

/// Bytes of unfinished bodies that the service holds.
fn held_bytes(server: &Server) -> usize {
    metric(server, "sluicegate_body_bytes")
}

/// Address of a client in the network of this number.
fn client_in(network: u8) -> IpAddr {
    [127, 0, network, 1].into()
}

/// Sends the beginning of a body from an address.
fn unfinished(server: &Server, from: IpAddr, path: &str) -> TcpStream {
    let mut stream = connect(from, server.address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{}content-length: {}\r\n\r\n[",
        suite_line(path),
        UNFINISHED + 1
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The service may refuse it before its end.
    let _ = stream.write_all(&vec![b' '; UNFINISHED - 1]);
    stream
}

/// Header of a check whose body has this many bytes.
fn head_of_check(length: usize) -> String {
    let caller = suite_line("/v1/check");
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{caller}content-length: {length}\r\n\r\n"
    )
}

/// Bodies may stay unfinished for the whole test.
const PATIENT: [&str; 2] = ["--limits-body-timeout-ms", "60000"];

/// Eight connections with unfinished bodies held 250 MiB.
#[test]
fn a11_unfinished_bodies_share_a_budget_and_keep_no_check_out() {
    // Some more than the bytes of five: each frame counts as 64 bytes more.
    let most = 5 * UNFINISHED + UNFINISHED / 2;
    let server =
        Launch::serve(&["--limits-bodies-bytes-max", &most.to_string()]).args(&PATIENT).start();
    let begin = |network| unfinished(&server, client_in(network), "/v1/check/batch");
    let held: Vec<_> = (1..=5).map(begin).collect();
    eventually("five bodies", || {
        (5 * UNFINISHED..most).contains(&held_bytes(&server)).then_some(())
    });

    let mut refused = begin(6);
    let answer = ask(&mut refused, b"", "\r\n\r\n").unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: 1"), "{answer}");
    assert_eq!(metric(&server, "sluicegate_bodies_refused_total"), 1);
    server.wait_for_log("request body refused: limits.bodies_bytes_max is reached");
    eprintln!(
        "{} bytes of unfinished bodies are held, a further body is refused",
        held_bytes(&server)
    );

    // Bodies that arrive at once need no room: with the header, after it, and in chunks.
    let mut client = server.connect();
    assert_eq!(client.request("POST", "/v1/check", &[], b"{}").unwrap().status, 200);
    client.send(head_of_check(2).as_bytes()).unwrap();
    pause(Duration::from_millis(50));
    client.send(b"{}").unwrap();
    assert_eq!(client.read_response().unwrap().status, 200);
    let chunked = [("transfer-encoding", "chunked")];
    let body = b"2\r\n{}\r\n0\r\n\r\n";
    assert_eq!(client.request("POST", "/v1/check", &chunked, body).unwrap().status, 200);

    drop((held, refused));
    eventually("no bodies", || (held_bytes(&server) == 0).then_some(()));
}

/// Unfinished bodies of one network took the whole budget, and those of others were refused.
#[test]
fn a11_a_network_cannot_take_the_whole_budget() {
    let most = 20 * UNFINISHED;
    let server =
        Launch::serve(&["--limits-bodies-bytes-max", &most.to_string()]).args(&PATIENT).start();
    let _held: Vec<_> = (0..30).map(|_| unfinished(&server, ATTACKER, "/v1/check/batch")).collect();
    server.wait_for_log(
        "request body refused: its network holds an eighth of limits.bodies_bytes_max",
    );
    let held = held_bytes(&server);
    eprintln!("{held} bytes of {most} are held by the attacker");
    assert!(held <= most / 8, "{held}");

    // More than the attacker could leave of the whole budget.
    let begin = format!("[{{}}{}", " ".repeat(150_000));
    let head = "POST /v1/check/batch HTTP/1.1\r\nhost: localhost\r\n";
    let (caller, length) = (suite_line("/v1/check/batch"), begin.len() + 1);
    let head = format!("{head}{caller}content-length: {length}\r\n\r\n{begin}");
    let mut newcomer = connect(NEWCOMER, server.address).unwrap();
    newcomer.write_all(head.as_bytes()).unwrap();
    pause(Duration::from_millis(200));
    let answer = ask(&mut newcomer, b"]", "\r\n\r\n").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// The token is checked before the body is read, and nothing of the body is kept.
#[test]
fn a11_a_body_without_a_token_is_not_kept() {
    let server =
        Launch::serve(&PATIENT).env("SLUICEGATE_ADMIN_TOKEN", "a-token-of-the-tests").start();
    // A client that waits for permission to send its body gets none.
    let mut waiting = connect(ATTACKER, server.address).unwrap();
    let head = "POST /v1/rules HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n";
    let head = format!("{head}expect: 100-continue\r\n\r\n");
    let answer = ask(&mut waiting, head.as_bytes(), "\r\n\r\n").unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");

    let mut streams: Vec<_> = (0..8).map(|_| unfinished(&server, ATTACKER, "/v1/rules")).collect();
    assert_eq!(held_bytes(&server), 0);
    // The rest arrives, and the answer is read as usual.
    for stream in &mut streams {
        let answer = ask(stream, b"]]", "\r\n\r\n").unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    assert_eq!(held_bytes(&server), 0);
    // With the token, an unfinished body is counted.
    let mut stream = connect(ATTACKER, server.address).unwrap();
    let head = "POST /v1/rules HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a-token-of-the-tests\r\n";
    stream.write_all(format!("{head}content-length: 9\r\n\r\n{{").as_bytes()).unwrap();
    eventually("a body", || (held_bytes(&server) > 0).then_some(()));
}

/// The five bytes in front of a message counted as all that it announces, and a client with little bandwidth took the
/// whole budget.
#[test]
fn a11_messages_of_grpc_count_by_what_has_arrived() {
    const ANNOUNCED: u32 = 200_000;
    const STREAMS: usize = 100;
    /// Bytes counted for a message beside those that have arrived.
    const EXTRA: usize = 1024;
    let most = (5 * ANNOUNCED).to_string();
    let limits = ["--limits-bodies-bytes-max", &most];
    let server = Launch::serve(&limits).args(&PATIENT).with_grpc().start();
    let mut attacker = Attacker::connect_to(server.address_of("grpc"), &[]);
    let mut call = fields(0x83, GRPC);
    // `content-type` by its index, with a literal value.
    call.extend([0x0f, 0x10, 16]);
    call.extend(b"application/grpc");
    let prefix = [&[0][..], &ANNOUNCED.to_be_bytes()].concat();
    for stream in (1..).step_by(2).take(STREAMS) {
        let head = frame(HEADERS, END_HEADERS, stream, &call);
        attacker.send(&[head, frame(DATA, 0, stream, &prefix)].concat()).unwrap();
    }
    let expected = STREAMS * (prefix.len() + EXTRA);
    eventually("all messages", || (held_bytes(&server) == expected).then_some(()));
    eprintln!("{STREAMS} messages of {ANNOUNCED} bytes announced: {expected} bytes are reserved");
    assert_eq!(metric(&server, "sluicegate_bodies_refused_total"), 0);
}

/// An unfinished message to the health service stayed as long as its connection.
#[test]
fn a11_messages_to_the_health_service_must_arrive_in_time() {
    let server = Launch::serve(&["--limits-body-timeout-ms", "300"]).with_grpc().start();
    let mut attacker = Attacker::connect_to(server.address_of("grpc"), &[]);
    let mut call = fields(0x83, "/grpc.health.v1.Health/Check");
    call.extend([0x0f, 0x10, 16]);
    call.extend(b"application/grpc");
    attacker.send(&frame(HEADERS, END_HEADERS, 1, &call)).unwrap();
    attacker.send(&frame(DATA, 0, 1, &[0, 0, 0, 1, 0])).unwrap();
    let is_end =
        |(kind, flags, ..): &(u8, u8, u32, Vec<u8>)| *kind == HEADERS && flags & END_STREAM != 0;
    assert!(std::iter::from_fn(|| attacker.next()).any(|frame| is_end(&frame)));
    eventually("no bodies", || (held_bytes(&server) == 0).then_some(()));
}

/// A client of HTTP/1 that sends its header or its body too slowly, or reads its answers too slowly.
#[test]
fn slow_http1_clients_are_answered_or_closed() {
    let timeouts = ["--limits-header-timeout-ms", "500", "--limits-body-timeout-ms", "500"];
    let server = Launch::serve(&timeouts).args(&["--limits-idle-timeout-ms", "1000"]).start();
    let trickle = |start: &str| {
        let mut stream = connect(ATTACKER, server.address).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let reading = thread::spawn(move || {
            let mut answer = Vec::new();
            let _ = reader.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        let started = now();
        while now() - started < PATIENCE && !reading.is_finished() {
            let _ = stream.write_all(b" ");
            pause(Duration::from_millis(50));
        }
        eprintln!("{start:?}: closed after {:?}", now() - started);
        reading.join().unwrap()
    };
    assert_eq!(trickle("GET /livez HTTP/1.1\r\nhost: localhost\r\nx:"), "");
    let answer = trickle(&head_of_check(9999));
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    // Sends without end, and reads nothing.
    let mut stream = connect(ATTACKER, server.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    let started = now();
    eventually("the end of a connection", || {
        // A full socket counts as sent: the service does not read it either.
        let sent =
            stream.write(&b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100));
        let is_open =
            sent.as_ref().map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true);
        (!is_open).then_some(())
    });
    eprintln!("a client that does not read was closed after {:?}", now() - started);
}
