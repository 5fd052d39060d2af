//! Attempts to refund without the right to.

use std::net::TcpStream;

use serde_json::{Value, json};
use tonic::Code;

use crate::callers::{bearer, call_as, create, signed_in};
use crate::common::{Response, Server, with_rules};
use crate::grpc::rls::{RateLimitUnit, Rls, call, descriptor};
use crate::sockets::{NEWCOMER, ask, metric};

/// Three at once, and then one per day.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 3
"#;

fn bucket() -> Value {
    json!({"key": "k", "capacity": 3, "refill_rate": 1, "refill_interval": 86_400})
}

/// A request with members added to its body.
fn post(server: &Server, path: &str, token: &str, mut body: Value, more: &Value) -> Response {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let fields = [("authorization", &*bearer(token)), ("content-type", "application/json")];
    server.request("POST", path, &fields, &body.to_string())
}

/// Takes everything out of both buckets.
fn empty(server: &Server, token: &str) {
    for (path, body) in [("/v1/check", json!({"user_id": "42"})), ("/v1/take", bucket())] {
        let taken = post(server, path, token, body, &json!({"cost": 3})).json();
        assert_eq!((&taken["allowed"], &taken["remaining"]), (&json!(true), &json!(0)), "{taken}");
    }
}

/// Asserts that both buckets are empty.
fn are_empty(server: &Server, token: &str, after: &str) {
    for (path, body) in [("/v1/check", json!({"user_id": "42"})), ("/v1/take", bucket())] {
        let peeked = post(server, path, token, body, &json!({"cost": 0})).json();
        assert_eq!(peeked["remaining"], 0, "{after}: {peeked}");
    }
}

/// First line of the reply to a command.
fn resp(stream: &mut TcpStream, command: &str) -> String {
    ask(stream, format!("{command}\r\n").as_bytes(), "\r\n").unwrap()
}

#[test]
fn a21_a_caller_without_the_right_refunds_through_no_door() {
    // What anonymous clients of gRPC may do does not concern callers.
    let server = with_rules(RULES).with_grpc().with_resp().args(&["--grpc-refunds", "on"]).start();
    let rights = ["check", "take", "authorize"];
    let token = create(&server, &json!({"name": "shop", "rights": rights}));
    let of_refunds = create(&server, &json!({"name": "back", "rights": ["refund"]}));
    empty(&server, &token);

    for body in [json!({"user_id": "42"}), bucket()] {
        let refused = post(&server, "/v1/refund", &token, body, &json!({"amount": 3}));
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.body.contains("lacks the right refund"), "{}", refused.body);
    }
    // Costs that would add to a bucket.
    for cost in [json!(-3), json!("-3"), json!(18_446_744_073_709_551_613_u64), json!(-0.5)] {
        for (path, body) in [("/v1/check", json!({"user_id": "42"})), ("/v1/take", bucket())] {
            let answer = post(&server, path, &token, body, &json!({"cost": &cost}));
            assert!(answer.status < 500, "{cost}: {answer:?}");
            let is_denied = answer.status == 400 || answer.json()["allowed"] == false;
            assert!(is_denied, "{cost}: {answer:?}");
        }
    }
    are_empty(&server, &token, "HTTP");

    let rls = Rls::of(&server);
    let user = || descriptor(&[("user_id", "42")]).hits(3).negative();
    let limited = user().limit(3, RateLimitUnit::Day);
    for descriptors in [vec![user()], vec![limited], vec![descriptor(&[("user_id", "7")]), user()]]
    {
        let refused = rls.call(call_as(&token, call(&descriptors))).unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    }
    let entries = json!([{"key": "user_id", "value": "42"}]);
    let descriptors = json!([{"entries": entries, "hitsAddend": 3, "isNegativeHits": true}]);
    let body = json!({"domain": "edge", "descriptors": descriptors});
    assert_eq!(post(&server, "/json", &token, body, &json!({})).status, 403);
    are_empty(&server, &token, "gRPC and /json");

    let mut stream = signed_in(&server, NEWCOMER, "shop", &token);
    let reply = resp(&mut stream, "SG.REFUND k 3 3 1 86400000");
    assert!(reply.starts_with("-NOPERM") && reply.contains("lacks the right refund"), "{reply}");
    for command in ["SG.TAKE k 3 1 86400000 COST -3", "CL.THROTTLE k 2 1 86400 -3"] {
        assert!(resp(&mut stream, command).starts_with("-ERR"), "{command}");
    }
    are_empty(&server, &token, "the Redis protocol");
    assert_eq!(metric(&server, "sluicegate_refunds_total"), 0);

    // The right to refund is no right to take, and fills a bucket at most.
    let refused = post(&server, "/v1/take", &of_refunds, bucket(), &json!({}));
    assert_eq!(refused.status, 403, "{refused:?}");
    for _ in 0..2 {
        let refunded =
            post(&server, "/v1/refund", &of_refunds, bucket(), &json!({"amount": 1_000}));
        assert_eq!(refunded.json()["remaining"], 3, "{refunded:?}");
    }
}
