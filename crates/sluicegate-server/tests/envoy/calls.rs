//! Calls decided by rules: the rules that apply, the status of each descriptor, and the header fields for the client.

use prost_types::value::Kind;

use crate::common::{Launch, Server, check, on_every_store, with_rules};
use crate::envoy::rls::{Code, Rls, Unit, call, descriptor};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 2
period = "1m"

[[rule]]
rule_id = 2
key_pattern = "ip:{ip}"
tokens = 5
period = "1d"

[[rule]]
rule_id = 3
key_pattern = "global"
conditions = { domain = "edge", tenant = "*" }
tokens = 7
period = "5m"

[[rule]]
rule_id = 4
key_pattern = "search:{user_id}"
conditions = { endpoint = "/search", method = "GET", descriptor = "user,:path,:method" }
tokens = 1
period = "1d"
burst_capacity = 7

[[rule]]
rule_id = 5
key_pattern = "pages:{endpoint}"
mode = "shadow"
tokens = 1
period = "1h"
"#;

fn launch() -> Launch {
    with_rules(RULES).with_grpc()
}

#[test]
fn denied_calls_are_recorded_as_denied() {
    let server = with_rules(RULES).with_grpc().start();
    let rls = Rls::of(&server);
    let both = [descriptor(&[("ip", "192.0.2.1")]), descriptor(&[("user_id", "9")]).hits(2)];
    assert!(rls.ask(&both).is_ok());
    assert_eq!(rls.ask(&both).codes(), [Code::Ok, Code::OverLimit]);
    let rule = r#"{"rule": {"key_pattern": "n:{ip}", "tokens": 9, "period": "1d"}}"#;
    let preview = server.post_json("/v1/rules/preview", rule).json();
    assert_eq!(
        (&preview["requests"], &preview["were_denied"]),
        (&4.into(), &2.into()),
        "{preview}"
    );
}

#[test]
fn a_call_is_allowed_until_it_is_not() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let user = [descriptor(&[("user_id", "42")])];
        let first = rls.ask(&user);
        assert!(first.is_ok());
        let [status] = &first.statuses[..] else { panic!("{first:?}") };
        let limit = status.current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (2, Unit::Minute));
        assert_eq!((limit.name.as_str(), status.code()), ("user", Code::Ok));
        assert_eq!((status.limit_remaining, status.duration_until_reset.unwrap().nanos), (1, 0));
        assert_eq!(status.duration_until_reset.unwrap().seconds, 30, "until it is full");
        assert_eq!(first.header("ratelimit-policy"), Some(r#""user";q=2;w=60"#));
        assert!(first.header("ratelimit").unwrap().starts_with(r#""user";r=1;t="#));
        for absent in ["retry-after", "content-type", "x-ratelimit-limit", "x-ratelimit-reset"] {
            assert_eq!(first.header(absent), None, "{absent}");
        }
        assert_eq!((&first.raw_body[..], &first.dynamic_metadata), (&b""[..], &None));

        assert_eq!(rls.ask(&user).remaining(), [0]);
        let denied = rls.ask(&user);
        assert!(!denied.is_ok());
        assert_eq!((denied.codes(), denied.remaining()), (vec![Code::OverLimit], vec![0]));
        let wait = denied.statuses[0].duration_until_reset.unwrap().seconds;
        assert!((1..=30).contains(&wait), "{wait}");
        assert_eq!(denied.header("retry-after"), Some(wait.to_string().as_str()));
        assert_eq!(denied.header("content-type"), Some("application/problem+json"));
        let body: serde_json::Value = serde_json::from_slice(&denied.raw_body).unwrap();
        assert_eq!((&body["status"], &body["violated-policies"][0]), (&429.into(), &"user".into()));
        let text = |text: &str| Kind::StringValue(text.into());
        assert_eq!(denied.metadata("violated_rule"), Some(&text("user:{user_id}")));
        assert_eq!(denied.metadata("violated_tier"), Some(&text("user")));
        assert_eq!(denied.metadata("violated_policy"), Some(&text("user")));
        assert_eq!(denied.metadata("rule_id"), Some(&Kind::NumberValue(1.0)));
        // Shares the bucket with checks over HTTP.
        let verdict = check(server, &serde_json::json!({"user_id": "42"}));
        assert_eq!((&verdict["allowed"], &verdict["rule_id"]), (&false.into(), &1.into()));
    });
}

#[test]
fn descriptors_are_all_charged_or_none_and_each_says_how_it_stands() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let (user, ip) =
            (descriptor(&[("user_id", "42")]), descriptor(&[("remote_address", "192.0.2.1")]));
        let unknown = descriptor(&[("who", "knows")]);
        for left in [1, 0] {
            let both = rls.ask(&[user.clone(), unknown.clone(), ip.clone()]);
            assert_eq!((both.is_ok(), both.remaining()), (true, vec![left, 0, left + 3]));
            assert!(both.statuses[1].current_limit.is_none(), "{both:?}");
            assert_eq!(both.statuses[1].duration_until_reset, None);
        }
        for _ in 0..3 {
            let denied = rls.ask(&[ip.clone(), user.clone()]);
            assert_eq!(denied.codes(), [Code::Ok, Code::OverLimit]);
            assert_eq!((denied.is_ok(), denied.remaining()), (false, vec![3, 0]));
            assert_eq!(
                denied.header("ratelimit-policy"),
                Some(r#""ip";q=5;w=86400, "user";q=2;w=60"#)
            );
        }
        assert_eq!(rls.ask(&[ip]).remaining(), [2], "a denial charges nothing");
    });
}

