//! Hits of a call: charging several, peeking with none, and refunding.

use serde_json::json;

use crate::common::{Launch, on_every_store, with_rules};
use crate::envoy::rls::{Code, RateLimitDescriptor, RateLimitUnit, Rls, call, descriptor};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 10
"#;

/// Arguments that allow refunds.
pub(crate) const REFUNDS: [&str; 2] = ["--grpc-refunds", "on"];

fn launch() -> Launch {
    with_rules(RULES).with_grpc().args(&REFUNDS)
}

fn user(id: &str) -> RateLimitDescriptor {
    descriptor(&[("user_id", id)])
}

#[test]
fn hits_are_of_the_call_unless_a_descriptor_has_its_own() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let mut three = call(&[user("1"), user("2").hits(5)]);
        three.hits_addend = 3;
        assert_eq!(rls.call(three).unwrap().remaining(), [7, 5]);
        assert_eq!(rls.ask(&[user("1"), user("2")]).remaining(), [6, 4]);
        // Above the capacity: never granted, so there is no `retry-after`.
        let never = rls.ask(&[user("1").hits(11)]);
        assert_eq!((never.is_ok(), never.remaining()), (false, vec![6]));
        assert_eq!(never.header("retry-after"), None);
        let huge = rls.ask(&[user("1").hits(u64::MAX), user("1").hits(u64::MAX)]);
        assert_eq!(huge.codes(), [Code::OverLimit; 2]);
        // Two descriptors of one bucket are charged together.
        let twice = rls.ask(&[user("1").hits(3), user("1").hits(3)]);
        assert_eq!((twice.is_ok(), twice.remaining()), (true, vec![0, 0]));
    });
}

#[test]
fn no_hits_ask_and_can_deny_and_take_nothing() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        for _ in 0..3 {
            assert_eq!(rls.ask(&[user("1").hits(0)]).remaining(), [10]);
        }
        rls.ask(&[user("1").hits(10)]);
        let probe = rls.ask(&[user("1").hits(0)]);
        assert_eq!((probe.is_ok(), probe.codes()), (false, vec![Code::OverLimit]));
        assert!(probe.header("retry-after").is_some());
        // A denial by one descriptor denies the whole call, which charges nothing.
        let both = rls.ask(&[user("2").hits(4), user("1").hits(0)]);
        assert_eq!((both.is_ok(), both.codes()), (false, vec![Code::Ok, Code::OverLimit]));
        let both = rls.ask(&[user("2").hits(4), user("3").hits(0)]);
        assert_eq!((both.is_ok(), both.remaining()), (true, vec![6, 10]));
        assert_eq!(rls.ask(&[user("3").hits(0)]).remaining(), [10]);
    });
}

#[test]
fn negative_hits_are_given_back_whatever_the_verdict() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        rls.ask(&[user("1").hits(8)]);
        let back = rls.ask(&[user("1").hits(3).negative()]);
        assert_eq!((back.is_ok(), back.remaining()), (true, vec![5]));
        assert_eq!(back.statuses[0].current_limit.as_ref().unwrap().name, "user");
        // One hit by default; a bucket never exceeds its capacity.
        assert_eq!(rls.ask(&[user("1").negative()]).remaining(), [6]);
        assert_eq!(rls.ask(&[user("1").hits(u64::MAX).negative()]).remaining(), [10]);
        assert_eq!(rls.ask(&[user("1").hits(0).negative()]).remaining(), [10]);

        rls.ask(&[user("1").hits(10)]);
        rls.ask(&[user("2").hits(10)]);
        let mixed = rls.ask(&[user("1"), user("2").hits(4).negative(), user("3").hits(0)]);
        assert_eq!(mixed.codes(), [Code::OverLimit, Code::Ok, Code::Ok]);
        assert_eq!((mixed.is_ok(), mixed.remaining()), (false, vec![0, 4, 10]));
        let mixed = rls.ask(&[user("2").hits(1).negative(), user("3")]);
        assert_eq!((mixed.is_ok(), mixed.remaining()), (true, vec![5, 9]));
        // No rule applies: there is no bucket to refund.
        let nobody = rls.ask(&[descriptor(&[("who", "knows")]).negative()]);
        assert_eq!((nobody.is_ok(), nobody.codes()), (true, vec![Code::Ok]));
    });
}

