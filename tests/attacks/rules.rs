//! Rules that cost more than they should.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Launch, Server, check, now, with_rules};
use crate::sockets::resp_reply;

/// Length of the path that a client sends: the most that a value may have.
const PATH_BYTES: usize = 1024;

/// A file with one rule for each of these endpoints.
fn file_of(endpoints: impl Iterator<Item = String>) -> String {
    let mut file = String::new();
    for (number, endpoint) in endpoints.enumerate() {
        let _ = write!(
            file,
            "[[rule]]\nkey_pattern = 'r{number}:{{ip}}'\ntokens = 9\nperiod = 1\nconditions.endpoint = '{endpoint}'\n"
        );
    }
    file
}

/// Shortest time of a few checks with this path, and the answer.
fn fastest(server: &Server, path: &str) -> (Duration, Value) {
    let mut client = Client::connect(server.address).unwrap();
    let body = json!({"ip": "192.0.2.1", "endpoint": path}).to_string();
    let json = [("content-type", "application/json")];
    let mut once = || {
        let started = now();
        let answer = client.request("POST", "/v1/check", &json, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        now() - started
    };
    let time = (0..20).map(|_| once()).min().unwrap();
    (time, check(server, &json!({"ip": "192.0.2.1", "endpoint": path, "cost": 0})))
}

/// A path of up to [`PATH_BYTES`] that repeats this text between a start and an end.
fn long(start: &str, repeated: &str, end: &str) -> String {
    let count = (PATH_BYTES - start.len() - end.len()) / repeated.len();
    format!("{start}{}{end}", repeated.repeat(count))
}

#[test]
fn a10_a_long_path_costs_little_whatever_the_globs() {
    let plain = with_rules(&file_of(["/**".to_owned()].into_iter())).start();
    let ordinary = |n: usize| match n % 4 {
        0 => format!("/api/*/resource{n}/**"),
        1 => format!("**/resource{n}/*"),
        2 => format!("/api/**/resource{n}*/edit"),
        _ => format!("/api/*/*/resource{n}"),
    };
    let ordinary = with_rules(&file_of((0..1000).map(ordinary))).start();
    // Every literal of these globs is in the path.
    let spelt = |n: usize| format!("{n:014b}").replace('0', "*a").replace('1', "*b");
    let hostile = |n: usize| format!("/{}*a*b*a*b*a*b*a/x", spelt(n));
    let hostile = with_rules(&file_of((0..10_000).map(hostile))).start();

    let paths = [
        long("/api", "/resource12/a/b", ""),
        long("/", "ab", "/x"),
        long("/", "aab", "/x"),
        long("/", "ba", "/x"),
        long("/", "a", ""),
    ];
    for path in &paths {
        let answers = [&plain, &ordinary, &hostile].map(|server| fastest(server, path));
        let times = answers.each_ref().map(|(time, _)| *time);
        // The bound of work denies hostile requests only.
        assert_eq!(answers[1].1["too_costly"], Value::Null, "{}", answers[1].1);
        if path.ends_with("a/x") {
            assert_eq!(answers[2].1["too_costly"], true, "{}", answers[2].1);
            assert_eq!(answers[2].1["allowed"], false);
        }
        eprintln!(
            "{:.12}...: 1 rule {:?}, 1000 ordinary {:?}, 10000 hostile {:?}",
            path, times[0], times[1], times[2]
        );
        // Far below the cost of comparing every glob with the whole path.
        let most = times[0] * 20 + Duration::from_millis(50);
        assert!(times[1] < most, "ordinary globs: {times:?}");
        // The whole budget, in a debug build on a busy machine.
        assert!(times[2] < most + Duration::from_secs(2), "hostile globs: {times:?}");
    }
}

/// Globs with a long common start do not count as met together, and `explain` agrees.
#[test]
fn a10_a_request_that_meets_one_of_many_similar_rules_is_allowed() {
    let tenant = |n: usize| format!("/api/v1/organizations/tenants/t-{n:04}-*");
    let server = with_rules(&file_of((0..1_100).map(tenant))).start();
    for n in [0, 700, 1_099] {
        let path = format!("/api/v1/organizations/tenants/t-{n:04}-x");
        let request = json!({"ip": "192.0.2.1", "endpoint": path});
        let allowed = check(&server, &request);
        assert_eq!(allowed["allowed"], true, "{allowed}");
        assert_eq!(allowed["tiers"].as_array().map(Vec::len), Some(1));
        let explained = server.post_json("/v1/explain", &request.to_string()).json();
        assert_eq!(explained["allowed"], true);
        let applies = |rule: &&Value| rule["applies"] == true;
        assert_eq!(explained["rules"].as_array().unwrap().iter().filter(applies).count(), 1);
    }
}

#[test]
fn a10_a_request_that_meets_too_many_rules_is_denied_and_charges_nothing() {
    const RULES: usize = 2_000;
    const MESSAGE: &str = "request denied: it meets more rules than limits.tiers_max; `sluicegate explain` lists them";
    // Sixty rules for /a, and all of them for /b.
    let endpoint = |n: usize| if n < 60 { "/*" } else { "/b*" }.to_owned();
    let rules = file_of((0..RULES).map(endpoint));
    let server = with_rules(&rules).with_resp().args(&["--proxies-trusted", "127.0.0.1"]).start();
    let request = |path: &str| json!({"ip": "192.0.2.1", "endpoint": path, "cost": 9});

    let denied = check(&server, &request("/b"));
    assert_eq!(denied["allowed"], false);
    assert_eq!(denied["too_many_rules"], RULES);
    assert_eq!(denied["tiers"], json!([]));
    for absent in ["retry_after_ms", "rule_id", "violated_rule", "limit"] {
        assert_eq!(denied[absent], Value::Null, "{absent}");
    }

    let batch = Value::Array(vec![request("/b"); 100]).to_string();
    let answer = server.post_json("/v1/check/batch", &batch);
    eprintln!("{RULES} matching rules, a batch of 100: {} bytes", answer.body.len());
    assert!(answer.body.len() < 64 << 10);

    let answer = server.request("GET", "/v1/authorize", &[("x-forwarded-uri", "/b")], "");
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.header("retry-after"), None);
    assert!(answer.body.contains("more than 64 rules apply"), "{}", answer.body);

    let descriptor = json!({"domain": "d", "descriptors": [{"entries": [
        {"key": "ip", "value": "192.0.2.1"}, {"key": "endpoint", "value": "/b"},
    ]}]});
    let answer = server.post_json("/json", &descriptor.to_string());
    assert_eq!(answer.status, 429, "{answer:?}");

    let reply = resp_reply(server.address_of("resp"), "SG.CHECK ip 192.0.2.1 endpoint /b");
    assert!(reply.contains(":0\r\n") && reply.contains(":-1\r\n"), "{reply}");

    // Nothing of it was charged: the sixty buckets of /a still hold all nine tokens.
    let allowed = check(&server, &request("/a"));
    assert_eq!(allowed["allowed"], true, "{allowed}");
    assert_eq!(allowed["tiers"].as_array().map(Vec::len), Some(60));

    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_too_many_rules_total 104"), "{metrics}");
    let line = server.wait_for_log(MESSAGE);
    assert_eq!(line["rules"], RULES, "{line}");
    let lines = server.stderr().matches("meets more rules").count();
    eprintln!("104 denials: {lines} log lines");
    assert!(lines <= 5);
}

