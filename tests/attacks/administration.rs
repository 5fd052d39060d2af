//! Attempts to administer without the right to.

use serde_json::{Value, json};

use crate::common::{Launch, Response, Server, eventually};

/// Fields by which a proxy says that it passes a request on, with values that claim this machine.
const OF_PROXIES: [(&str, &str); 9] = [
    ("x-forwarded-for", "127.0.0.1"),
    ("X-Forwarded-For", ""),
    ("forwarded", "for=127.0.0.1;host=localhost"),
    ("x-forwarded-proto", "http"),
    ("x-forwarded-host", "localhost"),
    ("x-forwarded-server", "localhost"),
    ("x-real-ip", "::1"),
    ("via", "1.1 localhost"),
    ("VIA", "2 edge"),
];

/// The only operation that always needs a caller, and is not part of the administration.
const REFUND: &str = "/v1/refund";

/// Operations that need a token, with their paths, as the service itself describes them.
fn operations(server: &Server) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let path: String = path.split('/').skip(1).map(of_segment).collect();
        let methods = item.as_object().unwrap().iter();
        let is_guarded = |operation: &Value| {
            let ways = operation["security"].as_array();
            // An empty one is the way without a token, as of checks.
            ways.is_some_and(|ways| !ways.contains(&json!({})))
        };
        let guarded = methods.filter(|(_, operation)| is_guarded(operation));
        guarded.map(|(method, _)| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().filter(|(path, _)| *path != REFUND).flat_map(of_path).collect()
}

/// A segment of a path, with 1 for a parameter.
fn of_segment(segment: &str) -> String {
    let is_parameter = segment.starts_with('{');
    format!("/{}", if is_parameter { "1" } else { segment })
}

fn rules(server: &Server) -> usize {
    server.get("/v1/rules").json()["rules"].as_array().unwrap().len()
}

/// The answer of an operation with this field.
fn through_a_proxy(server: &Server, method: &str, path: &str, field: (&str, &str)) -> Response {
    let json = ("content-type", "application/json");
    let mut client = server.connect();
    client.request(method, path, &[field, json], b"{}").unwrap()
}

#[test]
fn a05_a_request_through_a_proxy_on_this_machine_does_not_administer() {
    let server = Launch::serve(&[]).start();
    let (before, operations) = (rules(&server), operations(&server));
    for (method, path) in &operations {
        for field in OF_PROXIES {
            let answer = through_a_proxy(&server, method, path, field);
            assert_eq!(answer.status, 401, "{method} {path} {field:?}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let detail = answer.json()["detail"].to_string();
            assert!(detail.contains("came through a proxy"), "{detail}");
        }
    }
    eprintln!("{} operations through {} kinds of proxies: 401", operations.len(), OF_PROXIES.len());
    assert!(operations.len() >= 20, "{operations:?}");
    assert_eq!(rules(&server), before);
    let count = operations.len() * OF_PROXIES.len();
    let line = format!("sluicegate_auth_failures_total{{reason=\"forwarded\"}} {count}");
    assert!(server.get("/metrics").body.contains(&line), "{line}");
    let message = "administration through a proxy without a token rejected";
    server.wait_for_log(message);
    assert_eq!(server.stderr().matches(message).count(), 1, "once a minute for an address");

    // This machine itself, and checks through a proxy, as before.
    assert_eq!(server.request("DELETE", "/v1/rules/1", &[], "").status, 204);
    let check = through_a_proxy(&server, "POST", "/v1/check", OF_PROXIES[0]);
    assert_eq!(check.status, 200);
}

#[test]
fn a05_details_of_the_readiness_do_not_go_through_a_proxy() {
    // No server listens on this port.
    let server = Launch::serve(&[]).env("SLUICEGATE_STORE_URL", "redis://127.0.0.1:1").start();
    let reason = eventually("the store's trouble", || {
        let shown = server.get("/readyz?verbose").body;
        shown.lines().find(|line| line.starts_with("    ")).map(str::to_owned)
    });
    for field in OF_PROXIES {
        let shown = through_a_proxy(&server, "GET", "/readyz?verbose", field).body;
        assert!(shown.contains("store") && !shown.contains(&reason), "{shown}");
    }
}

#[test]
fn a05_with_admin_local_off_this_machine_needs_a_token_too() {
    let server = Launch::serve(&[]).file("sluicegate.toml", "[admin]\nlocal = false\n").start();
    server.wait_for_line(|line| line.contains("the administration is closed"));
    for (method, path) in operations(&server) {
        let answer = server.request(&method, &path, &[], "");
        assert_eq!(answer.status, 401, "{method} {path}");
    }
    // A token can be created all the same: that needs the database, not the service.
    let database = format!("sqlite:{}", server.folder().join("sluicegate.db").display());
    let made = Launch::new(&["tokens", "create", "ci", "--role", "admin"])
        .env("SLUICEGATE_DATABASE_URL", &database)
        .run();
    assert_eq!(made.code, Some(0), "{made:?}");
    let bearer = format!("Bearer {}", made.stdout.trim());
    let delete = || server.request("DELETE", "/v1/rules/1", &[("authorization", &bearer)], "");
    eventually("the token", || (delete().status == 204).then_some(()));
    assert_eq!(server.get("/v1/rules").status, 401);
}

const TOKEN: &str = "correct-horse-battery-staple";

/// Service with a token, which does not lock out a client that sends many wrong ones.
fn guarded() -> Server {
    Launch::serve(&["--admin-failures-per-minute", "1000000"])
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        .start()
}

/// Sends a request as it is written here, and returns the whole answer; empty if there was none.
fn raw(server: &Server, method: &str, target: &str, fields: &str) -> String {
    let (mut client, host) = (server.connect(), server.address);
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{fields}content-length: 0\r\n\r\n"
    );
    client.send(request.as_bytes()).unwrap();
    client.read_to_end()
}