#[test]
fn replaced_limits_are_not_refunded() {
    let rules = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
name = "user"
tokens = 2
period = "1d"

[[rule]]
rule_id = 2
key_pattern = "vip:{vip}"
replaces = ["user"]
tokens = 5
period = "1d"
"#;
    on_every_store(
        || with_rules(rules).with_grpc().args(&REFUNDS),
        |server| {
            let rls = Rls::of(server);
            let vip = || descriptor(&[("vip", "1")]);
            assert!(rls.ask(&[user("1").hits(2)]).is_ok());
            // Only the replacing rule is charged, so only it is refunded.
            assert_eq!(rls.ask(&[user("1"), vip()]).remaining()[1], 4);
            assert_eq!(rls.ask(&[user("1").negative(), vip().negative()]).remaining()[1], 5);
            assert!(!rls.ask(&[user("1")]).is_ok());
            rls.ask(&[user("1").negative(), vip()]);
            assert!(!rls.ask(&[user("1")]).is_ok());
        },
    );
}

#[test]
fn giving_back_is_counted_and_off_by_default() {
    let server = launch().start();
    let rls = Rls::of(&server);
    rls.ask(&[user("1").hits(2).negative(), user("2"), user("3").negative()]);
    assert!(server.get("/metrics").body.contains(r#"sluicegate_refunds_total{door="grpc"} 2"#));

    let server = with_rules(RULES).with_grpc().start();
    let rls = Rls::of(&server);
    assert!(rls.ask(&[user("1").hits(10)]).is_ok());
    let refused = rls.call(call(&[user("2"), user("1").negative()])).unwrap_err();
    let reason = "refunds need a caller with the right refund; to allow them without one, set grpc.refunds to \"on\"";
    assert_eq!(refused.message(), format!("descriptors[1].is_negative_hits: {reason}"));
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(!rls.ask(&[user("1")]).is_ok());
    assert_eq!(rls.ask(&[user("2")]).remaining(), [9], "nothing was charged");
}

#[test]
fn own_limits_are_asked_and_given_back_alike() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let own = || user("1").limit(5, RateLimitUnit::Hour);
        assert_eq!(rls.ask(&[own().hits(0)]).remaining(), [5]);
        assert_eq!(rls.ask(&[own().hits(5)]).remaining(), [0]);
        assert!(!rls.ask(&[own().hits(0)]).is_ok());
        assert_eq!(rls.ask(&[own().hits(2).negative()]).remaining(), [2]);
        assert_eq!(rls.ask(&[own(), user("2").hits(0)]).remaining(), [1, 10]);
    });
}

/// A caller with the right refunds without `grpc.refunds`, over gRPC and `/json`, in its own namespace.
#[test]
fn a_caller_with_the_right_gives_back() {
    let server = Launch::serve(&[]).with_grpc().start();
    let rls = Rls::of(&server);
    let create = |name: &str, rights: &[&str]| {
        let caller = json!({"name": name, "rights": rights, "namespace": "team-a"});
        let response = server.post_json("/v1/callers", &caller.to_string());
        assert_eq!(response.status, 201, "{response:?}");
        format!("Bearer {}", response.json()["token"].as_str().unwrap())
    };
    let may = create("may", &["check", "take", "refund"]);
    let may_not = create("may-not", &["check", "take"]);
    let ask = |token: &str, descriptor: RateLimitDescriptor| {
        let mut request = tonic::Request::new(call(&[descriptor]));
        request.metadata_mut().insert("authorization", token.parse().unwrap());
        rls.call(request)
    };
    let own = || user("1").limit(5, RateLimitUnit::Day);
    assert_eq!(ask(&may, own().hits(5)).unwrap().remaining(), [0]);
    let refused = ask(&may_not, own().negative()).unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied, "{refused}");
    assert_eq!(ask(&may, own().hits(2).negative()).unwrap().remaining(), [2]);

    let limit = json!({"requestsPerUnit": 5, "unit": "DAY"});
    let entries = json!([{"key": "user_id", "value": "1"}]);
    let descriptor =
        json!({"entries": entries, "limit": limit, "hitsAddend": 2, "isNegativeHits": true});
    let body = json!({"domain": "edge", "descriptors": [descriptor]}).to_string();
    let post = |token: &str| {
        let headers = [("content-type", "application/json"), ("authorization", token)];
        server.request("POST", "/json", &headers, &body)
    };
    assert_eq!(post(&may_not).status, 403);
    assert_eq!(post(&may).json()["statuses"][0]["limitRemaining"], 4);
    assert_eq!(ask(&may, own().hits(0)).unwrap().remaining(), [4]);
    let metrics = server.get("/metrics").body;
    for door in ["grpc", "http"] {
        let line = format!("sluicegate_refunds_total{{door=\"{door}\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
    }
}
