//! Attempts to reach buckets of another namespace.

use std::io::Write;

use serde_json::{Value, json};

use crate::callers::{bearer, call_as, create, signed_in};
use crate::common::{Launch, Server, with_rules};
use crate::grpc::rls::{RateLimitUnit, Rls, call, descriptor};
use crate::sockets::{NEWCOMER, ask};

/// Five per namespace; and one rule for the requests of one team.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "team:{namespace}"
tokens = 1
period = "1d"
burst_capacity = 5

[[rule]]
rule_id = 2
key_pattern = "user:{user_id}"
conditions = { namespace = "team-b" }
tokens = 1
period = "1d"
burst_capacity = 5
"#;

fn start() -> Server {
    with_rules(RULES).with_grpc().with_resp().start()
}

/// Creates a caller with this namespace, which may do everything but refund.
fn of_team(server: &Server, name: &str, namespace: Option<&str>) -> String {
    let rights = ["check", "take", "authorize"];
    create(server, &json!({"name": name, "rights": rights, "namespace": namespace}))
}

/// Answer to a request of a caller.
fn post(server: &Server, path: &str, token: &str, body: &Value) -> Value {
    let fields = [("authorization", &*bearer(token)), ("content-type", "application/json")];
    let answer = server.request("POST", path, &fields, &body.to_string());
    assert!(answer.status < 500, "{answer:?}");
    answer.json()
}

/// Tokens left in the bucket of the caller's own team after a check, which takes one.
fn left(server: &Server, token: &str) -> Value {
    post(server, "/v1/check", token, &json!({}))["remaining"].clone()
}

/// Names another namespace in every place that a request for a check has.
fn claim(server: &Server, (name, token): (&str, &str), namespace: &str) {
    let attributes = json!({"namespace": namespace});
    let claims = [
        json!({"attributes": &attributes}),
        json!({"namespace": namespace}),
        json!({"user_id": "ann", "attributes": &attributes}),
        json!({"attributes": {"Namespace": namespace, "namespace ": namespace}}),
    ];
    for body in &claims {
        post(server, "/v1/check", token, body);
        post(server, &format!("/v1/check?namespace={namespace}"), token, body);
    }
    post(server, "/v1/check/batch", token, &json!([&claims[0], &claims[2]]));
    // The name in escaped letters, and twice.
    let fields = [
        ("authorization", &*bearer(token)),
        ("namespace", namespace),
        ("x-namespace", namespace),
        ("x-sluicegate-namespace", namespace),
    ];
    for body in [
        format!(r#"{{"attributes": {{"\u006eamespace": "{namespace}"}}}}"#),
        format!(r#"{{"attributes": {{"namespace": "{namespace}", "namespace": "{namespace}"}}}}"#),
    ] {
        assert!(server.request("POST", "/v1/check", &fields, &body).status < 500);
    }
    let fields = [
        ("x-sluicegate-token", token),
        ("namespace", namespace),
        ("x-sluicegate-namespace", namespace),
        ("x-forwarded-uri", &*format!("/?namespace={namespace}")),
    ];
    assert!(server.request("GET", "/v1/authorize", &fields, "").status < 500);

    let entries = [("namespace", namespace), ("user_id", "ann")];
    let rls = Rls::of(server);
    for entries in [&entries[..1], &entries, &[entries[0], entries[0]]] {
        let _ = rls.call(call_as(token, call(&[descriptor(entries)])));
        let entries = entries.iter().map(|(key, value)| json!({"key": key, "value": value}));
        let descriptors = json!([{"entries": entries.collect::<Vec<_>>()}]);
        // The answer to a denied call is empty.
        let body = json!({"domain": namespace, "descriptors": descriptors}).to_string();
        let fields = [("authorization", &*bearer(token))];
        assert!(server.request("POST", "/json", &fields, &body).status < 500);
    }

    let mut resp = signed_in(server, NEWCOMER, name, token);
    let commands = format!(
        "SG.CHECK namespace {namespace}\r\nSG.CHECK user_id ann namespace {namespace}\r\n\
         SG.CHECK namespace {namespace} namespace {namespace}\r\nCLIENT SETNAME {namespace}\r\nSG.CHECK\r\nPING\r\n"
    );
    ask(&mut resp, commands.as_bytes(), "+PONG").unwrap();
}

#[test]
fn a20_a_claimed_namespace_reaches_no_bucket_of_another_team() {
    let server = start();
    let (a, b) = (of_team(&server, "a", Some("team-a")), of_team(&server, "b", Some("team-b")));
    let plain = of_team(&server, "plain", None);
    claim(&server, ("a", &a), "team-b");
    claim(&server, ("plain", &plain), "team-b");
    claim(&server, ("plain", &plain), "team-a");
    // All of its own claims were charged to its own bucket, and nothing to that of the other team.
    assert_eq!(left(&server, &b), json!(4));
    assert_eq!(left(&server, &a), json!(0));
    let ann = post(&server, "/v1/check", &b, &json!({"user_id": "ann"}));
    let of_ann = ann["tiers"].as_array().unwrap().iter().find(|tier| tier["rule_id"] == 2);
    assert_eq!(of_ann.unwrap()["remaining"], 4, "{ann}");
    // A caller without a namespace meets no rule that asks for one.
    let none = post(&server, "/v1/check", &plain, &json!({"attributes": {"namespace": "team-b"}}));
    assert_eq!(none["tiers"], json!([]), "{none}");
}

#[test]
fn a20_keys_without_a_rule_are_apart() {
    let server = start();
    let (a, b) = (of_team(&server, "a", Some("team-a")), of_team(&server, "b", Some("team-b")));
    let plain = of_team(&server, "plain", None);
    let body =
        |key: &str| json!({"key": key, "capacity": 2, "refill_rate": 1, "refill_interval": 3600});
    // Spellings that would be one name if keys and namespaces were joined.
    let keys = ["k", "k:team-b", "team-b:k", "team-b", "k\0team-b", "k\u{6}team-b", "kteam-b"];
    for token in [&a, &plain] {
        for key in keys {
            for path in ["/v1/take", "/v1/take?namespace=team-b", "/v1/take"] {
                post(&server, path, token, &body(key));
                let mut claimed = body(key);
                claimed["namespace"] = json!("team-b");
                post(&server, path, token, &claimed);
            }
        }
        let rls = Rls::of(&server);
        let entries = [("key", "k"), ("namespace", "team-b")];
        let limited = descriptor(&entries).limit(2, RateLimitUnit::Day);
        let _ = rls.call(call_as(token, call(&[limited])));
    }
    for (name, token) in [("a", &a), ("plain", &plain)] {
        let mut resp = signed_in(&server, NEWCOMER, name, token);
        resp.write_all(b"SG.TAKE k 2 1 3600000\r\nCL.THROTTLE k 1 1 3600\r\n").unwrap();
        ask(&mut resp, b"PING\r\n", "+PONG").unwrap();
    }
    for key in keys {
        let taken = post(&server, "/v1/take", &b, &body(key));
        assert_eq!((&taken["allowed"], &taken["remaining"]), (&json!(true), &json!(1)), "{key:?}");
        assert_eq!(post(&server, "/v1/take", &a, &body(key))["allowed"], false, "{key:?}");
    }
}

/// A client behind a proxy must not choose the namespace of the proxy's caller.
#[test]
fn a20_no_header_is_the_namespace() {
    let refused = Launch::serve(&["--authorize-attribute-headers", "namespace=x-team"]).run();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("`namespace` is set by the service"), "{refused:?}");
}
