//! Connections that keep others out.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};

use crate::common::{Launch, Server, eventually, now, pause};
use crate::sockets::{
    ATTACKER, EndOfAttack, NEWCOMER, ask, connect, has_descriptors, is_open, metric, open,
    read_to_end, suite_auth,
};

const LISTENERS: [&str; 3] = ["http", "grpc", "resp"];

/// Preface of HTTP/2 and an empty SETTINGS frame, which the server answers with its own.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Service with all listeners, whose idle connections are not cut during a test.
fn serve(arguments: &[&str]) -> Server {
    let timeouts = ["--limits-header-timeout-ms", "600000", "--limits-idle-timeout-ms", "600000"];
    Launch::serve(&timeouts).args(arguments).with_grpc().with_resp().start()
}

/// Sends a request of the listener's protocol, and returns whether it is answered.
fn is_answered(stream: &mut TcpStream, listener: &str) -> bool {
    let answer = match listener {
        "http" => ask(stream, b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", "200 OK"),
        "grpc" => ask(stream, HTTP2, "\x04"),
        _ => ask(stream, format!("{}PING\r\n", suite_auth()).as_bytes(), "+PONG"),
    };
    answer.is_ok()
}

/// A new client is answered on every listener. Prints the time that it took.
fn gets_in_everywhere(server: &Server) {
    for listener in LISTENERS {
        let started = now();
        let mut newcomer = connect(NEWCOMER, server.address_of(listener)).unwrap();
        assert!(is_answered(&mut newcomer, listener), "{listener} is shut: {}", server.stderr());
        eprintln!("  a newcomer is answered on {listener} after {:?}", now() - started);
    }
}

fn addresses(server: &Server) -> [SocketAddr; 3] {
    LISTENERS.map(|listener| server.address_of(listener))
}

#[test]
fn a03_one_address_with_idle_connections_shuts_no_listener() {
    let server = serve(&["--limits-connections-max", "200"]);
    // In place before the attack, and idle throughout.
    let mut bystanders: Vec<_> = LISTENERS
        .into_iter()
        .map(|listener| (connect(NEWCOMER, server.address_of(listener)).unwrap(), listener))
        .collect();
    for address in addresses(&server) {
        let started = now();
        let held = open(ATTACKER, address, 400);
        eprintln!("400 idle connections to {address} in {:?}", now() - started);
        gets_in_everywhere(&server);
        drop(held);
    }
    for (bystander, listener) in &mut bystanders {
        assert!(is_answered(bystander, listener), "{listener}");
    }
    let evicted = metric(&server, "sluicegate_connections_evicted_total");
    let lines = server.stderr().matches("idle connection closed").count();
    eprintln!("  {evicted} evicted, {lines} lines of the log");
    assert!(evicted > 0 && (1..=5).contains(&lines), "{evicted} {lines}");
    assert!(server.stderr().contains("127.0.1.0/24"), "{}", server.stderr());
}

#[test]
fn a03_one_address_with_busy_connections_shuts_no_listener() {
    let server = serve(&["--limits-connections-max", "200"]);
    let resp = server.address_of("resp");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut held = open(ATTACKER, resp, 150);
                while !is_over.load(Ordering::Relaxed) {
                    // Those that were evicted are opened again at once.
                    held.retain_mut(|stream| stream.write_all(b"PING\r\n").is_ok());
                    held.extend(open(ATTACKER, resp, 150 - held.len().min(150)));
                }
            });
        }
        let _end = EndOfAttack(&is_over);
        eventually("the limit", || {
            let evicted = metric(&server, "sluicegate_connections_evicted_total");
            (evicted > 100).then_some(())
        });
        for _ in 0..5 {
            gets_in_everywhere(&server);
        }
    });
}

#[test]
fn a03_ten_thousand_idle_connections_shut_no_listener() {
    if !has_descriptors(10_500) {
        eprintln!("skipped: this process may not open as many descriptors");
        return;
    }
    let server = serve(&[]);
    let mut first = connect(NEWCOMER, server.address_of("resp")).unwrap();
    let started = now();
    let held = open(ATTACKER, server.address_of("resp"), 10_050);
    eprintln!("{} idle connections in {:?}", held.len(), now() - started);
    gets_in_everywhere(&server);
    assert!(is_answered(&mut first, "resp"));
    // The evicted ones are closed asynchronously.
    let open = eventually("nine tenths of the connections", || {
        let open = metric(&server, "sluicegate_connections");
        (8_900..=9_100).contains(&open).then_some(open)
    });
    eprintln!("  {open} of 10000 connections are open");
}

