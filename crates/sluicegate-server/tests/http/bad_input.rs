//! Invalid input is answered 4xx with the field's name, and ends neither the connection nor the server.

use serde_json::{Value, json};

use crate::common::{Client, Server};

/// Path, body, expected status, and expected field.
type Case = (&'static str, &'static str, u16, Option<&'static str>);

const CASES: &[Case] = &[
    // /v1/check
    ("/v1/check", "", 400, None),
    ("/v1/check", "{", 400, None),
    ("/v1/check", "null", 400, None),
    ("/v1/check", "[]", 400, None),
    ("/v1/check", r#"["42",null,null,null,null,1,{}]"#, 400, None),
    ("/v1/check", "{} {}", 400, None),
    ("/v1/check", r#"{"user_id": tru}"#, 400, Some("user_id")),
    ("/v1/check", r#"{"plna": "free"}"#, 400, Some("plna")),
    ("/v1/check", r#"{"plan": "free", "plan": "pro"}"#, 400, Some("plan")),
    ("/v1/check", r#"{"user_id": {}}"#, 400, Some("user_id")),
    ("/v1/check", r#"{"user_id": true}"#, 400, Some("user_id")),
    ("/v1/check", r#"{"user_id": 1.5}"#, 400, Some("user_id")),
    ("/v1/check", r#"{"user_id": "\ud800"}"#, 400, Some("user_id")),
    ("/v1/check", r#"{"plan": 1}"#, 400, Some("plan")),
    ("/v1/check", r#"{"endpoint": ["/"]}"#, 400, Some("endpoint")),
    ("/v1/check", r#"{"cost": -1}"#, 400, Some("cost")),
    ("/v1/check", r#"{"cost": 1.5}"#, 400, Some("cost")),
    ("/v1/check", r#"{"cost": 1e30}"#, 400, Some("cost")),
    ("/v1/check", r#"{"cost": "1"}"#, 400, Some("cost")),
    ("/v1/check", r#"{"cost": 99999999999999999999}"#, 400, Some("cost")),
    ("/v1/check", r#"{"ip": "1.2.3"}"#, 400, Some("ip")),
    ("/v1/check", r#"{"ip": "01.2.3.4"}"#, 400, Some("ip")),
    ("/v1/check", r#"{"ip": ""}"#, 400, Some("ip")),
    ("/v1/check", r#"{"ip": 7}"#, 400, Some("ip")),
    ("/v1/check", r#"{"attributes": []}"#, 400, Some("attributes")),
    ("/v1/check", r#"{"attributes": {"a": "1", "a": "2"}}"#, 400, Some("attributes.a")),
    ("/v1/check", r#"{"attributes": {"a": [1]}}"#, 400, Some("attributes.a")),
    ("/v1/check", r#"{"attributes": {"": "x"}}"#, 400, Some("attributes")),
    ("/v1/check", r#"{"attributes": {"a b": "x"}}"#, 400, Some("attributes")),
    ("/v1/check", r#"{"attributes": {"user_id": "x"}}"#, 400, Some("attributes.user_id")),
    // /v1/check/batch
    ("/v1/check/batch", "{}", 400, None),
    ("/v1/check/batch", "[5]", 400, Some("[0]")),
    ("/v1/check/batch", r#"[{}, {"cost": -1}]"#, 400, Some("[1].cost")),
    ("/v1/check/batch", r#"[{}, {"costs": 1}]"#, 400, Some("[1].costs")),
    // /v1/take
    ("/v1/take", "{}", 400, Some("key")),
    ("/v1/take", r#"{"key": "k", "refill_rate": 1}"#, 400, Some("capacity")),
    ("/v1/take", r#"{"key": "k", "capacity": 1}"#, 400, Some("refill_rate")),
    ("/v1/take", r#"{"key": 5, "capacity": 1, "refill_rate": 1}"#, 400, Some("key")),
    ("/v1/take", r#"{"key": "k", "capacity": 0, "refill_rate": 1}"#, 400, Some("capacity")),
    ("/v1/take", r#"{"key": "k", "capacity": -5, "refill_rate": 1}"#, 400, Some("capacity")),
    ("/v1/take", r#"{"key": "k", "capacity": 0.5, "refill_rate": 1}"#, 400, Some("capacity")),
    ("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": 0}"#, 400, Some("refill_rate")),
    ("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": -1}"#, 400, Some("refill_rate")),
    ("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": 1e300}"#, 400, Some("refill_rate")),
    ("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": "1"}"#, 400, Some("refill_rate")),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 0.3333333333333333}"#,
        400,
        Some("refill_rate"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill_interval": 0}"#,
        400,
        Some("refill_interval"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill_interval": 0.0000001}"#,
        400,
        Some("refill_interval"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 9007199254740992, "refill_rate": 1}"#,
        400,
        Some("capacity"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill": "x"}"#,
        400,
        Some("refill"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "algorithm": "gcra"}"#,
        400,
        Some("algorithm"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill": "interval", "algorithm": "fixed_window"}"#,
        400,
        Some("refill"),
    ),
    (
        "/v1/take",
        r#"{"key": "k", "capacity": 1, "refill_rate": 1, "max_wait": 1}"#,
        400,
        Some("max_wait"),
    ),
    ("/v1/nothing", "{}", 404, None),
];

fn assert_problem(response: &crate::common::Response, status: u16, field: Option<&str>) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{response:?}");
    let problem = response.json();
    assert_eq!((&problem["status"], &problem["type"]), (&json!(status), &json!("about:blank")));
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    assert_eq!(problem["field"], field.map_or(Value::Null, Value::from), "{problem}");
}

#[test]
fn bad_input_names_the_field_and_the_connection_lives() {
    let server = Server::start(&[]);
    let mut client = Client::connect(server.address).unwrap();
    let json = [("content-type", "application/json")];
    for (path, body, status, field) in CASES {
        let response = client.request("POST", path, &json, body.as_bytes()).unwrap();
        assert_problem(&response, *status, *field);
    }
    assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    assert!(server.get("/metrics").body.contains("sluicegate_buckets 0"), "nothing was charged");
}

#[test]
fn oversized_input_is_rejected() {
    let server = Server::start(&[]);
    let long = "x".repeat(1025);
    for field in ["user_id", "endpoint", "method", "plan"] {
        let response = server.post_json("/v1/check", &json!({field: long}).to_string());
        assert_problem(&response, 400, Some(field));
    }
    let body = json!({"attributes": {"tenant": long}}).to_string();
    assert_problem(&server.post_json("/v1/check", &body), 400, Some("attributes.tenant"));
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("a{n}"), json!("x"))).collect();
    let body = json!({"attributes": many}).to_string();
    assert_problem(&server.post_json("/v1/check", &body), 400, Some("attributes"));
    let body = json!({"key": long, "capacity": 1, "refill_rate": 1}).to_string();
    assert_problem(&server.post_json("/v1/take", &body), 400, Some("key"));
    let body = json!({"user_id": "x".repeat(20_000)}).to_string();
    assert_problem(&server.post_json("/v1/check", &body), 413, None);
}

#[test]
fn deep_and_binary_bodies_are_refused() {
    let server = Server::start(&[]);
    let deep = format!(r#"{{"attributes": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert_problem(&server.post_json("/v1/check", &deep), 400, Some("attributes"));
    let mut client = Client::connect(server.address).unwrap();
    let json = [("content-type", "application/json")];
    let response =
        client.request("POST", "/v1/check", &json, b"{\"user_id\": \"\xff\xfe\"}").unwrap();
    assert_problem(&response, 400, Some("user_id"));
    let response = client.request("POST", "/v1/check", &json, &[0; 64]).unwrap();
    assert_problem(&response, 400, None);
}

#[test]
fn other_kinds_of_bodies_and_methods_are_refused() {
    let server = Server::start(&[]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_problem(&server.request("POST", "/v1/check", &form, "{}"), 415, None);
    let charset = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(server.request("POST", "/v1/check", &charset, "{}").status, 200);
    assert_eq!(
        server.request("POST", "/v1/check", &[], "{}").status,
        200,
        "curl -d @- may say nothing"
    );
    let response = server.get("/v1/check");
    assert_problem(&response, 405, None);
    assert_eq!(response.header("allow"), Some("POST"));
}

/// Text of clients is never interpreted.
#[test]
fn hostile_text_is_data() {
    let server = Server::start(&[]);
    for text in ["{ip}", "a:b", "\u{0}", "\r\n", "<script>", "' OR 1=1 --", "\u{1b}[31m", "🦀", ""]
    {
        let body = json!({"user_id": text, "endpoint": "/payment", "cost": 3}).to_string();
        let answer = server.post_json("/v1/check", &body).json();
        assert_eq!(answer["allowed"], true, "{text:?} has a bucket of its own");
        let answer = server.post_json("/v1/check", &body).json();
        assert_eq!(answer["allowed"], false, "{text:?} has one bucket");
    }
    assert!(!server.get("/metrics").body.contains("<script>"), "no key is ever a label");
}
