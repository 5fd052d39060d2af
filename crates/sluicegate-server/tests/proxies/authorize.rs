//! `/v1/authorize` without a proxy: trusted peers, header fields, and answers.

use serde_json::{Value, json};

use crate::common::{Client, Launch, Response, Server};
use crate::proxies::stage::CLIENT;

const PATH: &str = "/v1/authorize";

/// One rule for each attribute.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "{ip}"
scope = "ip"
tokens = 1
period = "1h"
burst_capacity = 1000

[[rule]]
rule_id = 2
key_pattern = "{endpoint}"
scope = "endpoint"
tokens = 1
period = "1h"
burst_capacity = 2

[[rule]]
rule_id = 3
key_pattern = "{user_id}"
plan = "tiny"
tokens = 1
period = "1h"
burst_capacity = 1

[[rule]]
rule_id = 4
key_pattern = "{method}:{host}:{tenant}"
tokens = 1
period = "1h"
burst_capacity = 1
"#;

fn launch() -> Launch {
    Launch::serve(&["--rules", "r.toml", "--proxies-trusted", "127.0.0.1,10.0.0.0/8"])
        .args(&["--authorize-user-header", "x-user", "--authorize-plan-header", "x-plan"])
        .args(&["--authorize-attribute-headers", "tenant=x-tenant"])
        .file("r.toml", RULES)
}

fn ask(server: &Server, headers: &[(&str, &str)]) -> Response {
    server.request("GET", PATH, headers, "")
}

/// Tokens left under each rule of an answer, by the names in `RateLimit`.
fn left(response: &Response) -> Value {
    let members = response.header("ratelimit").unwrap_or_default().split(", ");
    let pairs = members.filter_map(|member| {
        let (name, rest) = member.split_once(";r=")?;
        let left: u64 = rest.split(';').next()?.parse().ok()?;
        Some((name.trim_matches('"').to_owned(), left.into()))
    });
    Value::Object(pairs.collect())
}

#[test]
fn an_answer_is_one_of_two() {
    let server = launch().start();
    let about = [("x-forwarded-uri", "/a?b"), ("x-forwarded-for", "203.0.113.9")];
    let allowed = ask(&server, &about);
    assert_eq!((allowed.status, allowed.body.as_str()), (200, ""));
    assert_eq!(allowed.header("x-sluicegate-decision"), Some("allowed"));
    assert_eq!(allowed.header("x-sluicegate-degraded"), None);
    assert_eq!(
        allowed.header("ratelimit-policy"),
        Some(r#""ip";q=1000;w=3600000, "endpoint";q=2;w=7200"#)
    );
    assert_eq!(allowed.header("x-ratelimit-limit"), Some("2"));
    ask(&server, &about);

    let denied = ask(&server, &about);
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("x-sluicegate-decision"), Some("denied"));
    assert_eq!(denied.header("retry-after"), Some("3600"));
    assert_eq!(left(&denied), json!({ "ip": 998, "endpoint": 0 }));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let body = denied.json();
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&body["status"], &body["rule_id"]), (&429.into(), &2.into()));
    assert_eq!(body["violated-policies"], json!(["endpoint"]));
}

#[test]
fn a_proxy_chooses_how_to_be_denied() {
    let server = launch().start();
    let about = [("x-forwarded-uri", "/a")];
    let ask = |query: &str| {
        let response = server.request("GET", &format!("{PATH}{query}"), &about, "");
        assert!(response.header("x-sluicegate-decision").is_some(), "{response:?}");
        response
    };
    // The parameter does not change the status of allowed requests.
    assert_eq!((ask("?deny=403").status, ask("?deny=x").status), (200, 200));
    let denied = ask("?deny=403");
    assert_eq!((denied.status, &denied.json()["status"]), (403, &403.into()));
    assert_eq!(denied.header("retry-after"), Some("3600"));
    // Proxies append their client's query: the first parameter counts, the others are ignored.
    let cases = [
        ("?deny=403&a=b&deny=200", 403),
        ("?a=%ff&deny=403", 403),
        ("?deny=429&deny=403", 429),
        ("?deny=200", 429),
        ("?deny", 429),
        ("?%", 429),
        ("?", 429),
    ];
    for (query, status) in cases {
        assert_eq!(ask(query).status, status, "{query}");
    }
}

