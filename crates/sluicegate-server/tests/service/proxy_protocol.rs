//! The PROXY protocol on listeners: trusted proxies, and the client address of a connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sluicegate_tests::tls::{Certificates, ServerCertificate};

use super::http2::Http2;
use super::tls;
use crate::common::{Client, Launch, PATIENCE, Server, now, pause};

/// Networks of the tests' connections.
const LOOPBACK: &str = "127.0.0.0/8, ::1";

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn expecting(trusted: &str) -> Launch {
    Launch::serve(&["--admin-failures-per-minute", "1"])
        .env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "http")
        .env("SLUICEGATE_LISTEN_ANONYMOUS", "true")
        .env("SLUICEGATE_PROXIES_TRUSTED", trusted)
        .env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple")
}

fn version_1(client: SocketAddr) -> Vec<u8> {
    let (family, proxy) = if client.is_ipv4() { ("TCP4", "192.0.2.1") } else { ("TCP6", "::1") };
    format!("PROXY {family} {} {proxy} {} 8080\r\n", client.ip(), client.port()).into_bytes()
}

/// Header of version 2, with an unknown field after the addresses.
fn version_2(client: SocketAddr) -> Vec<u8> {
    let (family, addresses) = match client {
        SocketAddr::V4(v4) => (0x11, [v4.ip().octets(), [192, 0, 2, 1]].concat()),
        SocketAddr::V6(v6) => (0x21, [v6.ip().octets(), [1; 16]].concat()),
    };
    let ports = [client.port().to_be_bytes(), 8080_u16.to_be_bytes()].concat();
    framed(0x21, family, &[&addresses[..], &ports, b"\xee\0\x03abc"].concat())
}

fn framed(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    [SIGNATURE, &[command, family], &length, body].concat()
}

fn connect(server: &Server, header: &[u8]) -> Client {
    let mut client = server.connect();
    client.send(header).unwrap();
    client
}

/// Sends a wrong token and returns the status: 401 the first time, 429 if the same address has sent one before.
fn show_wrong_token(client: &mut Client, token: &str) -> u16 {
    let headers = [("authorization", &*format!("Bearer {token}"))];
    client.request("GET", "/v1/rules", &headers, b"").unwrap().status
}

/// A proxy forwards remote clients even to a loopback listener, so administration needs a token.
#[test]
fn a_proxied_listener_needs_a_token() {
    let finished = expecting(LOOPBACK).without_env("SLUICEGATE_ADMIN_TOKEN").run();
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("admin.token is not set"), "{}", finished.stderr);
}

#[test]
fn a_connection_is_its_clients() {
    let server = expecting(LOOPBACK).start();
    let clients = ["203.0.113.9:51234", "203.0.113.10:51234", "[2001:db8::9]:51234"];
    for client in clients.map(|client| client.parse().unwrap()) {
        let mut first = connect(&server, &version_1(client));
        assert_eq!(show_wrong_token(&mut first, "a"), 401, "{client}");
        // Another port and another version, but the same address.
        let again = SocketAddr::new(client.ip(), 7);
        let mut second = connect(&server, &version_2(again));
        assert_eq!(show_wrong_token(&mut second, "b"), 429, "{client}");
    }
    // An IPv4-mapped IPv6 address is the IPv4 address, and so is one that a NAT64 translated.
    for inside in ["[::ffff:203.0.113.9]:51234", "[64:ff9b::203.0.113.9]:51234"] {
        let mut connection = connect(&server, &version_2(inside.parse().unwrap()));
        assert_eq!(show_wrong_token(&mut connection, "c"), 429, "{inside}");
    }
}

/// Forwarding headers are trusted by the client address of the PROXY header, not by the peer.
#[test]
fn a_client_is_believed_no_more_than_without() {
    let rules = "[[rule]]\nrule_id = 1\nkey_pattern = \"ip:{ip}\"\ntokens = 1\nperiod = \"1h\"\n";
    let server = expecting("127.0.0.0/8, 10.0.0.0/8")
        .args(&["--rules", "rules.toml", "--listen-anonymous", "true"])
        .file("rules.toml", rules)
        .start();
    let ask = |client: &str, forwarded: &str| {
        let mut connection = connect(&server, &version_2(client.parse().unwrap()));
        let headers = [("x-forwarded-for", forwarded)];
        connection.request("GET", "/v1/authorize", &headers, b"").unwrap().status
    };
    assert_eq!(ask("203.0.113.9:5", "198.51.100.7"), 200);
    assert_eq!(ask("203.0.113.9:5", "198.51.100.8"), 429);
    // The client is another trusted proxy in front of the peer.
    assert_eq!(ask("10.0.0.2:5", "198.51.100.7"), 200);
    assert_eq!(ask("10.0.0.3:5", "198.51.100.7, 10.0.0.2"), 429);
}

