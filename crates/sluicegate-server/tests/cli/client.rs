//! Servers that cannot be reached, refuse, or are not Sluicegate; tokens and proxies.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::common::{Finished, Launch};

/// Server that answers one request with these bytes.
fn toy(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&answer);
    });
    address
}

fn ask(address: SocketAddr) -> Finished {
    Launch::new(&["rules", "list", "--server", &format!("http://{address}")]).run()
}

fn problem(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let finished = ask(address);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""));
    assert_eq!(
        finished.stderr,
        format!(
            "error: cannot reach http://{address}: connection refused\n  Is `sluicegate serve` running there? \
             --server URL or SLUICEGATE_SERVER says where it is.\n"
        )
    );
    let by_variable =
        Launch::new(&["rules", "list"]).env("SLUICEGATE_SERVER", &format!("http://{address}/"));
    assert_eq!(by_variable.run().stderr, finished.stderr);
}

#[test]
fn errors_of_a_server_are_shown_in_its_words() {
    for (status, body, code, said) in [
        (
            "400 Bad Request",
            r#"{"detail":"limit: must be from 1 to 1000","field":"limit"}"#,
            2,
            "error: limit: must be from 1 to 1000\n",
        ),
        (
            "409 Conflict",
            r#"{"detail":"another rule has it","field":"key_pattern"}"#,
            2,
            "error: another rule has it (field key_pattern)\n",
        ),
        (
            "401 Unauthorized",
            r#"{"detail":"this needs a token"}"#,
            2,
            "error: this needs a token\n  Set SLUICEGATE_TOKEN, or name a file that holds the token: --token-file FILE.\n",
        ),
        ("403 Forbidden", r#"{"detail":"not with this token"}"#, 2, "error: not with this token\n"),
        (
            "503 Service Unavailable",
            r#"{"detail":"the database does not answer: try again"}"#,
            3,
            "error: the database does not answer: try again\n",
        ),
        (
            "400 Bad Request",
            "{\"detail\":\"evil \\u001b[2J\\u009b\"}",
            2,
            "error: evil \\u001b[2J\\u009b\n",
        ),
    ] {
        let finished = ask(toy(problem(status, body)));
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(code), said), "{status}");
    }
}

/// Stored rules that are not in force are marked.
#[test]
fn rules_that_are_not_in_force_are_not_passed_off_as_such() {
    let refused = r#"{"rules":[],"next":null,"version":3,"source":"sqlite:t.db","refused":"rule 12: key_pattern: no"}"#;
    let finished = ask(toy(problem("200 OK", refused)));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let warning = "warning: these rules are not in force: rule 12: key_pattern: no; version 3 stays in force\n";
    assert!(finished.stderr.starts_with(warning), "{finished:?}");
    let url = format!("http://{}", toy(problem("200 OK", refused)));
    let json = Launch::new(&["rules", "list", "--json", "--server", &url]).run();
    let (shown, sent): (Value, Value) =
        (serde_json::from_str(&json.stdout).unwrap(), serde_json::from_str(refused).unwrap());
    assert_eq!(shown, sent);
}

#[test]
fn other_servers_are_recognised() {
    let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(33 << 20));
    for (answer, code, said) in [
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            2,
            "answers 404 Not Found: is it a Sluicegate server?",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<htm>",
            3,
            "the answer is not JSON: is it a Sluicegate server?",
        ),
        ("SSH-2.0-x\r\n", 3, "cannot reach http://127.0.0.1"),
        ("", 3, "cannot reach http://127.0.0.1"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{", 3, "cannot reach http://127.0.0.1"),
        (long.as_str(), 3, "more than 33554432 bytes"),
    ] {
        let finished = ask(toy(answer));
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stderr.contains(said), "{finished:?}");
    }
}

#[test]
fn the_token_comes_from_a_file_or_the_environment() {
    fn file(launch: Launch) -> Launch {
        launch.file("token", "canary\n")
    }
    let seen = |launch: fn(Launch) -> Launch| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..read]).into_owned()
        });
        launch(Launch::new(&["rules", "list", "--server", &url])).run();
        server.join().unwrap().to_lowercase()
    };
    let shown = "authorization: bearer canary\r\n";
    assert!(!seen(|launch| launch).contains("authorization"));
    assert!(seen(|launch| launch.env("SLUICEGATE_TOKEN", "canary")).contains(shown));
    assert!(seen(|launch| file(launch).env("SLUICEGATE_TOKEN_FILE", "token")).contains(shown));
    assert!(seen(|launch| file(launch).args(&["--token-file", "token"])).contains(shown));
    // The flag takes precedence over the environment.
    assert!(
        seen(|launch| file(launch)
            .args(&["--token-file", "token"])
            .env("SLUICEGATE_TOKEN", "other"))
        .contains(shown)
    );
    for (launch, said) in [
        (
            Launch::new(&["rules", "list"])
                .env("SLUICEGATE_TOKEN", "a")
                .env("SLUICEGATE_TOKEN_FILE", "b"),
            "both set: unset one of them",
        ),
        (Launch::new(&["rules", "list", "--token-file", "nowhere"]), "cannot read nowhere"),
        (Launch::new(&["rules", "list", "--token-file", "t"]).file("t", "\n"), "t: is empty"),
        (Launch::new(&["rules", "list"]).env("SLUICEGATE_TOKEN", "a\nb"), "invalid characters"),
    ] {
        let finished = launch.run();
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(said), "{finished:?}");
    }
}