#[test]
fn any_method_will_do_and_bodies_do_not_matter() {
    let server = launch().start();
    let mut connection = server.connect();
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PURGE"] {
        let body = if method == "GET" { &b""[..] } else { &b"not { json"[..] };
        let headers = [("content-type", "image/png")];
        let response = connection.request(method, PATH, &headers, body).unwrap();
        assert_eq!(response.status, 200, "{method}");
    }
    let mut client = server.connect();
    client.send(b"HEAD /v1/authorize HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let head = client.read_to_end();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");

    let about = [("x-forwarded-uri", "/a")];
    (0..2).for_each(|_| assert_eq!(ask(&server, &about).status, 200));
    let mut client = server.connect();
    let denied = b"HEAD /v1/authorize HTTP/1.1\r\nhost: x\r\nx-original-uri: /a\r\nconnection: close\r\n\r\n";
    client.send(denied).unwrap();
    let head = client.read_to_end();
    assert!(head.starts_with("HTTP/1.1 429 ") && head.ends_with("\r\n\r\n"), "{head}");

    // A `Content-Length` without a body, as from an nginx that forwards the field, and a very long one.
    for announced in ["10", "10000000000"] {
        let headers = [("content-length", announced), ("x-forwarded-uri", "/a")];
        let response = server.request("POST", PATH, &headers, "");
        assert_eq!(response.status, 429, "{announced}");
    }
}

#[test]
fn only_trusted_peers_are_believed() {
    let server = launch().start();
    let about: [(&str, &str); 6] = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9"),
        ("x-forwarded-uri", "/a"),
        ("x-original-method", "POST"),
        ("x-forwarded-host", "example.com"),
    ];
    let from_afar = || {
        let mut client = Client::connect_from(CLIENT, server.address).unwrap();
        client.request("GET", PATH, &about, b"").unwrap()
    };
    // Only the bucket of its address, and no endpoint.
    assert_eq!(left(&from_afar()), json!({ "ip": 999 }));
    assert_eq!(left(&from_afar()), json!({ "ip": 998 }));
    assert_eq!(left(&ask(&server, &about)), json!({ "ip": 999, "endpoint": 1 }));

    // Without trusted proxies no peer is trusted.
    let nobody = Launch::serve(&["--rules", "r.toml"]).file("r.toml", RULES).start();
    assert_eq!(left(&ask(&nobody, &about)), json!({ "ip": 999 }));
    let other = [("x-forwarded-for", "203.0.113.10")];
    assert_eq!(left(&ask(&nobody, &other)), json!({ "ip": 998 }));
}

#[test]
fn addresses_are_grouped_and_walked_from_the_right() {
    let server = launch().start();
    let left_for = |value: &str| left(&ask(&server, &[("x-forwarded-for", value)]))["ip"].clone();
    assert_eq!(left_for("2001:db8::1"), 999);
    assert_eq!(left_for("6.6.6.6, 2001:db8::2, 10.1.2.3"), 998);
    assert_eq!(left_for("2001:db8:0:1::1"), 999);
    assert_eq!(left_for("::ffff:203.0.113.9"), 999);
    assert_eq!(left_for("203.0.113.9"), 998);

    let real = launch().env("SLUICEGATE_PROXIES_HEADER", "x-real-ip").start();
    let headers = [("x-real-ip", "203.0.113.9"), ("x-forwarded-for", "203.0.113.10")];
    assert_eq!(left(&ask(&real, &headers)), json!({ "ip": 999 }));
    assert_eq!(left(&ask(&real, &headers)), json!({ "ip": 998 }));
    let listed = launch().env("SLUICEGATE_PROXIES_HEADER", "forwarded").start();
    let headers = [("forwarded", "for=\"[2001:db8::1]:80\";proto=https, for=10.0.0.1")];
    assert_eq!(left(&ask(&listed, &headers)), json!({ "ip": 999 }));
    let headers = [("forwarded", "for=\"[2001:db8::ff]\"")];
    assert_eq!(left(&ask(&listed, &headers)), json!({ "ip": 998 }));
}

