//! Requests whose end two parsers would see at different places.

use std::io::{Read, Write};

use crate::common::{Server, suite_line};
use crate::sockets::{ATTACKER, connect};

/// Request that the attacker hides in the body of another.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Answers to all that is in these bytes, until the service closes the connection.
fn answers(server: &Server, bytes: &[u8]) -> String {
    let mut stream = connect(ATTACKER, server.address).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answers = Vec::new();
    // A reset connection counts as closed.
    let _ = stream.read_to_end(&mut answers);
    String::from_utf8_lossy(&answers).into_owned()
}

/// A request with these lines in its header.
fn request(lines: &str, body: &str) -> String {
    let caller = suite_line("/v1/check");
    format!("POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{caller}{lines}\r\n{body}{HIDDEN}")
}

/// None of them is followed by another request: what stands after it is not answered.
#[test]
fn no_request_hides_in_an_ambiguous_one() {
    let server =
        Server::start(&["--limits-header-timeout-ms", "300", "--limits-body-timeout-ms", "300"]);
    let chunked = "transfer-encoding: chunked\r\n";
    let cases = [
        ("both lengths", request(&format!("content-length: 5\r\n{chunked}"), "0\r\n\r\n")),
        (
            "both lengths, the other way round",
            request(&format!("{chunked}content-length: 5\r\n"), "0\r\n\r\n"),
        ),
        ("two lengths", request("content-length: 2\r\ncontent-length: 3\r\n", "{}")),
        ("two lengths in one field", request("content-length: 2, 3\r\n", "{}")),
        ("a signed length", request("content-length: +2\r\n", "{}")),
        ("a negative length", request("content-length: -1\r\n", "")),
        ("a hexadecimal length", request("content-length: 0x2\r\n", "{}")),
        ("an empty length", request("content-length: \r\n", "")),
        ("a length above 2^64", request("content-length: 18446744073709551618\r\n", "{}")),
        (
            "chunks that are not the last coding",
            request("transfer-encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ),
        ("an unknown coding", request("transfer-encoding: xchunked\r\n", "0\r\n\r\n")),
        ("a chunk size with a sign", request(chunked, "+2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk size with a prefix", request(chunked, "0x2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk size above 2^64", request(chunked, "10000000000000002\r\n{}\r\n0\r\n\r\n")),
        ("an empty chunk size", request(chunked, "\r\n{}\r\n0\r\n\r\n")),
        ("a chunk longer than its size", request(chunked, "1\r\n{}\r\n0\r\n\r\n")),
        ("a line feed alone after a chunk size", request(chunked, "2\n{}\r\n0\r\n\r\n")),
        ("a space before a colon", request("content-length : 2\r\n", "{}")),
        ("a folded field", request("content-length:\r\n 2\r\n", "{}")),
        (
            "a carriage return in a field",
            request("x: a\rcontent-length: 99\r\ncontent-length: 2\r\n", "{}"),
        ),
        ("a NUL in a field", request("x: a\0b\r\ncontent-length: 2\r\n", "{}")),
        ("chunks in HTTP/1.0", request(chunked, "0\r\n\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1)),
        (
            "an unknown version",
            request("content-length: 2\r\n", "{}").replacen("HTTP/1.1", "HTTP/1.9", 1),
        ),
    ];
    for (name, bytes) in &cases {
        let answers = answers(&server, bytes.as_bytes());
        let statuses: Vec<_> =
            answers.split("HTTP/1.").skip(1).map(|answer| &answer[2..5]).collect();
        eprintln!("{name}: {statuses:?}");
        assert!(!answers.contains("/hidden"), "{name}: {answers}");
        assert!(statuses.len() <= 1, "{name}: {answers}");
        assert!(
            statuses.iter().all(|status| ["200", "400", "408"].contains(status)),
            "{name}: {answers}"
        );
    }
    // What is not ambiguous is answered, one after the other.
    let plain =
        [request("content-length: 2\r\n", "{}"), request(chunked, "2\r\n{}\r\n0\r\n\r\n")].concat();
    let answers = answers(&server, plain.as_bytes());
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 4, "{answers}");
    assert_eq!(answers.matches("no such path: /hidden").count(), 2, "{answers}");
}