/// True if an answer grants what was asked for.
fn is_success(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 2")
}

/// Number of rules, asked with the token.
fn rules_with_token(server: &Server) -> usize {
    let bearer = format!("Bearer {TOKEN}");
    let list = server.request("GET", "/v1/rules", &[("authorization", &bearer)], "");
    list.json()["rules"].as_array().unwrap().len()
}

#[test]
fn no_spelling_of_a_path_or_method_does_without_a_token() {
    let server = guarded();
    let before = rules_with_token(&server);
    let at = server.address;
    let targets = [
        "/v1/rules".to_owned(),
        "/v1/rules/1".into(),
        "/v1/rules/1/".into(),
        "//v1/rules/1".into(),
        "/v1//rules/1".into(),
        "/v1/rules//1".into(),
        "/v1/./rules/1".into(),
        "/v1/x/../rules/1".into(),
        "/v1/authorize/../rules/1".into(),
        "/v1/authorize/%2e%2e/rules/1".into(),
        "/v1/authorize/..;/rules/1".into(),
        "/v1/authorize%3f/../rules/1".into(),
        "/livez/../v1/rules/1".into(),
        "/v1%2Frules%2F1".into(),
        "/v1/rules%2f1".into(),
        "/v1/%72ules/1".into(),
        "/%76%31/rules/1".into(),
        "/v1/rules/%31".into(),
        "/v1/rules/1%00".into(),
        "/v1/rules/1%20".into(),
        "/v1/rules/1;x=y".into(),
        "/v1/rules/1.json".into(),
        "/V1/RULES/1".into(),
        "/v1/Rules".into(),
        format!("/v1/rules/1?token={TOKEN}"),
        format!("/v1/rules/1?access_token={TOKEN}&authorization=Bearer%20{TOKEN}"),
        format!("http://{at}/v1/rules/1"),
        format!("http://{at}//v1/rules/1"),
        format!("http://localhost:{}/v1/rules/1", at.port()),
        format!("http://admin:{TOKEN}@{at}/v1/rules/1"),
        "*".into(),
        "/v1/events".into(),
        "/v1/buckets/1/1/reset".into(),
        "/v1/violations".into(),
    ];
    let methods = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PURGE",
        "get", "delete", "DELETE\t",
    ];
    for target in &targets {
        for method in methods {
            let answer = raw(&server, method, target, "");
            assert!(!is_success(&answer), "{method} {target}: {answer}");
        }
    }
    eprintln!("{} requests without a token: none granted", targets.len() * methods.len());
    assert_eq!(rules_with_token(&server), before);
}

#[test]
fn no_field_does_instead_of_the_token_or_changes_the_request() {
    let server = guarded();
    let before = rules_with_token(&server);
    let fields = [
        "authorization: Bearer\r\n".to_owned(),
        "authorization: Bearer \r\n".into(),
        format!("authorization: {TOKEN}\r\n"),
        format!("authorization: Basic {TOKEN}\r\n"),
        format!("authorization: Bearer{TOKEN}\r\n"),
        format!("authorization: Bearer {TOKEN}x\r\n"),
        format!("authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("authorization: Bearer {}\r\n", TOKEN.to_uppercase()),
        format!("authorization: Bearer x, Bearer {TOKEN}\r\n"),
        format!("authorization: Bearer {TOKEN}, Bearer x\r\n"),
        // With two, a proxy may have checked the other one.
        format!("authorization: Bearer x\r\nauthorization: Bearer {TOKEN}\r\n"),
        format!("authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n"),
        format!("authorization : Bearer {TOKEN}\r\n"),
        format!("x: y\r\n authorization: Bearer {TOKEN}\r\n"),
        format!("proxy-authorization: Bearer {TOKEN}\r\n"),
        format!("x-authorization: Bearer {TOKEN}\r\n"),
        format!("x-api-key: {TOKEN}\r\n"),
        format!("cookie: token={TOKEN}; authorization=Bearer {TOKEN}\r\n"),
        "x-forwarded-for: 127.0.0.1\r\n".into(),
        "x-real-ip: 127.0.0.1\r\n".into(),
        "x-forwarded-user: admin\r\nremote-user: admin\r\nx-remote-user: admin\r\n".into(),
    ];
    for fields in &fields {
        for (method, target) in [("GET", "/v1/rules"), ("DELETE", "/v1/rules/1")] {
            let answer = raw(&server, method, target, fields);
            assert!(!is_success(&answer), "{method} {target} {fields:?}: {answer}");
        }
    }
    // A request is what its first line says.
    let overrides = "x-http-method-override: DELETE\r\nx-http-method: DELETE\r\nx-method-override: DELETE\r\n\
                     x-original-url: /v1/rules/1\r\nx-rewrite-url: /v1/rules/1\r\n";
    let reader = format!("authorization: Bearer {TOKEN}\r\n{overrides}");
    assert!(is_success(&raw(&server, "GET", "/v1/rules/1", &reader)));
    raw(&server, "GET", "/v1/rules/1?_method=DELETE", &reader);
    raw(&server, "POST", "/v1/rules/1?_method=DELETE", &reader);
    assert!(raw(&server, "GET", "/livez", overrides).ends_with("\r\n\r\nok\n"));
    // The answer to TRACE would show a page the token that the browser adds.
    let trace = raw(&server, "TRACE", "/v1/rules", &reader);
    assert!(!is_success(&trace) && !trace.contains(TOKEN), "{trace}");
    assert_eq!(rules_with_token(&server), before);
    eprintln!("{} ways to pass a token wrongly: none accepted", fields.len());
}
