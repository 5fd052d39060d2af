//! Probes, metrics and the document that describes the API.

use serde_json::json;

use crate::common::Server;

#[test]
fn alive_and_ready() {
    let server = Server::start(&[]);
    for path in ["/livez", "/healthz", "/readyz"] {
        let response = server.get(path);
        assert_eq!((response.status, response.body.as_str()), (200, "ok\n"), "{path}");
    }
    let verbose = server.get("/readyz?verbose").body;
    assert_eq!(
        verbose,
        "[+]listeners ok\n[+]rules ok\n[+]store ok\n[+]database ok\n[+]shutdown ok\nready\n"
    );
}

#[test]
fn metrics_count_decisions_by_rule_and_outcome() {
    let server = Server::start(&[]);
    let login = json!({"ip": "203.0.113.9", "endpoint": "/login"}).to_string();
    for _ in 0..7 {
        server.post_json("/v1/check", &login);
    }
    server.post_json("/v1/take", r#"{"key": "secret-key", "capacity": 1, "refill_rate": 1}"#);
    // A peek is not counted.
    let look = r#"{"key": "secret-key", "capacity": 1, "refill_rate": 1, "cost": 0}"#;
    assert_eq!(server.post_json("/v1/take", look).json()["allowed"], true);
    server.post_json("/v1/check", r#"{"ip": "203.0.113.9", "endpoint": "/login", "cost": 0}"#);
    let response = server.get("/metrics");
    let metrics = &response.body;
    let kind = response.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    for line in [
        // The rule for addresses granted five, and is not counted where the other rule denied.
        r#"sluicegate_decisions_total{rule_id="7",rule="ip:{ip}",plan="",mode="enforce",outcome="granted"} 5"#,
        r#"sluicegate_decisions_total{rule_id="5",rule="login:{ip}",plan="",mode="enforce",outcome="granted"} 5"#,
        r#"sluicegate_decisions_total{rule_id="5",rule="login:{ip}",plan="",mode="enforce",outcome="denied"} 2"#,
        r#"sluicegate_decisions_total{rule_id="take",rule="",plan="",mode="enforce",outcome="granted"} 1"#,
        "sluicegate_decision_duration_seconds_count 8",
        "sluicegate_requests_denied_total 2",
        "sluicegate_rules 9",
        "sluicegate_rules_version 1",
        "sluicegate_decision_duration_seconds_bucket{le=\"0.02\"} 8",
        "sluicegate_degraded_total{on_error=\"local\"} 0",
        "sluicegate_buckets_max 1000000",
        "sluicegate_buckets_forgotten_total ",
        "sluicegate_rules_reloads_total{result=\"success\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(!metrics.contains("203.0.113.9") && !metrics.contains("secret-key"), "{metrics}");
    assert!(!metrics.contains("sluicegate_store_"), "there is no Redis: {metrics}");
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn the_document_describes_every_route() {
    let server = Server::start(&[]);
    let document = server.get("/openapi.json").json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let paths = document["paths"].as_object().unwrap();
    let described: Vec<_> = paths.keys().map(String::as_str).collect();
    let expected = [
        "/healthcheck",
        "/json",
        "/livez",
        "/metrics",
        "/readyz",
        "/v1/authorize",
        "/v1/buckets/{key}",
        "/v1/buckets/{rule}/{subject}",
        "/v1/buckets/{rule}/{subject}/grant",
        "/v1/buckets/{rule}/{subject}/refund",
        "/v1/buckets/{rule}/{subject}/reset",
        "/v1/callers",
        "/v1/callers/{name}",
        "/v1/check",
        "/v1/check/batch",
        "/v1/events",
        "/v1/explain",
        "/v1/history",
        "/v1/overrides",
        "/v1/overrides/{id}",
        "/v1/refund",
        "/v1/rules",
        "/v1/rules/changes",
        "/v1/rules/preview",
        "/v1/rules/{id}",
        "/v1/rules/{id}/changes",
        "/v1/stats",
        "/v1/take",
        "/v1/violations",
        "/v1/violations/top",
    ];
    assert_eq!(described, expected);
    let body = &document["components"]["schemas"]["Check"]["properties"];
    for field in ["user_id", "ip", "endpoint", "method", "plan", "cost", "attributes"] {
        assert!(body[field].is_object(), "{field}");
    }
    for answer in ["CheckAnswer", "TakeAnswer"] {
        let answer = &document["components"]["schemas"][answer];
        assert!(answer["properties"]["degraded"].is_object(), "{answer}");
        let required = answer["required"].as_array().unwrap();
        assert!(!required.contains(&json!("degraded")), "{answer}");
    }
}