/// Health checks of a proxy, and connections without an address.
#[test]
fn a_proxy_may_ask_for_itself() {
    let server = expecting(LOOPBACK).start();
    let headers: [&[u8]; 5] = [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff::1 ffff::1 1 2\r\n",
        &framed(0x20, 0, &[]),
        &framed(0x20, 0x11, &[0; 12]),
        // Over a Unix socket of the proxy's machine.
        &framed(0x21, 0x31, &[0; 216]),
    ];
    let mut statuses = headers.iter().map(|header| {
        let mut client = connect(&server, header);
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
        show_wrong_token(&mut client, "a")
    });
    assert_eq!(statuses.next(), Some(401));
    assert!(statuses.all(|status| status == 429));
}

#[test]
fn a_header_may_come_in_pieces_and_with_what_follows() {
    let server = expecting(LOOPBACK).start();
    let client = "203.0.113.9:51234".parse().unwrap();
    let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for header in [version_1(client), version_2(client)] {
        for piece in [1, 5, 17] {
            let mut connection = server.connect();
            for bytes in header.chunks(piece) {
                connection.send(bytes).unwrap();
                pause(Duration::from_millis(1));
            }
            connection.send(request).unwrap();
            assert_eq!(connection.read_response().unwrap().status, 200);
        }
        let mut at_once = connect(&server, &[&header[..], request].concat());
        assert_eq!(at_once.read_response().unwrap().status, 200);
        // The header is accepted once: later it is an invalid HTTP method.
        at_once.send(&header).unwrap();
        at_once.send(b"\r\n\r\n").unwrap();
        assert!(at_once.read_response().is_ok_and(|answer| answer.status == 400));
    }
}

#[test]
fn connections_without_a_valid_header_are_closed() {
    let server = expecting(LOOPBACK).args(&["--limits-header-timeout-ms", "500"]).start();
    let headers: [&[u8]; 10] = [
        b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PROXY TCP4 203.0.113.9 192.0.2.1 51234\r\nGET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PROXY TCP4 203.0.113.256 192.0.2.1 51234 8080\r\n",
        b"PROXY TCP4 2001:db8::1 2001:db8::2 51234 8080\r\n",
        b"PROXY TCP4 203.0.113.9 192.0.2.1 51234 8080\n",
        &[b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat(),
        // A datagram, an unknown version, and an oversized header.
        &framed(0x21, 0x12, &[0; 12]),
        &framed(0x31, 0x11, &[0; 12]),
        &framed(0x21, 0x11, &[0; 60_000]),
    ];
    for header in headers {
        let mut client = server.connect();
        // The connection may be closed before the end of an oversized header.
        let _ = client.send(header);
        let shown = String::from_utf8_lossy(&header[..header.len().min(80)]);
        assert_eq!(client.read_to_end(), "", "{shown:?}");
    }
    are_counted(&server, "header");
}

/// Asserts that rejected connections are counted, so that a misconfigured proxy shows.
fn are_counted(server: &Server, reason: &str) {
    let mut client = connect(server, &version_1("127.0.0.1:7".parse().unwrap()));
    let headers = [("authorization", "Bearer correct-horse-battery-staple")];
    let metrics = client.request("GET", "/metrics", &headers, b"").unwrap().body;
    let counter = format!("sluicegate_proxy_protocol_refused_total{{reason=\"{reason}\"}} ");
    assert!(metrics.contains(&counter), "{metrics}");
}

#[test]
fn untrusted_peers_are_not_served() {
    let server = expecting("10.0.0.0/8, 192.0.2.1").start();
    let client = "10.1.2.3:51234".parse().unwrap();
    for header in [version_1(client), version_2(client), b"GET / HTTP/1.1\r\n".to_vec()] {
        let mut connection = server.connect();
        let _ = connection.send(&header);
        assert_eq!(connection.read_to_end(), "");
    }
}

#[test]
fn there_is_little_time_to_say_it() {
    let server = expecting(LOOPBACK).args(&["--limits-header-timeout-ms", "300"]).start();
    for begun in [b"".as_slice(), b"PROXY TCP4 203.0.", SIGNATURE] {
        let started = now();
        assert_eq!(connect(&server, begun).read_to_end(), "");
        let took = now() - started;
        assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(5), "{took:?}");
    }
    are_counted(&server, "timeout");
    // Nor does it use up the timeout that follows.
    let mut connection = connect(&server, &version_1("203.0.113.9:51234".parse().unwrap()));
    assert_eq!(connection.request("GET", "/livez", &[], b"").unwrap().status, 200);
}

