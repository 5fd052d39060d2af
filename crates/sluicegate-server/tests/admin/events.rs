//! `/v1/events`: live figures once per second.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{
    Client, Launch, Response, Server, check, eventually, now, on_every_store, with_rules,
};

const TOKEN: &str = "correct-horse-battery-staple";

/// Maximum number of concurrent watchers.
const WATCHERS_MAX: usize = 64;

/// Maximum number of concurrent watchers of one token or address.
const WATCHERS_PER_CLIENT_MAX: usize = 16;

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
plan = "free"
tokens = 3
period = "1d"

[[rule]]
rule_id = 2
key_pattern = "login:{ip}"
scope = "custom"
tokens = 1
period = "1d"
mode = "shadow"

[[rule]]
rule_id = 3
key_pattern = "global"
tokens = 10
period = "1d"

[[rule]]
rule_id = 4
key_pattern = "internal"
tokens = 1
period = "1d"
mode = "unlimited"

[[rule]]
rule_id = 5
key_pattern = "closed"
tokens = 1
period = "1d"
is_active = false
"#;

/// A stream of events.
struct Events {
    client: Client,
    /// Received text that is not a complete event yet.
    text: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    id: Option<u64>,
    data: Value,
}

impl Events {
    /// Sends the request and reads the head of the answer.
    fn ask(server: &Server, method: &str, headers: &[(&str, &str)]) -> (Response, Self) {
        let mut client = server.connect();
        let mut head = format!("{method} /v1/events HTTP/1.1\r\nhost: {}\r\n", server.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        client.send((head + "\r\n").as_bytes()).unwrap();
        (client.read_head().unwrap(), Self { client, text: String::new() })
    }

    /// The same from the address 127.0.0.`host`.
    fn ask_from(server: &Server, host: usize) -> (Response, Self) {
        let from = std::net::Ipv4Addr::new(127, 0, 0, host as u8).into();
        let mut client = Client::connect_from(from, server.address).unwrap();
        let head = format!("GET /v1/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        client.send(head.as_bytes()).unwrap();
        (client.read_head().unwrap(), Self { client, text: String::new() })
    }

    fn open_from(server: &Server, host: usize) -> Self {
        let (response, events) = Self::ask_from(server, host);
        assert_eq!(response.status, 200, "{response:?}");
        events
    }

    fn open(server: &Server) -> Self {
        let (response, events) = Self::ask(server, "GET", &[]);
        assert_eq!(response.status, 200, "{response:?}");
        events
    }

    /// Next event; `None` at the end of the stream.
    fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = Event::parse(event);
                self.text = rest.to_owned();
                return Ok(Some(event));
            }
            let chunk = self.client.read_chunk()?;
            if chunk.is_empty() {
                assert_eq!(self.text, "", "it ends between events");
                return Ok(None);
            }
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }

    /// Next tick.
    fn tick(&mut self) -> Value {
        let event = self.next().unwrap().unwrap();
        assert_eq!(event.name, "tick", "{event:?}");
        event.data
    }

    /// First tick that satisfies `is_it`.
    fn tick_that(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let started = now();
        loop {
            let tick = self.tick();
            if is_it(&tick) {
                return tick;
            }
            assert!(now() - started < Duration::from_secs(20), "{what}: {tick}");
        }
    }

    /// Reads to the end of the stream.
    fn read_to_end(&mut self) {
        while self.next().unwrap().is_some() {}
    }
}

impl Event {
    fn parse(text: &str) -> Self {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        Self {
            name: field("event: ").unwrap_or_default().to_owned(),
            id: field("id: ").map(|id| id.parse().unwrap()),
            data: serde_json::from_str(field("data: ").unwrap()).unwrap(),
        }
    }
}

fn find<'a>(list: &'a Value, field: &str, value: impl Into<Value>) -> Option<&'a Value> {
    let value = value.into();
    list.as_array().unwrap().iter().find(|item| item[field] == value)
}

/// Numbers of decisions: granted, denied and never.
fn counts(of: &Value) -> [u64; 3] {
    ["granted", "denied", "never"].map(|outcome| of[outcome].as_u64().unwrap())
}

