//! Rules that replace others, unlimited rules, and exceptions: through the API, in checks, and in explain.

use serde_json::{Value, json};

use crate::common::{Launch, Response, Server, on_every_database};

fn launch() -> Launch {
    Launch::serve(&[])
}

fn send(server: &Server, method: &str, path: &str, body: &Value) -> Response {
    server.request(method, path, &[("content-type", "application/json")], &body.to_string())
}

fn created(server: &Server, body: &Value) -> Value {
    let response = send(server, "POST", "/v1/rules", body);
    assert_eq!(response.status, 201, "{body} -> {response:?}");
    response.json()
}

/// Ids of the rules that decided on a request, and its verdict.
fn checked(server: &Server, request: &Value) -> (Vec<u64>, bool) {
    let verdict = send(server, "POST", "/v1/check", request).json();
    let tiers = verdict["tiers"].as_array().unwrap();
    let ids = tiers.iter().map(|tier| tier["rule_id"].as_u64().unwrap());
    (ids.collect(), verdict["allowed"].as_bool().unwrap())
}

#[test]
fn a_rule_without_a_limit_replaces_another() {
    on_every_database(launch, |server| {
        let everybody = created(
            server,
            &json!({
                "key_pattern": "api:{tenant}", "tokens": 1, "period": "1 day", "name": "by tenant",
                "conditions": {"tenant": "!internal|test-*"},
            }),
        );
        let partner = created(
            server,
            &json!({
                "key_pattern": "partner:{tenant}", "mode": "unlimited", "replaces": ["by tenant"],
                "conditions": {"partner": "yes"},
            }),
        );
        assert_eq!((&everybody["name"], &everybody["replaces"]), (&json!("by tenant"), &json!([])));
        assert_eq!((&partner["name"], &partner["replaces"]), (&json!(null), &json!(["by tenant"])));
        assert_eq!(
            (&partner["mode"], &partner["tokens"]),
            (&json!("unlimited"), &json!(1_000_000))
        );
        let (everybody, partner) =
            (everybody["rule_id"].as_u64().unwrap(), partner["rule_id"].clone());

        let of = |tenant: &str| json!({"attributes": {"tenant": tenant}});
        let partners =
            json!({"attributes": {"tenant": "acme", "partner": "yes"}, "cost": 1_000_000_000});
        assert_eq!(checked(server, &partners), (vec![8], false), "global is still there");
        let partners = json!({"attributes": {"tenant": "acme", "partner": "yes"}, "cost": 5});
        assert_eq!(checked(server, &partners), (vec![8], true));
        assert_eq!(checked(server, &of("acme")), (vec![8, everybody], true));
        assert_eq!(checked(server, &of("acme")), (vec![8, everybody], false));
        assert_eq!(checked(server, &of("internal")), (vec![8], true));
        assert_eq!(checked(server, &of("test-7")), (vec![8], true));

        let explained = send(server, "POST", "/v1/explain", &partners).json();
        let said = |rule_id: &Value| {
            let rules = explained["rules"].as_array().unwrap();
            rules.iter().find(|rule| rule["rule_id"] == *rule_id).unwrap().clone()
        };
        assert_eq!(explained["allowed"], json!(true), "{explained}");
        assert_eq!(said(&json!(everybody))["reason"], json!(format!("rule {partner} replaces it")));
        let unlimited = said(&partner);
        assert_eq!(
            (&unlimited["applies"], &unlimited["would_allow"]),
            (&json!(true), &json!(true))
        );
        assert_eq!((&unlimited["mode"], &unlimited["limit"]), (&json!("unlimited"), &json!(null)));

        // A list replaces the previous one; null restores the default.
        let path = format!("/v1/rules/{partner}");
        let patched =
            send(server, "PATCH", &path, &json!({"replaces": ["x", "y"], "name": "p"})).json();
        assert_eq!((&patched["replaces"], &patched["name"]), (&json!(["x", "y"]), &json!("p")));
        assert_eq!(checked(server, &partners), (vec![8, everybody], false));
        let patched = send(server, "PATCH", &path, &json!({"replaces": null, "name": null})).json();
        assert_eq!((&patched["replaces"], &patched["name"]), (&json!([]), &json!(null)));
        let changes = server.get(&format!("{path}/changes")).json();
        assert_eq!(changes["changes"][0]["old"]["replaces"], json!(["x", "y"]));
        assert_eq!(changes["changes"][0]["new"]["name"], json!(null));
    });
}

#[test]
fn invalid_columns_are_rejected() {
    let server = launch().start();
    let rule = |column: &str, value: Value| {
        let mut rule = json!({"key_pattern": "a", "tokens": 1, "period": 1, "name": "own"});
        rule[column] = value;
        rule
    };
    let names: Vec<String> = (0..33).map(|n| n.to_string()).collect();
    for (column, value) in [
        ("name", json!("n".repeat(129))),
        ("name", json!("a\nb")),
        ("replaces", json!(["own"])),
        ("replaces", json!(["a", "a"])),
        ("replaces", json!([""])),
        ("replaces", json!(names)),
        ("conditions", json!({"tenant": "!"})),
        ("conditions", json!({"tenant": format!("!{}", "a|".repeat(4096))})),
    ] {
        let refused = send(&server, "POST", "/v1/rules", &rule(column, value.clone()));
        assert_eq!(refused.status, 400, "{column} {value}: {refused:?}");
        let field = refused.json()["field"].as_str().unwrap().to_owned();
        assert!(field.starts_with(column), "{column} {value}: {refused:?}");
    }
    for value in [json!("own"), json!([1]), json!([null]), json!({})] {
        let refused = send(&server, "POST", "/v1/rules", &rule("replaces", value));
        assert_eq!(refused.status, 400, "{refused:?}");
    }
}

#[test]
fn a_rule_without_a_limit_would_have_denied_nothing() {
    let server = launch().start();
    for _ in 0..3 {
        checked(&server, &json!({"user_id": 42}));
    }
    let rule = json!({"key_pattern": "user:{user_id}", "mode": "unlimited"});
    let preview = send(&server, "POST", "/v1/rules/preview", &json!({"rule": rule}));
    assert_eq!(preview.status, 200, "{preview:?}");
    let preview = preview.json();
    assert_eq!((&preview["applies"], &preview["denied"]), (&json!(3), &json!(0)));
}
