//! The real Envoy in front of an application, as seen by its client.

use sluicegate_server::data::Right;

use crate::callers::support::{create, spec};
use crate::common::{Server, eventually, with_rules};
use crate::envoy::app::App;
use crate::envoy::proxy::Envoy;
use crate::envoy::refunds::REFUNDS;

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "ip:{ip}"
conditions = { domain = "edge" }
tokens = 100
period = "1h"

[[rule]]
rule_id = 2
key_pattern = "login:{ip}"
scope = "endpoint"
conditions = { endpoint = "/login", method = "GET" }
tokens = 2
period = "1m"

[[rule]]
rule_id = 3
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 10
"#;

fn sluicegate() -> Server {
    with_rules(RULES).with_grpc().start()
}

#[test]
fn nothing_that_a_client_sends_lets_it_past() {
    let rules = RULES.replace("conditions = { domain = \"edge\" }", "mode = \"unlimited\"");
    let server = with_rules(&rules).with_grpc().start();
    let app = App::start();
    let envoy = Envoy::start(server.address_of("grpc"), app.address);
    for status in [200, 200, 429] {
        assert_eq!(envoy.get("/login", &[]).status, status);
    }
    for path in ["//login", "/./login", "/%6cogin", "/x/../login", "/login?x"] {
        assert_eq!(envoy.get(path, &[]).status, 429, "{path}");
    }
    let long = "a".repeat(20_000);
    let headers =
        [("x-forwarded-for", "9.9.9.9"), ("x-user-id", &long), ("x-user-id", "\u{ff}\u{fe}")];
    for header in headers {
        assert_eq!(envoy.get("/login", &[header]).status, 429, "{}", header.0);
    }
}

/// The fields of an allowed answer are those in `docs/envoy.md`.
#[test]
fn the_page_shows_what_a_client_sees() {
    let page = include_str!("../../../../docs/envoy.md");
    let row = page.lines().find(|line| line.starts_with("| allowed |")).unwrap();
    let fields: Vec<_> =
        row.split('`').skip(1).step_by(2).map(|field| field.split_once(": ").unwrap()).collect();
    assert_eq!(fields.len(), 5, "{row}");
    let (server, app) = (sluicegate(), App::start());
    let allowed = Envoy::start(server.address_of("grpc"), app.address).get("/login", &[]);
    for (name, value) in fields {
        assert_eq!(allowed.header(&name.to_lowercase()), Some(value), "{name}");
    }
}