#[test]
fn a_file_of_authorities_has_some() {
    let file = |text: &str| {
        let launch =
            Launch::new(&["rules", "list", "--server", "https://127.0.0.1:1", "--ca", "ca.pem"]);
        launch.file("ca.pem", text).run()
    };
    for text in
        ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    {
        let finished = file(text);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(
            finished.stderr.contains("--ca: ca.pem contains no certificate in PEM"),
            "{finished:?}"
        );
    }
}

/// URL of a server whose name does not resolve: only a proxy can reach it.
const FAR: &str = "http://gate.invalid:8080";

const EMPTY_LIST: &str = "HTTP/1.1 200 OK\r\ncontent-length: 24\r\nconnection: close\r\n\r\n{\"rules\":[],\"next\":null}";

/// Proxy that records its requests and answers in place of the server.
fn proxy(connect_answer: &'static str) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:canary@{}", listener.local_addr().unwrap());
    let recorded = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heads = Vec::new();
        for answer in [connect_answer, EMPTY_LIST] {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap() == 0 {
                    return heads;
                }
                head.push(byte[0]);
            }
            heads.push(String::from_utf8(head).unwrap());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        heads
    });
    (url, recorded)
}

#[test]
fn a_server_is_reached_by_the_proxy_of_the_environment() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let (url, recorded) = proxy("HTTP/1.1 200 OK\r\n\r\n");
        let list = Launch::new(&["rules", "list", "--server", FAR]).env(variable, &url).run();
        assert_eq!(list.code, Some(0), "{list:?}");
        let heads = recorded.join().unwrap();
        assert!(heads[0].starts_with("CONNECT gate.invalid:8080 HTTP/1.1\r\n"), "{heads:?}");
        assert!(heads[0].contains("Proxy-Authorization: Basic dXNlcjpjYW5hcnk="), "{heads:?}");
        assert!(heads[1].starts_with("GET /v1/rules?"), "{heads:?}");
    }
}

/// Connections that bypass the proxy do not fall back to it if the server is unreachable.
#[test]
fn no_proxy_and_loopback_go_past_the_proxy() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    deaf.set_nonblocking(true).unwrap();
    let url = format!("http://{}", deaf.local_addr().unwrap());
    for list in ["gate.invalid", ".invalid", "*", "other, gate.invalid:8080"] {
        let far = Launch::new(&["rules", "list", "--server", FAR]);
        let far = far.env("HTTP_PROXY", &url).env("NO_PROXY", list).run();
        assert_eq!(far.code, Some(3), "{far:?}");
        assert!(
            far.stderr.starts_with("error: cannot reach http://gate.invalid:8080: "),
            "{far:?}"
        );
    }
    let https = Launch::new(&["rules", "list", "--server", "https://gate.invalid"]);
    assert_eq!(https.env("HTTP_PROXY", &url).run().code, Some(3));
    let near = format!("http://{}", toy(EMPTY_LIST));
    let near = Launch::new(&["rules", "list", "--server", &near]).env("HTTP_PROXY", &url).run();
    assert_eq!(near.code, Some(0), "{near:?}");
    assert_eq!(deaf.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_proxy_that_refuses_or_is_not_there_is_named() {
    let (url, recorded) = proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
    let refused = Launch::new(&["rules", "list", "--server", FAR]).env("HTTP_PROXY", &url).run();
    assert_eq!(recorded.join().unwrap().len(), 1);
    let gone = Launch::new(&["rules", "list", "--server", FAR]).env("HTTP_PROXY", &url).run();
    let at = url.rsplit_once('@').unwrap().1;
    for (finished, why) in [(&refused, "403"), (&gone, "connection refused")] {
        assert_eq!(finished.code, Some(3), "{finished:?}");
        let said = format!("cannot reach {FAR} through the proxy {at}: ");
        assert!(finished.stderr.contains(&said), "{finished:?}");
        assert!(finished.stderr.contains(why), "{finished:?}");
        let hint = "HTTP_PROXY names the proxy; list the host in NO_PROXY to bypass it.";
        assert!(finished.stderr.contains(hint), "{finished:?}");
        assert!(!finished.stderr.contains("canary"), "{finished:?}");
    }
    let wrong =
        Launch::new(&["rules", "list", "--server", FAR]).env("HTTP_PROXY", "canary://").run();
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("HTTP_PROXY: must be the URL of a proxy"), "{wrong:?}");
}