#[test]
fn an_endpoint_has_one_spelling() {
    let server = launch().start();
    let status = |name: &str, uri: &str| ask(&server, &[(name, uri)]).status;
    assert_eq!(status("x-forwarded-uri", "/login?a"), 200);
    assert_eq!(status("x-original-uri", "//login"), 200);
    for again in ["/%6Cogin", "/./login", "http://example.com/login?x", "/a/%2e%2E/login#y"] {
        assert_eq!(status("x-original-uri", again), 429, "{again}");
    }
    // A trailing slash makes a different path.
    assert_eq!(status("x-original-uri", "/login/"), 200);
    // A long path is truncated: different ends share a bucket.
    let long = format!("/long/{}", "x".repeat(2000));
    let statuses = ["1", "2", "3"].map(|end| status("x-forwarded-uri", &format!("{long}{end}")));
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn contradicting_headers_are_denied() {
    let server = launch().start();
    let contradictions: [&[(&str, &str)]; 5] = [
        &[("x-forwarded-uri", "/a"), ("x-original-uri", "/b")],
        &[("x-original-uri", "/a"), ("x-original-uri", "/b")],
        &[("x-forwarded-method", "GET"), ("x-original-method", "POST")],
        &[("x-user", "ann"), ("x-user", "bob")],
        &[("x-tenant", "a"), ("x-tenant", "b")],
    ];
    for headers in contradictions {
        let response = ask(&server, headers);
        assert_eq!(response.status, 429, "{headers:?}");
        assert_eq!(response.header("x-sluicegate-decision"), Some("denied"));
        assert_eq!(response.header("retry-after"), None);
        assert!(response.json()["detail"].as_str().unwrap().starts_with(headers[1].0));
        let forbidden = server.request("GET", "/v1/authorize?deny=403", headers, "");
        assert_eq!(forbidden.status, 403);
    }
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_authorize_contradictions_total 10\n"), "{metrics}");
    // Logged once per minute.
    let message = "a proxy's headers contradict each other: denied";
    server.wait_for_log(message);
    assert_eq!(server.stderr().matches(message).count(), 1);
    // Equal and empty fields do not contradict each other.
    let same = [("x-forwarded-uri", "/a?b"), ("x-original-uri", "//a"), ("x-original-uri", "")];
    assert_eq!(left(&ask(&server, &same)), json!({ "ip": 999, "endpoint": 1 }));
}

#[test]
fn configured_headers_name_users_plans_and_others() {
    let server = launch().start();
    let status = |headers: &[(&str, &str)]| ask(&server, headers).status;
    let ann = [("x-user", "ann"), ("x-plan", "tiny")];
    assert_eq!((status(&ann), status(&ann)), (200, 429));
    assert_eq!(status(&[("x-user", " ann "), ("x-plan", "tiny")]), 429);
    assert_eq!(status(&[("x-user", "bob"), ("x-plan", "tiny")]), 200);
    // Without a plan or a user no such rule applies.
    assert_eq!(status(&[("x-user", "ann"), ("x-plan", "")]), 200);
    assert_eq!(status(&[("x-user", ""), ("x-plan", "tiny")]), 200);
    // A long user is truncated and still has a bucket.
    let long = "é".repeat(2000);
    let long = [("x-user", long.as_str()), ("x-plan", "tiny")];
    assert_eq!((status(&long), status(&long)), (200, 429));

    let tenant =
        [("x-tenant", "acme"), ("x-forwarded-host", "A.example:80"), ("x-forwarded-method", "put")];
    assert_eq!(status(&tenant), 200);
    let again =
        [("x-tenant", "acme"), ("x-forwarded-host", "a.example."), ("x-original-method", "PUT")];
    assert_eq!(status(&again), 429);
    let other =
        [("x-tenant", "acme"), ("x-forwarded-host", "b.example"), ("x-original-method", "PUT")];
    assert_eq!(status(&other), 200);
}

#[test]
fn hostile_headers_are_answered() {
    let server = launch().start();
    let mut client = server.connect();
    let mut request =
        b"GET /v1/authorize HTTP/1.1\r\nhost: x\r\nx-forwarded-uri: /\xff\xfe%zz%\r\n".to_vec();
    request.extend(b"x-user: \xe9\xff\r\nx-forwarded-for: \xff, 1.2.3.4.5, unknown\r\n");
    request.extend(
        b"x-forwarded-method: \xff \t x\r\nx-forwarded-host: ,,:::\r\nforwarded: for=\"\r\n\r\n",
    );
    client.send(&request).unwrap();
    let response = client.read_response().unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    // Close to the maximum length of header fields.
    let long = "/".repeat(60_000);
    assert_eq!(ask(&server, &[("x-forwarded-uri", &long)]).status, 200);
    assert_eq!(server.get("/readyz").status, 200);
}

/// Proxies forward the Host and the Origin of their clients, which other peers may not.
#[test]
fn a_foreign_host_may_ask_here_and_nowhere_else() {
    let server = launch().env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple").start();
    let foreign = [
        ("host", "shop.example"),
        ("origin", "https://other.example"),
        ("sec-fetch-site", "cross-site"),
    ];
    assert_eq!(ask(&server, &foreign).status, 200);
    for path in ["/v1/authorize/", "/v1/authorize/x", "/v1/rules", "/livez"] {
        assert_eq!(server.request("GET", path, &foreign, "").status, 403, "{path}");
    }
}

#[test]
fn fields_are_as_the_settings_have_them() {
    let launch = |draft: &str, legacy: &str, reset: &str| {
        launch()
            .env("SLUICEGATE_HEADERS_DRAFT", draft)
            .env("SLUICEGATE_HEADERS_LEGACY", legacy)
            .env("SLUICEGATE_HEADERS_LEGACY_RESET", reset)
            .start()
    };
    let response = ask(&launch("off", "x-ratelimit", "epoch"), &[]);
    assert_eq!((response.header("ratelimit"), response.header("ratelimit-policy")), (None, None));
    let reset: u64 = response.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!(reset > 1_700_000_000, "{reset}");
    let response = ask(&launch("ietf-draft-11", "off", "delta"), &[]);
    assert_eq!(response.header("ratelimit"), Some(r#""ip";r=999;t=3600"#));
    assert_eq!(response.header("x-ratelimit-reset"), None);
}

#[test]
fn an_answer_without_the_store_says_so() {
    // No server listens on this port.
    let server = launch().env("SLUICEGATE_STORE_URL", "redis://127.0.0.1:1").start();
    let about = [("x-forwarded-uri", "/a")];
    for status in [200, 200, 429] {
        let response = ask(&server, &about);
        assert_eq!(response.status, status);
        assert_eq!(response.header("x-sluicegate-degraded"), Some("true"));
    }
}

#[test]
fn the_delay_of_a_queue_is_answered() {
    let rules = "[[rule]]\nrule_id = 1\nkey_pattern = \"line:{ip}\"\nalgorithm = \"leaky_bucket\"\n\
                 tokens = 1\nperiod = \"1h\"\nmax_wait = \"1h\"\nburst_capacity = 3\n";
    let server = Launch::serve(&["--rules", "r.toml"]).file("r.toml", rules).start();
    let delay_ms = |response: &Response| {
        response.header("x-sluicegate-delay-ms").map(|delay| delay.parse::<u64>().unwrap())
    };
    let answers = [(); 3].map(|()| ask(&server, &[]));
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200, 429]);
    assert_eq!(delay_ms(&answers[0]), Some(0));
    assert!(delay_ms(&answers[1]).unwrap() > 3_000_000);
    assert_eq!(delay_ms(&answers[2]), None);
}
