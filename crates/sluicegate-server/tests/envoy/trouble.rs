//! Store failures: each rule's policy answers, marked as degraded; a refund has no policy and is unavailable.

use prost_types::value::Kind;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tonic::Code as GrpcCode;

use crate::common::{Server, eventually, with_rules};
use crate::envoy::rls::{Code, RateLimitUnit, Rls, descriptor};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "local:{local}"
tokens = 1
period = "1d"
burst_capacity = 2

[[rule]]
rule_id = 2
key_pattern = "allow:{allow}"
tokens = 1
period = "1d"
on_error = "allow"

[[rule]]
rule_id = 3
key_pattern = "deny:{deny}"
tokens = 1
period = "1d"
on_error = "deny"
"#;

fn start(redis: &RedisServer) -> Server {
    with_rules(RULES)
        .args(&["--grpc-refunds", "on"])
        .with_grpc()
        .env("SLUICEGATE_STORE_URL", &redis.url())
        .start()
}

#[test]
fn each_rule_answers_by_its_policy_and_giving_back_is_unavailable() {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = start(&redis);
    let rls = Rls::of(&server);
    let (local, allow) = (descriptor(&[("local", "1")]), descriptor(&[("allow", "1")]));
    let deny = descriptor(&[("deny", "1")]);
    assert!(rls.ask(&[local.clone(), allow.clone(), deny.clone()]).is_ok());
    redis.kill();
    eventually("an answer without the store", || {
        let answer = rls.ask_one(&allow);
        assert!(answer.is_ok());
        (answer.metadata("degraded") == Some(&Kind::BoolValue(true))).then_some(())
    });
    for allowed in [true, true, false] {
        assert_eq!(rls.ask(&[local.clone(), allow.clone()]).is_ok(), allowed);
    }
    let denied = rls.ask(&[allow.clone(), deny.clone()]);
    assert_eq!(denied.codes(), [Code::Ok, Code::OverLimit]);
    assert_eq!(denied.header("retry-after"), Some("1"));
    let own = descriptor(&[("own", "limit")]).limit(1, RateLimitUnit::Day);
    assert!(rls.ask_one(&own).is_ok());
    assert!(!rls.ask(&[own]).is_ok());

    // A refund needs the store.
    let refused = rls.call(crate::envoy::rls::call(&[local.clone().negative()])).unwrap_err();
    assert_eq!(refused.code(), GrpcCode::Unavailable, "{refused:?}");
    assert!(refused.message().starts_with("the store is in trouble ("), "{refused:?}");
    // The decisions on other descriptors are answered.
    let mixed = rls.ask(&[deny, local.negative(), allow]);
    assert_eq!(mixed.codes(), [Code::OverLimit, Code::Ok, Code::Ok]);
    assert!(!mixed.is_ok());
}
