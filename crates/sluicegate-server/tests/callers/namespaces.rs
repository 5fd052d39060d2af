//! Namespaces: callers of different ones share no bucket, and a request cannot choose its own.

use serde_json::{Value, json};
use sluicegate_server::data::Right;

use super::doors::{Doors, post};
use super::support::{create, in_namespace, launch, spec};
use crate::common::{Client, on_every_store};
use crate::envoy::rls::{RateLimitUnit, Rls, call, descriptor};
use crate::resp::support::{Redis, Reply};

/// Each namespace has its own bucket; requests without one have none.
const RULES: &str =
    "[[rule]]\nrule_id = 1\nkey_pattern = \"ns:{namespace}\"\ntokens = 10\nperiod = \"1h\"\n";

/// Remaining tokens of an answer.
fn remaining(client: &mut Client, path: &str, token: Option<&str>, body: &Value) -> Value {
    let answer = post(client, path, token, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["remaining"].clone()
}

/// Tokens left after `SG.CHECK` or `SG.TAKE`.
fn left(redis: &mut Redis, line: &str) -> Option<i64> {
    match redis.ask(line) {
        Reply::Array(values) => match values[2] {
            Reply::Integer(left) => Some(left),
            _ => None,
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_without_a_rule_are_separate() {
    on_every_store(
        || launch(RULES),
        |server| {
            let callers =
                [in_namespace("a", "team-a"), in_namespace("b", "team-b"), spec("c", &Right::ALL)];
            let tokens = create(server, &callers);
            let doors = Doors::of(server);
            let rls = Rls::connect(doors.grpc);
            for (position, token) in tokens.iter().enumerate() {
                let mut client = Client::connect(doors.http).unwrap();
                let take = json!({"key": "shared", "capacity": 10, "refill_rate": 0.001});
                assert_eq!(remaining(&mut client, "/v1/take", Some(token), &take), 9);
                let mut redis = Redis::connect(doors.resp).unwrap();
                let name = ["a", "b", "c"][position];
                assert_eq!(redis.ask(&format!("AUTH {name} {token}")), Reply::Status("OK".into()));
                // The same bucket as over HTTP.
                assert_eq!(left(&mut redis, "SG.TAKE shared 10 1 1000000"), Some(8));
                let own = descriptor(&[("user_id", "1")]).limit(5, RateLimitUnit::Hour);
                let mut request = tonic::Request::new(call(&[own]));
                let bearer = format!("Bearer {token}").parse().unwrap();
                request.metadata_mut().insert("authorization", bearer);
                assert_eq!(rls.call(request).unwrap().remaining(), [4]);
            }
        },
    );
}

#[test]
fn the_service_sets_the_attribute() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[in_namespace("a", "team-a"), spec("c", &Right::ALL)]);
    let (a, c) = (Some(&*tokens[0]), Some(&*tokens[1]));
    let doors = Doors::of(&server);
    let mut client = Client::connect(doors.http).unwrap();
    let claimed = json!({"attributes": {"namespace": "team-b"}});
    // Every door charges the bucket of team-a, whatever the request claims.
    assert_eq!(remaining(&mut client, "/v1/check", a, &json!({})), 9);
    assert_eq!(remaining(&mut client, "/v1/check", a, &claimed), 8);
    let batch = post(&mut client, "/v1/check/batch", a, &json!([claimed, {}]).to_string()).json();
    assert_eq!(batch["results"][1]["remaining"], 6);
    let authorized = post(&mut client, "/v1/authorize", a, "");
    assert_eq!(authorized.header("x-ratelimit-remaining"), Some("5"));
    let entries = json!([{"key": "namespace", "value": "team-b"}]);
    let call_json = json!({"domain": "edge", "descriptors": [{"entries": entries}]});
    let reply = post(&mut client, "/json", a, &call_json.to_string()).json();
    assert_eq!(reply["statuses"][0]["limitRemaining"], 4, "{reply}");
    let rls = Rls::connect(doors.grpc);
    let ask = |token: &str| {
        let mut request = tonic::Request::new(call(&[descriptor(&[("namespace", "team-b")])]));
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        rls.call(request).unwrap()
    };
    assert_eq!(ask(&tokens[0]).remaining(), [3]);
    let mut redis = Redis::connect(doors.resp).unwrap();
    assert_eq!(redis.ask(&format!("AUTH a {}", tokens[0])), Reply::Status("OK".into()));
    assert_eq!(left(&mut redis, "SG.CHECK user_id 1"), Some(2));
    assert_eq!(left(&mut redis, "SG.CHECK namespace team-b user_id 1"), Some(1));

    // A caller without a namespace meets no rule about one, and cannot claim it.
    for body in [json!({}), claimed] {
        assert_eq!(remaining(&mut client, "/v1/check", c, &body), Value::Null);
    }
    assert!(ask(&tokens[1]).is_ok());
    assert_eq!(redis.ask(&format!("AUTH c {}", tokens[1])), Reply::Status("OK".into()));
    assert_eq!(left(&mut redis, "SG.CHECK namespace team-a"), None);

    // Administrators name it.
    let explained = server.post_json("/v1/explain", r#"{"attributes": {"namespace": "team-a"}}"#);
    assert_eq!(explained.json()["rules"][0]["remaining"], 1, "{explained:?}");
    let bucket = server.get("/v1/buckets/1/team-a");
    assert_eq!(bucket.status, 200, "{bucket:?}");
}

/// Without callers, what a request claims is dropped as well.
#[test]
fn an_anonymous_request_has_no_namespace() {
    let server = launch(RULES).start();
    let doors = Doors::of(&server);
    let mut client = Client::connect(doors.http).unwrap();
    let claimed = json!({"attributes": {"namespace": "team-a"}});
    assert_eq!(remaining(&mut client, "/v1/check", None, &claimed), Value::Null);
    let mut redis = Redis::connect(doors.resp).unwrap();
    assert_eq!(left(&mut redis, "SG.CHECK namespace team-a"), None);
    let rls = Rls::connect(doors.grpc);
    assert!(
        rls.ask_one(&descriptor(&[("namespace", "team-a")])).statuses[0].current_limit.is_none()
    );
}
