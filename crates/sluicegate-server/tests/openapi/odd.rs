//! Requests that a generator rarely produces: each is rejected with the name of the invalid field, and none hangs.

use serde_json::{Value, json};

use crate::common::{Response, Server};
use crate::openapi::{TOKEN, launch};

fn send(server: &Server, method: &str, path: &str, body: &str) -> Response {
    let token = format!("Bearer {TOKEN}");
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    server.request(method, path, &headers, body)
}

#[test]
fn errors_in_a_path_or_a_query_are_named() {
    let server = launch().start();
    let long = "a".repeat(2000);
    let cases = [
        ("GET", "/v1/rules/1.5".into(), 404, None),
        ("GET", "/v1/rules/-1".into(), 404, None),
        ("GET", "/v1/rules/%00".into(), 404, None),
        ("GET", "/v1/rules/%ff".into(), 404, None),
        ("GET", "/v1/rules/18446744073709551616".into(), 404, None),
        ("GET", "/v1/rules/".into(), 404, None),
        ("GET", "/v1/rules?plan=%00".into(), 400, Some("plan")),
        ("GET", "/v1/rules?plan=%ff".into(), 400, Some("plan")),
        ("GET", "/v1/rules?after=18446744073709551616".into(), 400, Some("after")),
        // A cursor of another list.
        ("GET", "/v1/rules?after=660536272c1b2-2".into(), 400, Some("after")),
        ("GET", "/v1/violations?after=5".into(), 400, Some("after")),
        ("GET", "/v1/overrides?subject=%ed%a0%80".into(), 400, Some("subject")),
        ("GET", "/v1/violations?limit=1&limit=1".into(), 400, Some("limit")),
        ("GET", "/v1/violations?from=2026-02-30T00:00:00Z".into(), 400, Some("from")),
        ("GET", "/v1/violations?ip=10.0.0.0/8".into(), 400, Some("ip")),
        ("GET", "/v1/violations/top".into(), 400, Some("by")),
        ("DELETE", "/v1/violations".into(), 400, Some("user_id")),
        ("DELETE", "/v1/buckets/x?y".into(), 400, Some("y")),
        ("DELETE", "/v1/buckets/%ff".into(), 400, Some("key")),
        ("GET", "/v1/buckets/1/%ff".into(), 400, Some("subject")),
        ("GET", format!("/v1/buckets/1/{long}"), 400, Some("subject")),
        ("GET", "/v1/buckets/7/nobody".into(), 400, Some("subject")),
        ("DELETE", "/v1/rules/1?dry_run=maybe".into(), 400, Some("dry_run")),
    ];
    for (method, path, status, field) in cases {
        is_refused(&send(&server, method, &path, ""), status, field, &path);
    }
}

#[test]
fn errors_in_a_body_are_named() {
    let server = launch().start();
    let cases = [
        ("/v1/rules", r#"{"key_pattern": "a\ud800", "tokens": 1, "period": 1}"#, "key_pattern"),
        ("/v1/rules", r#"{"key_pattern": "a", "tokens": 1e400, "period": 1}"#, "tokens"),
        ("/v1/rules", r#"{"key_pattern": "a", "tokens": 1, "tokens": 1, "period": 1}"#, "tokens"),
        ("/v1/overrides", r#"{"rule_id": 1, "subject": 1.5, "blocked": true}"#, "subject"),
        ("/v1/overrides", r#"{"rule_id": 1, "subject": "\u0000", "blocked": true}"#, "subject"),
        ("/v1/overrides", r#"{"rule_id": 777, "subject": "1", "blocked": true}"#, "rule_id"),
        ("/v1/buckets/1/42/grant", r#"{"tokens": 0}"#, "tokens"),
        ("/v1/check", r#"{"user_id": 99999999999999999999999}"#, "user_id"),
        ("/v1/check", r#"{"cost": 18446744073709551616}"#, "cost"),
        ("/v1/check/batch", r#"[{}, {"ip": "x"}]"#, "[1].ip"),
        (
            "/v1/rules/preview",
            r#"{"rule": {"key_pattern": "{", "rate_per_second": 1}}"#,
            "rule.key_pattern",
        ),
    ];
    for (path, body, field) in cases {
        is_refused(&send(&server, "POST", path, body), 400, Some(field), body);
    }
}

#[test]
fn headers_that_mean_two_things_are_refused() {
    let server = launch().start();
    let token = format!("Bearer {TOKEN}");
    let twice = [("authorization", token.as_str()), ("authorization", "Bearer other")];
    assert_eq!(server.request("GET", "/v1/rules", &twice, "").status, 401);
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    assert_eq!(server.request("POST", "/v1/check", &packed, "{}").status, 415);
    let unpacked = [("content-type", "application/json"), ("content-encoding", "identity")];
    assert_eq!(server.request("POST", "/v1/check", &unpacked, "{}").status, 200);
}

#[test]
fn versions_that_are_known_are_not_sent_again() {
    let server = launch().start();
    let body = r#"{"rule_id": 1, "subject": "42", "blocked": true}"#;
    let dry = send(&server, "POST", "/v1/overrides?dry_run", body);
    assert_eq!((dry.status, dry.header("etag")), (200, None));
    let made = send(&server, "POST", "/v1/overrides", body);
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")));
    let token = format!("Bearer {TOKEN}");
    for path in ["/v1/rules/1", made.header("location").unwrap()] {
        for (known, status) in [("\"1\"", 304), ("W/\"1\"", 304), ("*", 304), ("\"2\"", 200)] {
            let headers = [("authorization", token.as_str()), ("if-none-match", known)];
            let read = server.request("GET", path, &headers, "");
            assert_eq!((read.status, read.header("etag")), (status, Some("\"1\"")), "{path}");
        }
    }
}

/// The body that replaces all rules may be longer than others.
#[test]
fn a_thousand_rules_come_in_one_body() {
    let server = launch().start();
    let rule = |n: u64| {
        json!({
            "key_pattern": format!("k{n}:{{a{n}}}"), "tokens": 1, "period": 1,
            "description": "x".repeat(300),
        })
    };
    let body = json!({"rules": (0..1000).map(rule).collect::<Vec<_>>()}).to_string();
    let changed = send(&server, "PUT", "/v1/rules", &body);
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.json()["added"].as_array().map(Vec::len), Some(1000));
    is_refused(&send(&server, "POST", "/v1/rules", &body), 413, None, "a rule");
}

fn is_refused(response: &Response, status: u16, field: Option<&str>, what: &str) {
    assert_eq!(response.status, status, "{what}: {response:?}");
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{what}");
    let named = response.json()["field"].take();
    assert_eq!(named, field.map_or(Value::Null, Value::from), "{what}: {response:?}");
}
