//! `POST /json`, as in envoyproxy/ratelimit.

use serde_json::{Value, json};

use crate::common::{Response, Server, with_rules};
use crate::envoy::refunds::REFUNDS;

/// Token of a length that cannot be guessed.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 2
period = "1m"
"#;

fn post(server: &Server, call: &Value) -> Response {
    server.post_json("/json", &call.to_string())
}

fn user(id: &str) -> Value {
    json!({"entries": [{"key": "user", "value": id}]})
}

#[test]
fn it_answers_as_protobuf_writes_json() {
    let server = with_rules(RULES).start();
    let call = json!({"domain": "edge", "descriptors": [user("42")]});
    let allowed = post(&server, &call);
    assert_eq!((allowed.status, allowed.header("content-type")), (200, Some("application/json")));
    let body = allowed.json();
    assert_eq!(body["overallCode"], "OK");
    let status = json!({
        "code": "OK",
        "currentLimit": {"name": "user", "requestsPerUnit": 2, "unit": "MINUTE"},
        "limitRemaining": 1,
        "durationUntilReset": "30s",
    });
    assert_eq!(body["statuses"], json!([status]));
    assert_eq!(body["responseHeadersToAdd"][0]["key"], "ratelimit-policy");
    assert_eq!((body.get("rawBody"), body.get("dynamicMetadata")), (None, None));

    assert!(post(&server, &call).json()["statuses"][0].get("limitRemaining").is_none());
    let denied = post(&server, &call);
    assert_eq!(denied.status, 429);
    let body = denied.json();
    assert_eq!(
        (&body["overallCode"], &body["statuses"][0]["code"]),
        (&json!("OVER_LIMIT"), &json!("OVER_LIMIT"))
    );
    assert_eq!(body["dynamicMetadata"]["rule_id"], 1);
    assert!(body["rawBody"].as_str().unwrap().starts_with("eyJ0eXBlIjoi"), "{body}");
    let nobody =
        post(&server, &json!({"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}]}));
    assert_eq!(nobody.json(), json!({"overallCode": "OK", "statuses": [{"code": "OK"}]}));
}

#[test]
fn names_numbers_and_units_may_be_written_either_way() {
    let server = with_rules(RULES).args(&REFUNDS).start();
    let own = |id: &str, rest: Value| {
        let mut descriptor = user(id);
        let members = rest.as_object().unwrap().clone();
        descriptor.as_object_mut().unwrap().extend(members);
        json!({"domain": "edge", "descriptors": [descriptor]})
    };
    let ways = [
        json!({"limit": {"requestsPerUnit": 9, "unit": "HOUR"}, "hitsAddend": 4}),
        json!({"limit": {"requests_per_unit": "9", "unit": 3}, "hits_addend": "4"}),
        json!({"limit": {"requestsPerUnit": 9.0, "unit": "HOUR"}, "hitsAddend": "4", "isNegativeHits": null}),
    ];
    for (id, way) in ["1", "2", "3"].into_iter().zip(ways) {
        let body = post(&server, &own(id, way)).json();
        assert_eq!(body["statuses"][0]["limitRemaining"], 5, "{body}");
        let back =
            json!({"limit": {"requestsPerUnit": 9, "unit": "HOUR"}, "is_negative_hits": true});
        assert_eq!(post(&server, &own(id, back)).json()["statuses"][0]["limitRemaining"], 6);
    }
    let mut whole = json!({"domain": "edge", "descriptors": [user("42")], "hits_addend": "2"});
    assert_eq!(post(&server, &whole).status, 200);
    whole["hits_addend"] = Value::Null;
    assert_eq!(post(&server, &whole).status, 429);
}

#[test]
fn giving_back_needs_a_token_where_there_are_tokens() {
    let launch = || with_rules(RULES).env("SLUICEGATE_ADMIN_TOKEN", TOKEN);
    let server = launch().args(&REFUNDS).start();
    let mut back = user("42");
    back["isNegativeHits"] = true.into();
    let call = |descriptors: Value| json!({"domain": "edge", "descriptors": descriptors});
    let spent = json!({"domain": "edge", "descriptors": [user("42")], "hitsAddend": 2});
    assert_eq!(post(&server, &spent).status, 200);
    assert_eq!(post(&server, &call(json!([user("7"), back]))).status, 401);
    assert_eq!(post(&server, &call(json!([user("42")]))).status, 429);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = call(json!([back])).to_string();
    let given = server.request("POST", "/json", &headers, &body);
    assert_eq!(given.status, 200);
    assert_eq!(post(&server, &call(json!([user("42")]))).status, 200);

    // Off by default, with a token as well.
    let refused = launch().start().request("POST", "/json", &headers, &body);
    let field = json!("descriptors[0].is_negative_hits");
    assert_eq!((refused.status, &refused.json()["field"]), (400, &field));
}

#[test]
fn wrong_calls_are_refused_by_field() {
    let server = with_rules(RULES).start();
    let of = |descriptor: Value| json!({"domain": "edge", "descriptors": [descriptor]});
    let with = |name: &str, value: Value| {
        let mut descriptor = user("1");
        descriptor[name] = value;
        of(descriptor)
    };
    let cases = [
        (json!({}), "domain"),
        (json!({"domain": "edge"}), "descriptors"),
        (
            json!({"domain": "edge", "descriptors": [user("1")], "hitsAddend": 4294967296_u64}),
            "hitsAddend",
        ),
        (json!({"domain": "edge", "descriptors": [user("1")], "hitsAddend": "+1"}), "hitsAddend"),
        (json!({"domain": 1}), "domain"),
        (of(json!({})), "descriptors[0].entries"),
        (of(json!({"entries": [{"key": "", "value": "a"}]})), "descriptors[0].entries[0].key"),
        (with("hitsAddend", json!(-1)), "descriptors[0].hitsAddend"),
        (with("limit", json!({"requestsPerUnit": 1})), "descriptors[0].limit.unit"),
        (with("limit", json!({"unit": "FORTNIGHT"})), "descriptors[0].limit.unit"),
        (
            with("limit", json!({"unit": "DAY", "requestsPerUnit": "4294967296"})),
            "descriptors[0].limit.requestsPerUnit",
        ),
    ];
    for (call, field) in cases {
        let refused = post(&server, &call);
        assert_eq!((refused.status, &refused.json()["field"]), (400, &json!(field)), "{call}");
    }
    let unknown = json!({"domain": "edge", "descriptors": [user("1")], "hits": 1});
    assert_eq!(post(&server, &unknown).status, 400);
    assert_eq!(server.post_json("/json", "[]").status, 400);
    assert_eq!(server.get("/json").status, 405);
    assert_eq!(server.get("/healthcheck").status, 200);
}