#[test]
fn the_end_does_not_wait_for_it() {
    let server = expecting(LOOPBACK).args(&["--limits-header-timeout-ms", "60000"]).start();
    let _silent = server.connect();
    let _begun = connect(&server, b"PROXY TCP4 ");
    assert_eq!(
        connect(&server, b"PROXY UNKNOWN\r\n").request("GET", "/livez", &[], b"").unwrap().status,
        200
    );
    server.signal("TERM");
    let ended = server.wait();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("all requests were answered"), "{}", ended.stderr);
}

#[test]
fn http2_and_tls_follow_it() {
    let certificates = Certificates::new();
    let pair = certificates.server(ServerCertificate::Good);
    let header = version_2("203.0.113.9:51234".parse().unwrap());
    let socket = |server: &Server| {
        let mut socket = TcpStream::connect(server.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&header).unwrap();
        socket
    };

    let server = expecting(LOOPBACK).start();
    let mut http2 = Http2::over(socket(&server));
    http2.get(1, "/livez");
    assert!(http2.is_ok(1));

    let server = expecting(LOOPBACK)
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", pair.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", pair.key.to_str().unwrap())
        .start();
    let client = tls::Client::trusting(&certificates.authority(), None);
    let mut stream = client.over(socket(&server)).unwrap();
    tls::ask(&mut stream, "/livez", "close").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// The protocol is set for each listener separately.
#[test]
fn other_listeners_do_not_expect_it() {
    let server = Launch::serve(&[])
        .with_grpc()
        .env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "grpc,resp")
        .env("SLUICEGATE_LISTEN_ANONYMOUS", "true")
        .env("SLUICEGATE_PROXIES_TRUSTED", LOOPBACK)
        .env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple")
        .start();
    assert_eq!(server.get("/livez").status, 200);
    let address = server.address_of("grpc");
    let mut without = TcpStream::connect(address).unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    without.write_all(preface).unwrap();
    // Closed or reset.
    assert!(without.read(&mut [0; 9]).unwrap_or(0) == 0);
    let mut with = TcpStream::connect(address).unwrap();
    with.set_read_timeout(Some(PATIENCE)).unwrap();
    with.write_all(&[&version_1("203.0.113.9:5".parse().unwrap())[..], preface].concat()).unwrap();
    let mut settings = [0; 9];
    with.read_exact(&mut settings).unwrap();
    assert_eq!(settings[3], 4, "{settings:?}");
}

#[test]
fn the_protocol_requires_trusted_proxies() {
    let launch = Launch::serve(&["--listen-proxy-protocol", "http"]);
    let finished = launch.run();
    assert_eq!(finished.code, Some(2));
    let message = "listen.proxy_protocol needs trusted proxies, and proxies.trusted is empty";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    let finished = Launch::serve(&["--listen-proxy-protocol", "http,htp"]).run();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("`htp` must be one of"), "{}", finished.stderr);
}

/// A proxy forwards remote clients even to a loopback listener, and so to the administration if it is there.
#[test]
fn others_need_a_token() {
    for (door, admin) in [("http", ""), ("admin", "127.0.0.1:0")] {
        let finished = Launch::serve(&["--listen-proxy-protocol", door])
            .env("SLUICEGATE_LISTEN_ADMIN", admin)
            .env("SLUICEGATE_PROXIES_TRUSTED", LOOPBACK)
            .run();
        assert_eq!(finished.code, Some(2), "{door}");
        let message = "and admin.token is not set";
        assert!(finished.stderr.contains(message), "{}", finished.stderr);
        assert!(finished.stderr.contains("--listen-proxy-protocol"), "{}", finished.stderr);
    }
}