#[test]
fn free_room_is_for_all_clients() {
    let server = serve(&["--limits-connections-max", "200"]);
    let mut held = open(ATTACKER, server.address_of("resp"), 170);
    for stream in &mut held {
        assert!(is_answered(stream, "resp"));
    }
    assert_eq!(metric(&server, "sluicegate_connections_evicted_total"), 0);
}

#[test]
fn a03_a_quiet_connection_of_the_redis_protocol_stays() {
    for password in ["", "canary-password-of-a-pool"] {
        let server = Launch::serve(&["--limits-header-timeout-ms", "200"])
            .with_resp()
            .env("SLUICEGATE_RESP_PASSWORD", password)
            .start();
        let mut pool = open(NEWCOMER, server.address_of("resp"), 8);
        pause(Duration::from_secs(1));
        for stream in &mut pool {
            assert!(is_open(stream));
            if !password.is_empty() {
                ask(stream, format!("AUTH {password}\r\n").as_bytes(), "+OK").unwrap();
            }
            assert!(is_answered(stream, "resp"));
        }
    }
}

/// Service that expects a PROXY protocol header, or TLS, on every listener.
fn serve_expecting(is_tls: bool, certificates: &Certificates) -> Server {
    let Pair { certificate, key } = certificates.server(ServerCertificate::Good);
    let launch = Launch::serve(&["--limits-header-timeout-ms", "500"])
        .with_grpc()
        .with_resp()
        .env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple");
    if is_tls {
        let files = (certificate.display().to_string(), key.display().to_string());
        launch
            .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", &files.0)
            .env("SLUICEGATE_LISTEN_TLS_KEY", &files.1)
            .start()
    } else {
        launch
            .env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "http,grpc,resp")
            .env("SLUICEGATE_LISTEN_ANONYMOUS", "true")
            .env("SLUICEGATE_PROXIES_TRUSTED", "127.0.0.0/8")
            .start()
    }
}

#[test]
fn slow_handshakes_and_proxy_headers_are_cut_on_every_listener() {
    let certificates = Certificates::new();
    let beginnings: [(bool, &[u8]); 6] = [
        (true, b""),
        (true, b"\x16\x03\x01\x02"),
        (true, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (false, b""),
        (false, b"PROXY TCP4 192.0.2.1 19"),
        (false, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0"),
    ];
    for is_tls in [true, false] {
        let server = serve_expecting(is_tls, &certificates);
        let mut held = Vec::new();
        for address in addresses(&server) {
            for (_, begun) in beginnings.iter().filter(|(of, _)| *of == is_tls) {
                let mut streams = open(ATTACKER, address, 20);
                for stream in &mut streams {
                    stream.write_all(begun).unwrap();
                }
                held.extend(streams);
            }
        }
        let started = now();
        for stream in &mut held {
            assert_eq!(read_to_end(stream), "");
        }
        let took = now() - started;
        eprintln!("  tls {is_tls}: {} slow connections cut after {took:?}", held.len());
    }
}

#[test]
fn bad_connections_of_every_kind_write_few_lines() {
    let certificates = Certificates::new();
    for is_tls in [true, false] {
        let server = serve_expecting(is_tls, &certificates);
        let before = server.stderr().lines().count();
        for address in addresses(&server) {
            for n in 0..300 {
                let mut stream = connect(ATTACKER, address).unwrap();
                let _ = stream.write_all(match n % 4 {
                    0 => b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
                    1 => b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\xff",
                    2 => b"PROXY UNKNOWN \x1b[31m\r\n*1\r\n$-7\r\n",
                    _ => &[0xff; 100][..],
                });
                if n % 50 == 0 {
                    read_to_end(&mut stream);
                }
            }
        }
        let lines = server.stderr().lines().count() - before;
        eprintln!("  tls {is_tls}: 900 bad connections, {lines} lines");
        assert!(lines <= 10, "{}", server.stderr());
    }
}