#[test]
fn a_client_is_allowed_until_it_is_not() {
    let (server, app) = (sluicegate(), App::start());
    let envoy = Envoy::start(server.address_of("grpc"), app.address);

    let free = envoy.get("/", &[]);
    assert_eq!((free.status, free.body.as_str()), (200, "/"));
    let allowed = envoy.get("/login?next=/", &[]);
    assert_eq!((allowed.status, allowed.body.as_str()), (200, "/login?next=/"));
    assert_eq!(allowed.header("x-app"), Some("yes"));
    let policy = r#""ip";q=100;w=3600, "endpoint";q=2;w=60"#;
    assert_eq!(allowed.header("ratelimit-policy"), Some(policy));
    let left = allowed.header("ratelimit").unwrap();
    assert!(left.starts_with(r#""ip";r=98;"#) && left.contains(r#""endpoint";r=1;t="#), "{left}");
    assert_eq!(allowed.header("retry-after"), None);
    // Envoy's own field, of the tier with the least left, and only once.
    assert_eq!(allowed.header("x-ratelimit-limit"), Some(r#"2, 2;w=60;name="endpoint""#));
    assert_eq!(allowed.header("x-ratelimit-remaining"), Some("1"));
    let count = |name: &str| allowed.headers.iter().filter(|(known, _)| known == name).count();
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit"] {
        assert_eq!(count(name), 1, "{name}");
    }

    assert_eq!(envoy.get("/login", &[]).status, 200);
    let before = app.asked();
    let denied = envoy.get("/login", &[]);
    assert_eq!((denied.status, app.asked()), (429, before));
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{denied:?}");
    assert_eq!(denied.header("x-ratelimit-reset"), Some(wait.to_string().as_str()));
    assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(denied.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    assert!(denied.header("ratelimit").unwrap().contains(r#""endpoint";r=0;t="#), "{denied:?}");
    let body = denied.json();
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&body["rule_id"], &body["violated-policies"][0]), (&2.into(), &"endpoint".into()));
    // Other buckets were not charged for the denial.
    let free = envoy.get("/", &[]);
    assert_eq!(free.status, 200);
    assert!(free.header("ratelimit").unwrap().starts_with(r#""ip";r=96;"#), "{free:?}");
    assert_eq!((envoy.stat("ok"), envoy.stat("over_limit")), (4, 1));
}

#[test]
fn without_sluicegate_requests_go_ahead() {
    let (server, app) = (sluicegate(), App::start());
    let envoy = Envoy::start(server.address_of("grpc"), app.address);
    let user = [("x-user-id", "42")];
    assert!(envoy.get("/", &user).header("ratelimit").is_some());
    drop(server);
    for _ in 0..12 {
        let answer = envoy.get("/", &user);
        assert_eq!((answer.status, answer.header("ratelimit")), (200, None), "{answer:?}");
    }
    assert_eq!(envoy.stat("failure_mode_allowed"), 12);
    assert_eq!(app.asked(), 13);
}

#[test]
fn without_sluicegate_requests_are_denied_where_that_is_wanted() {
    let (server, app) = (sluicegate(), App::start());
    let closed = [
        ("failure_mode_deny: false", "failure_mode_deny: true"),
        ("timeout: 0.1s", "timeout: 20s"),
    ];
    let envoy = Envoy::start_with(server.address_of("grpc"), app.address, &closed);
    assert_eq!(envoy.get("/", &[]).status, 200);
    drop(server);
    for _ in 0..3 {
        assert_eq!(envoy.get("/", &[]).status, 500);
    }
    assert_eq!(app.asked(), 1);
}

#[test]
fn envoy_is_limited_as_its_caller_and_not_at_all_without_one() {
    let (server, app) = (sluicegate(), App::start());
    let token = create(&server, &[spec("envoy", &[Right::Check])]).remove(0);
    let envoy = Envoy::start_as(&token, server.address_of("grpc"), app.address);
    for status in [200, 200, 429] {
        assert_eq!(envoy.get("/login", &[]).status, status);
    }
    assert_eq!((envoy.stat("over_limit"), envoy.stat("error")), (1, 0));

    let envoy = Envoy::start(server.address_of("grpc"), app.address);
    assert_eq!(envoy.get("/login", &[]).status, 200);
    assert_eq!((envoy.stat("error"), envoy.stat("failure_mode_allowed")), (1, 1));
    let refused = r#"sluicegate_caller_refusals_total{door="grpc",reason="missing"} 1"#;
    assert!(server.get("/metrics").body.lines().any(|line| line == refused));
}

#[test]
fn envoy_goes_on_when_sluicegate_is_back() {
    let (server, app) = (sluicegate(), App::start());
    let address = server.address_of("grpc");
    let envoy = Envoy::start(address, app.address);
    assert!(envoy.get("/", &[]).header("ratelimit").is_some());
    drop(server);
    assert_eq!(envoy.get("/", &[]).header("ratelimit"), None);
    let again = with_rules(RULES).env("SLUICEGATE_LISTEN_GRPC", &address.to_string()).start();
    eventually("Envoy to ask again", || envoy.get("/", &[]).header("ratelimit").map(drop));
    drop(again);
}

#[test]
fn a_request_can_cost_more_and_its_cost_can_be_corrected() {
    let server = with_rules(RULES).with_grpc().args(&REFUNDS).start();
    let app = App::start();
    let costs = "domain: edge
              rate_limits:
              - actions:
                - request_headers: { header_name: x-user-id, descriptor_key: user_id }
                hits_addend: { format: \"%REQ(x-cost)%\" }
              - actions:
                - request_headers: { header_name: x-back, descriptor_key: user_id }
                hits_addend: { number: 2, is_negative_hits: true }
                apply_on_stream_done: true
              ";
    // Replaces the descriptors of the example file.
    let text = std::fs::read_to_string(crate::envoy::proxy::example()).unwrap();
    let from = text.find("domain: edge").unwrap();
    let to = text.find("failure_mode_deny: false").unwrap();
    let changes = [(&text[from..to], costs), ("timeout: 0.1s", "timeout: 20s")];
    let envoy = Envoy::start_with(server.address_of("grpc"), app.address, &changes);
    let left = |headers: &[(&str, &str)]| {
        let answer = envoy.get("/", headers);
        answer.header("x-ratelimit-remaining").map(|left| (answer.status, left.to_owned()))
    };
    assert_eq!(left(&[("x-user-id", "42"), ("x-cost", "7")]), Some((200, "3".into())));
    assert_eq!(left(&[("x-user-id", "42"), ("x-cost", "4")]), Some((429, "3".into())));
    // Refunded in a separate call when the response is complete.
    assert_eq!(envoy.get("/", &[("x-back", "42")]).status, 200);
    eventually("two tokens to come back", || {
        (left(&[("x-user-id", "42"), ("x-cost", "0")])?.1 == "5").then_some(())
    });
}

#[test]
fn envoys_own_fields_are_not_sent_twice() {
    let (server, app) = (sluicegate(), App::start());
    let off = [
        (
            "enable_x_ratelimit_headers: DRAFT_VERSION_03",
            "disable_x_envoy_ratelimited_header: true",
        ),
        ("timeout: 0.1s", "timeout: 20s"),
    ];
    let envoy = Envoy::start_with(server.address_of("grpc"), app.address, &off);
    let answer = envoy.get("/", &[]);
    assert!(answer.header("ratelimit").is_some());
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-ratelimit")), "{answer:?}");
}
