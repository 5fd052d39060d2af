//! Malformed and oversized commands.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::{PATIENCE, Server};
use crate::resp::support::{Reply, connect, frame, serve, words};

/// Replies to these bytes until the connection is closed.
fn answer_to(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address_of("resp")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset connection counts as closed.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_bad_frame_ends_that_connection_only() {
    let server = serve(&[]);
    let mut bystander = connect(&server);
    for (bytes, error) in [
        (&b"*1\r\n:1\r\n"[..], "expected '$', got ':'"),
        (b"*99999999\r\n", "invalid multibulk length"),
        (b"*-x\r\n", "invalid multibulk length"),
        (b"*1\r\n$99999999\r\n", "invalid bulk length"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n$1\r\nPING\r\n", "an argument is longer than its length"),
        (b"PING \"\r\n", "unbalanced quotes"),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "this is HTTP"),
    ] {
        let answer = answer_to(&server, bytes);
        assert!(answer.starts_with("-ERR Protocol error: "), "{answer:?}");
        assert!(answer.contains(error) && answer.ends_with("\r\n"), "{answer:?}");
    }
    // Commands before the malformed one are answered.
    let answer = answer_to(&server, b"PING\r\n*1\r\n$4\r\nPING\r\n*1\r\n?");
    assert!(answer.starts_with("+PONG\r\n+PONG\r\n-ERR Protocol error: "), "{answer:?}");
    // An HTTP request is recognised and the connection closed.
    let answer = answer_to(&server, b"GET / HTTP/1.1\r\nHost: x\r\nx: y\r\n\r\n");
    assert!(
        answer.starts_with("-ERR unknown command 'GET'") && answer.contains("this is HTTP"),
        "{answer:?}"
    );
    assert_eq!(bystander.ask("PING"), Reply::Status("PONG".to_owned()));
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_resp_protocol_errors_total 10\n"), "{metrics}");
}

#[test]
fn a_flood_of_anything_is_bounded() {
    let server = serve(&[]);
    for byte in [b'x', b'*', b'\0', b' '] {
        let answer = answer_to(&server, &vec![byte; 1 << 20]);
        assert!(answer.is_empty() || answer.starts_with("-ERR Protocol error: "), "{answer:?}");
    }
    let mut redis = connect(&server);
    let long = "x".repeat(1025);
    assert_eq!(
        redis.error(&format!("CL.THROTTLE {long} 1 1 1")),
        "ERR key: has more than 1024 bytes"
    );
    assert_eq!(
        redis.error(&format!("SG.CHECK user_id {long}")),
        "ERR user_id: has more than 1024 bytes"
    );
    let attributes: Vec<_> = (0..33).map(|n| format!("a{n} v")).collect();
    let line = format!("SG.CHECK {}", attributes.join(" "));
    assert_eq!(redis.error(&line), "ERR attributes: there are more than 32");
    let long = vec![b'x'; 64 * 1024];
    assert_eq!(redis.ask_all(&[&b"ECHO"[..], &long]), Reply::Bulk(long));
}

#[test]
fn pieces_make_no_difference() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    for byte in words("CL.THROTTLE pieces 2 1 3600") {
        redis.send(&[byte]);
    }
    assert_eq!(redis.reply().numbers()[..3], [0, 3, 2]);
    let long = vec![b'y'; 60_000];
    for piece in frame(&[&b"ECHO"[..], &long]).chunks(7_001) {
        redis.send(piece);
    }
    assert_eq!(redis.reply(), Reply::Bulk(long));
}