#[test]
fn a_descriptor_of_several_rules_tells_of_the_worst() {
    let server = launch().start();
    let rls = Rls::of(&server);
    let all = [descriptor(&[("user_id", "42"), ("client_ip", "192.0.2.1"), ("tenant", "acme")])];
    let answer = rls.ask(&all);
    let name = |answer: &crate::envoy::rls::RateLimitResponse| {
        answer.statuses[0].current_limit.as_ref().unwrap().name.clone()
    };
    assert_eq!((name(&answer), answer.remaining()), ("user".into(), vec![1]));
    let policies = r#""user";q=2;w=60, "ip";q=5;w=86400, "global";q=7;w=300"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policies));
    // Envoy has no unit for five minutes.
    let everybody = [descriptor(&[("tenant", "acme")])];
    let answer = rls.ask(&everybody);
    let limit = answer.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit()), (7, Unit::Unknown));
    assert_eq!((limit.name.as_str(), answer.remaining()), ("global", vec![5]));
}

#[test]
fn entries_are_attributes_and_so_are_the_domain_and_the_keys() {
    let server = launch().start();
    let rls = Rls::of(&server);
    let limits = |answer: crate::envoy::rls::RateLimitResponse| {
        answer.header("ratelimit-policy").unwrap_or_default().matches(";q=").count()
    };
    let search = |path: &str, method: &str| {
        descriptor(&[("user", "7"), (":path", path), (":method", method)])
    };
    assert_eq!(limits(rls.ask(&[search("/search", "GET")])), 2);
    assert_eq!(limits(rls.ask(&[search("/search", "POST")])), 1);
    let mut turned = search("/search", "GET");
    turned.entries.reverse();
    assert_eq!(limits(rls.ask(&[turned])), 1, "in another order it is another descriptor");
    // An entry cannot override the domain of the call.
    let tenant = |key: &str| descriptor(&[("tenant", "acme"), (key, "edge")]);
    let mut elsewhere = call(&[tenant("domain")]);
    elsewhere.domain = "elsewhere".into();
    assert_eq!(limits(rls.call(elsewhere).unwrap()), 0);
    assert_eq!(limits(rls.ask(&[tenant("descriptor")])), 1);
    // Entries that are not valid attributes are ignored, and of two values the last one counts.
    let odd = descriptor(&[("a b", "c"), ("user_id", "1"), ("user_id", "2")]);
    assert_eq!(rls.ask(&[odd]).remaining(), [1]);
    assert_eq!(rls.ask(&[descriptor(&[("user_id", "1")])]).remaining(), [1]);
    assert_eq!(rls.ask(&[descriptor(&[("user_id", "2")])]).remaining(), [0]);
    // Addresses are normalised.
    assert_eq!(rls.ask(&[descriptor(&[("remote_address", "2001:DB8:0::1")])]).remaining(), [4]);
    assert_eq!(rls.ask(&[descriptor(&[("remote_address", "2001:db8::1")])]).remaining(), [3]);
}

#[test]
fn denials_in_shadow_mode_are_shown_to_envoy_only() {
    let server = launch().start();
    let rls = Rls::of(&server);
    let page = [descriptor(&[("path", "/about")])];
    let first = rls.ask(&page);
    assert_eq!((first.is_ok(), &first.dynamic_metadata), (true, &None));
    let second = rls.ask(&page);
    assert!(second.is_ok() && second.statuses[0].current_limit.is_none(), "{second:?}");
    assert!(second.response_headers_to_add.is_empty(), "{second:?}");
    let Some(Kind::ListValue(ids)) = second.metadata("shadow_rule_ids") else {
        panic!("{second:?}")
    };
    assert_eq!(ids.values[0].kind, Some(Kind::NumberValue(5.0)));
}

#[test]
fn headers_are_those_that_are_wanted() {
    let server = launch().env("SLUICEGATE_HEADERS_DRAFT", "off").start();
    let rls = Rls::of(&server);
    let user = [descriptor(&[("user_id", "42")])];
    assert!(rls.ask(&user).response_headers_to_add.is_empty());
    rls.ask(&user);
    let denied = rls.ask(&user);
    let names: Vec<_> = denied.response_headers_to_add.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(names, ["retry-after", "content-type"]);
}

#[test]
fn every_verdict_is_counted_and_recorded() {
    let server = launch().start();
    let rls = Rls::of(&server);
    let (user, ip) =
        (descriptor(&[("user_id", "42")]), descriptor(&[("remote_address", "192.0.2.1")]));
    for _ in 0..3 {
        rls.ask(&[user.clone(), ip.clone()]);
    }
    let metrics = server.get("/metrics").body;
    let count = |rule: u64, outcome: &str| {
        let is_it = |line: &&str| {
            line.starts_with(&format!("sluicegate_decisions_total{{rule_id=\"{rule}\""))
                && line.contains(&format!("outcome=\"{outcome}\""))
        };
        metrics.lines().find(is_it).map(|line| line.rsplit(' ').next().unwrap().to_owned())
    };
    assert_eq!(count(1, "granted").as_deref(), Some("2"));
    assert_eq!(count(1, "denied").as_deref(), Some("1"));
    assert_eq!(count(2, "granted").as_deref(), Some("2"), "the third charged nobody");
    assert_eq!(count(2, "denied").as_deref(), Some("0"));
    assert!(metrics.contains("sluicegate_decision_duration_seconds_count 3"), "{metrics}");
}

#[test]
fn other_paths_are_not_implemented() {
    let server: Server = launch().start();
    let mut client = crate::common::Client::connect(server.address_of("grpc")).unwrap();
    let headers = [("content-type", "application/grpc")];
    let answer = client.request("POST", "/envoy.service.Other/Do", &headers, b"").unwrap();
    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("12")), "{answer:?}");
}