/// Sums the counts of ticks until they reach `expected`.
fn sum(events: &mut Events, expected: &[[u64; 3]], of: impl Fn(&Value) -> Vec<[u64; 3]>) -> Value {
    let mut sums = vec![[0; 3]; expected.len()];
    let started = now();
    loop {
        let tick = events.tick();
        for (sum, counts) in sums.iter_mut().zip(of(&tick)) {
            *sum = [0, 1, 2].map(|outcome| sum[outcome] + counts[outcome]);
        }
        if sums == expected {
            return tick;
        }
        assert!(now() - started < Duration::from_secs(20), "{sums:?} is not {expected:?}: {tick}");
    }
}

fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").body;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name} in {metrics}")).trim().parse().unwrap()
}

#[test]
fn first_what_was_and_then_what_is() {
    let server = Server::start(&[]);
    let (response, mut events) = Events::ask(&server, "GET", &[]);
    assert_eq!(response.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
    let history = events.next().unwrap().unwrap();
    assert_eq!((history.name.as_str(), history.id), ("history", None));
    assert_eq!(history.data, json!({"every_ms": 1000, "ticks": []}));
    let ticks: Vec<_> = (0..3).map(|_| events.next().unwrap().unwrap()).collect();
    assert!(ticks.is_sorted_by(|one, next| one.id < next.id), "{ticks:?}");
    let tick = &ticks[0].data;
    assert!(tick["now"].as_str().unwrap().ends_with('Z'), "{tick}");
    assert!((0.9..5.0).contains(&tick["seconds"].as_f64().unwrap()), "{tick}");
    let scopes = tick["tiers"].as_array().unwrap().iter().map(|tier| tier["scope"].as_str());
    let scopes: Vec<_> = scopes.map(Option::unwrap).collect();
    assert_eq!(scopes, ["global", "ip", "endpoint", "user", "custom"]);
    assert_eq!(tick["latency"], json!({"count": 0, "p50_us": null, "p99_us": null}));
    assert_eq!(tick["store"], json!({"kind": "memory", "is_in_trouble": false}));
    assert_eq!(tick["database"], json!({"is_in_trouble": false}));
    assert_eq!((&tick["rules_refused"], &tick["degraded"]), (&Value::Null, &json!(0)));

    // A later watcher gets them as history, shortened, and then the next ticks.
    let mut second = Events::open(&server);
    let told = second.next().unwrap().unwrap().data["ticks"].take();
    let told = told.as_array().unwrap();
    assert!(told.len() >= 3, "{told:?}");
    for (told, tick) in told.iter().zip(&ticks) {
        assert_eq!(
            (&told["now"], &told["limited"], &told["shared"]),
            (&tick.data["now"], &json!([]), &json!([]))
        );
    }
    let next = second.tick();
    assert!(next["now"].as_str() > told.last().unwrap()["now"].as_str(), "{next}");
}

#[test]
fn decisions_are_counted_by_rule_and_by_tier() {
    let server = with_rules(RULES).start();
    let mut events = Events::open(&server);
    events.next().unwrap();
    let request = json!({"user_id": "42", "plan": "free", "ip": "203.0.113.9"});
    for _ in 0..5 {
        check(&server, &request);
    }
    let dear = json!({"user_id": "42", "plan": "free", "cost": 4});
    assert_eq!(check(&server, &dear)["retry_after_ms"], Value::Null);
    server.post_json("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": 1}"#);
    let of = |tick: &Value| {
        let rules = [1, 2, 3].map(|id| find(&tick["rules"], "rule_id", id).map_or([0; 3], counts));
        let tiers = ["user", "custom", "global"];
        let tiers = tiers.map(|scope| counts(find(&tick["tiers"], "scope", scope).unwrap()));
        let requests = ["allowed", "denied"].map(|name| tick["requests"][name].as_u64().unwrap());
        let rest =
            [counts(&tick["take"]), counts(&tick["other_rules"]), [requests[0], requests[1], 0]];
        [&rules[..], &tiers, &rest].concat()
    };
    let expected = [
        [3, 2, 1],
        // The rule in shadow mode granted one, and is in no tier.
        [1, 4, 0],
        [3, 0, 0],
        [3, 2, 1],
        [0, 0, 0],
        [3, 0, 0],
        [1, 0, 0],
        [0, 0, 0],
        // Each request counts once, however many rules decided on it.
        [4, 3, 0],
    ];
    let tick = sum(&mut events, &expected, of);
    let busy = |tick: &Value| tick["latency"]["count"].as_u64() > Some(0);
    if busy(&tick) {
        assert!(tick["latency"]["p99_us"].as_u64() >= tick["latency"]["p50_us"].as_u64(), "{tick}");
    }
    assert!(tick["audit"]["noted"].as_u64() >= Some(7), "{tick}");

    let limited = &events.tick()["limited"];
    let shadow = find(limited, "mode", "shadow").unwrap();
    for (field, value) in [
        ("rule_id", json!(2)),
        ("key_pattern", json!("login:{ip}")),
        ("scope", json!("custom")),
        ("plan", Value::Null),
        ("bucket_key", json!("login:203.0.113.9")),
        ("subject", json!("203.0.113.9")),
        ("ip_address", json!("203.0.113.9")),
        ("user_id", json!("42")),
        ("endpoint", Value::Null),
        ("denied", json!(4)),
    ] {
        assert_eq!(shadow[field], value, "{field} of {shadow}");
    }
    let enforced = find(limited, "mode", "enforce").unwrap();
    assert_eq!((&enforced["bucket_key"], &enforced["denied"]), (&json!("user:42"), &json!(3)));
    assert_eq!(limited.as_array().unwrap().len(), 2, "{limited}");
}

#[test]
fn subjects_are_named_as_the_audit_records_them() {
    let server = with_rules(RULES)
        .env("SLUICEGATE_AUDIT_PRIVACY", "hashed")
        .env("SLUICEGATE_AUDIT_PRIVACY_KEY", "a-key-that-is-long-enough-to-be-one")
        .start();
    let mut events = Events::open(&server);
    events.next().unwrap();
    let request = json!({"user_id": "alice", "plan": "free", "ip": "203.0.113.9", "cost": 4});
    check(&server, &request);
    let is_there = |tick: &Value| tick["limited"].as_array().is_some_and(|it| !it.is_empty());
    let tick = events.tick_that("a subject", is_there);
    let enforced = find(&tick["limited"], "mode", "enforce").unwrap();
    let told = enforced.to_string();
    assert!(!told.contains("alice") && !told.contains("203.0.113"), "{told}");
    assert!(enforced["subject"].as_str().unwrap().starts_with("h:"), "{told}");
    let violation = eventually("the violation", || {
        let violations = server.get("/v1/violations?mode=enforce").json();
        violations["violations"].get(0).cloned()
    });
    for field in ["bucket_key", "user_id", "ip_address"] {
        assert_eq!(enforced[field], violation[field], "{field}");
    }
}

#[test]
fn shared_buckets_are_peeked_and_not_charged() {
    on_every_store(
        || with_rules(RULES),
        |server| {
            let mut events = Events::open(server);
            events.next().unwrap();
            let full = events.tick_that("an answer", |tick| !tick["shared"][0]["limit"].is_null());
            let rate = full["shared"][0]["rate_per_second"].as_f64().unwrap();
            assert!((rate - 10.0 / 86_400.0).abs() < 1e-9, "{rate}");
            // Without unlimited rules and rules that are switched off.
            let shared = json!([{
                "rule_id": 3, "key_pattern": "global", "scope": "global", "plan": null, "mode": "enforce",
                "rate_per_second": rate, "limit": 10, "remaining": 10, "utilisation": 0.0,
            }]);
            assert_eq!(full["shared"], shared);
            for _ in 0..4 {
                check(server, &json!({}));
            }
            let spent = events.tick_that("four", |tick| tick["shared"][0]["remaining"] == 6);
            assert_eq!(spent["shared"][0]["utilisation"], json!(0.4), "{spent}");
            assert_eq!(events.tick()["shared"][0]["remaining"], 6, "looking takes nothing");
        },
    );
}

#[test]
fn a_failed_store_is_reported() {
    let redis = RedisServer::start(Flavour::Redis70);
    let launch = Launch::serve(&["--rules", "r.toml"]).file("r.toml", RULES);
    let server = launch.env("SLUICEGATE_STORE_URL", &redis.url()).start();
    let mut events = Events::open(&server);
    events.next().unwrap();
    let well = events.tick_that("Redis", |tick| tick["shared"][0]["limit"] == 10);
    assert_eq!(well["store"], json!({"kind": "redis", "is_in_trouble": false}));
    redis.kill();
    eventually("its end", || {
        check(&server, &json!({}))["degraded"].as_bool().filter(|degraded| *degraded)
    });
    let tick = events.tick_that("decisions without it", |tick| tick["degraded"] != 0);
    assert_eq!(tick["store"]["kind"], "redis");
    let tick = events.tick_that("trouble", |tick| tick["store"]["is_in_trouble"] == true);
    for field in ["limit", "remaining", "utilisation"] {
        assert_eq!(tick["shared"][0][field], Value::Null, "{tick}");
    }
    redis.restart();
    let tick = events.tick_that("its return", |tick| tick["store"]["is_in_trouble"] == false);
    assert_eq!(tick["store"]["kind"], "redis");
    events.tick_that("its figures", |tick| tick["shared"][0]["limit"] == 10);
}

#[test]
fn it_is_for_readers_and_for_nothing_but_looking() {
    let server = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", TOKEN).start();
    let bearer = format!("Bearer {TOKEN}");
    let status = |method, headers: &[_]| Events::ask(&server, method, headers).0.status;
    assert_eq!(status("GET", &[]), 401);
    assert_eq!(status("GET", &[("authorization", "Bearer wrong")]), 401);
    let cross_site = [("authorization", bearer.as_str()), ("sec-fetch-site", "cross-site")];
    assert_eq!(status("GET", &cross_site), 403);
    let token = [("authorization", bearer.as_str())];
    assert_eq!(status("GET", &token), 200);
    assert_eq!(status("HEAD", &token), 200);
    assert_eq!(status("POST", &token), 405);
    let odd = server.request("GET", "/v1/events?after=5", &token, "");
    assert_eq!((odd.status, &odd.json()["field"]), (400, &json!("after")));
}

#[test]
fn so_many_may_watch_and_no_more() {
    let server = Server::start(&[]);
    // They are connected and do not read.
    let mut watchers: Vec<_> = (0..WATCHERS_MAX)
        .map(|n| Events::open_from(&server, 1 + n / WATCHERS_PER_CLIENT_MAX))
        .collect();
    assert_eq!(metric(&server, "sluicegate_live_watchers "), WATCHERS_MAX as u64);
    let (refused, _) = Events::ask_from(&server, 5);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(metric(&server, "sluicegate_live_watchers_refused_total "), 1);
    // Watchers that do not read do not delay others.
    let last = watchers.last_mut().unwrap();
    last.next().unwrap();
    assert_eq!(last.tick()["degraded"], 0);
    // A watcher that disconnects frees its slot.
    drop(watchers.pop());
    let mut next = eventually("room", || {
        let (response, events) = Events::ask_from(&server, 5);
        (response.status == 200).then_some(events)
    });
    assert_eq!(next.next().unwrap().unwrap().name, "history");
    drop((next, watchers));
    eventually("the end of them", || {
        (metric(&server, "sluicegate_live_watchers ") == 0).then_some(())
    });
}

#[test]
fn a_watcher_that_reads_is_not_cut_off() {
    let server = Server::start(&["--limits-idle-timeout-ms", "2500"]);
    let mut events = Events::open(&server);
    events.next().unwrap();
    for _ in 0..4 {
        events.tick();
    }
}

#[test]
fn it_ends_at_once_when_the_service_does() {
    let server = Server::start(&["--shutdown-grace-ms", "2500"]);
    let mut events = Events::open(&server);
    events.next().unwrap();
    events.tick();
    // Another watcher does not read.
    let _deaf = Events::open(&server);
    let asked = now();
    server.signal("TERM");
    events.read_to_end();
    assert!(now() - asked < Duration::from_secs(2), "{:?}", now() - asked);
    let finished = server.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(now() - asked < Duration::from_secs(5), "{:?}", now() - asked);
}