/// Sixty-five rules without conditions.
fn unconditional() -> Vec<Value> {
    let rule = |n: u32| json!({"key_pattern": format!("r{n}:{{ip}}"), "tokens": 1, "period": 1});
    (0..65).map(rule).collect()
}

#[test]
fn a10_more_rules_without_conditions_than_a_request_may_meet_are_not_saved() {
    let server = Launch::serve(&[]).start();
    let send = |method: &str, path: &str, body: &Value| {
        let json = [("content-type", "application/json")];
        server.request(method, path, &json, &body.to_string())
    };
    let rules = unconditional();
    let refused = send("PUT", "/v1/rules", &json!({"rules": &rules}));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("65 active rules without conditions"), "{}", refused.body);
    let saved = send("PUT", "/v1/rules", &json!({"rules": &rules[1..]}));
    assert_eq!(saved.status, 200, "{saved:?}");
    let refused = send("POST", "/v1/rules", &rules[0]);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains(r#""field":"conditions""#), "{}", refused.body);
    // With a condition, or for one of them instead of all, it is saved.
    let mut conditional = rules[0].clone();
    conditional["conditions"] = json!({"endpoint": "/login"});
    assert_eq!(send("POST", "/v1/rules", &conditional).status, 201);
    assert_eq!(check(&server, &json!({"ip": "192.0.2.1"}))["tiers"].as_array().unwrap().len(), 64);
}

/// A rules file is refused as a whole: at the start with the line, later with the last good rules in force (T35).
#[test]
fn a10_a_file_with_too_many_rules_without_conditions_is_refused_whole() {
    let rule = |n: u32| format!("[[rule]]\nkey_pattern = 'r{n}:{{ip}}'\nrate_per_second = 1\n");
    let file = |count: u32| (0..count).map(rule).collect::<String>();
    let failed = with_rules(&file(65)).run();
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    assert!(failed.stderr.contains("65 active rules without conditions"), "{}", failed.stderr);

    let server = with_rules(&file(64)).start();
    std::fs::write(server.folder().join("r.toml"), file(65)).unwrap();
    server.wait_for_log("rules not reloaded: the last valid ones stay in force");
    let tiers = || check(&server, &json!({"ip": "192.0.2.1"}))["tiers"].as_array().unwrap().len();
    assert_eq!(tiers(), 64);

    let raised = with_rules(&file(65)).args(&["--limits-tiers-max", "65"]).start();
    assert_eq!(check(&raised, &json!({"ip": "192.0.2.1"}))["tiers"].as_array().unwrap().len(), 65);
}
