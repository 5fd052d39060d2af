//! Invalid, oversized and incomplete messages: each is rejected alone.

use crate::common::{Client, Launch, Response, Server, now};
use crate::envoy::rls::{RateLimitUnit, Rls, call, descriptor};

const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

fn launch(arguments: &[&str]) -> Server {
    Launch::serve(arguments).with_grpc().start()
}

/// Sends bytes as a message over HTTP/1, which suffices for rejected messages.
fn send(server: &Server, is_compressed: u8, length: usize, bytes: &[u8]) -> Response {
    let mut message = vec![is_compressed];
    message.extend(u32::try_from(length).unwrap().to_be_bytes());
    message.extend(bytes);
    let mut client = Client::connect(server.address_of("grpc")).unwrap();
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    client.request("POST", PATH, &headers, &message).unwrap()
}

fn status(response: &Response) -> &str {
    response.header("grpc-status").unwrap_or_else(|| panic!("{response:?}"))
}

#[test]
fn invalid_messages_are_rejected() {
    let server = launch(&[]);
    let invalid = "3";
    for bytes in [&b"\xff\xff\xff"[..], b"\x0a\x05ab", b"\x0a\x02\xff\xfe", b"\x12\x02\x0a\x7f"] {
        assert_eq!(status(&send(&server, 0, bytes.len(), bytes)), invalid, "{bytes:?}");
    }
    // An empty message has no domain.
    assert_eq!(status(&send(&server, 0, 0, b"")), invalid);
    assert_eq!(status(&send(&server, 1, 3, b"abc")), "13", "the compression is not named");
    assert!(Rls::of(&server).ask(&[descriptor(&[("user_id", "42")])]).is_ok());
}

/// A browser sends these content types for a page of another site without a preflight request.
#[test]
fn requests_without_the_grpc_content_type_are_rejected() {
    let server = launch(&[]);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json"] {
        let mut client = Client::connect(server.address_of("grpc")).unwrap();
        let headers = [("content-type", kind), ("origin", "https://evil.example")];
        for path in [PATH, "/grpc.health.v1.Health/Check"] {
            assert_eq!(client.request("POST", path, &headers, b"\0\0\0\0\0").unwrap().status, 415);
        }
    }
}

#[test]
fn oversized_messages_are_rejected_before_they_are_read() {
    // Messages may be much longer than bodies over HTTP: clients may send Envoy long values.
    let server = launch(&["--limits-body-bytes-max", "1024"]);
    let long = "a".repeat(200 * 1024);
    assert!(Rls::of(&server).ask(&[descriptor(&[("user_id", &long)])]).is_ok());
    let out_of_range = "11";
    assert_eq!(status(&send(&server, 0, 256 * 1024 + 1, b"abc")), out_of_range);
    assert_eq!(status(&send(&server, 0, u32::MAX as usize, b"abc")), out_of_range);
}

#[test]
fn outcomes_of_calls_are_counted() {
    let server = launch(&[]);
    let rls = Rls::of(&server);
    let own = descriptor(&[("a", "b")]).limit(1, RateLimitUnit::Day);
    assert!(rls.ask_one(&own).is_ok());
    assert!(!rls.ask_one(&own).is_ok());
    rls.call(call(&[])).unwrap_err();
    send(&server, 0, 3, b"\xff\xff\xff");
    let metrics = server.get("/metrics").body;
    for (outcome, count) in [("ok", 1), ("over_limit", 1), ("error", 2)] {
        let line = format!("sluicegate_grpc_calls_total{{outcome=\"{outcome}\"}} {count}");
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[test]
fn incomplete_messages_time_out() {
    let server = launch(&["--limits-body-timeout-ms", "300"]);
    let started = now();
    let mut client = Client::connect(server.address_of("grpc")).unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\ncontent-length: 9\r\n\r\n\0"
    );
    client.send(head.as_bytes()).unwrap();
    let answer = client.read_response().unwrap();
    assert_eq!(status(&answer), "4");
    assert!(now() - started >= std::time::Duration::from_millis(300));
}
