//! Behaviour common to all proxies.

use std::thread;

use crate::common::{Client, Response, eventually, now};
use crate::proxies::proxy::{Kind, Patience};
use crate::proxies::stage::Stage;

/// Maximum time of an answer if Sluicegate does not answer and the proxy fails open: well below the default timeouts
/// of some proxies, and well above the delays of a busy machine.
const SOON_MS: u128 = 2_000;

impl Kind {
    /// True if the rate limit fields are on allowed answers too.
    fn tells_when_allowed(self) -> bool {
        !matches!(self, Self::Traefik | Self::CaddyShort)
    }

    /// True if the body of a denial is Sluicegate's.
    fn passes_body(self) -> bool {
        !matches!(self, Self::Nginx403 | Self::Nginx429)
    }

    /// Status of its answers while Sluicegate is stopped; `None` if it fails open.
    pub(crate) fn status_without_sluicegate(self) -> Option<u16> {
        match self {
            Self::Traefik => Some(500),
            Self::CaddyShort => Some(502),
            _ => None,
        }
    }
}

pub(crate) fn clients_see_the_limits(kind: Kind) {
    let stage = Stage::set(kind, Patience::Long);
    for left in (0..3).rev() {
        let response = stage.request("POST", "/limited/a?b=c&deny=403", &[], "hello");
        assert_eq!(response.status, 200, "{response:?} {}", stage.proxy.log());
        // The application received the complete request.
        let got = response.json();
        assert_eq!((&got["method"], &got["body"]), (&"POST".into(), &"hello".into()));
        assert_eq!(got["path"], "/limited/a?b=c&deny=403");
        let told = kind.tells_when_allowed();
        let policy = told.then_some(r#""ip";q=3;w=10800"#);
        assert_eq!(response.header("ratelimit-policy"), policy, "{response:?}");
        let ratelimit = format!(r#""ip";r={left};t=3600"#);
        assert_eq!(response.header("ratelimit"), told.then_some(ratelimit.as_str()));
        assert_eq!(response.header("retry-after"), None);
    }
    for method in ["GET", "POST"] {
        let body = if method == "POST" { "hello" } else { "" };
        let response = stage.request(method, "/limited/b?b=c", &[], body);
        is_denied(kind, &response);
    }
    let mut client = stage.proxy.connect();
    client
        .send(b"HEAD /limited/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let head = client.read_to_end();
    assert!(head.starts_with("HTTP/1.1 429 ") && head.ends_with("\r\n\r\n"), "{head}");

    // Statuses of the application are forwarded.
    for (path, status) in [("/forbidden", 403), ("/broken", 500)] {
        let response = stage.request("GET", path, &[], "");
        assert_eq!((response.status, &response.json()["path"]), (status, &path.into()));
    }
}

/// Asserts a denial as documented.
fn is_denied(kind: Kind, response: &Response) {
    assert_eq!(response.status, 429, "{response:?}");
    assert_eq!(response.header("retry-after"), Some("3600"), "{response:?}");
    assert_eq!(response.header("ratelimit-policy"), Some(r#""ip";q=3;w=10800"#));
    assert_eq!(response.header("ratelimit"), Some(r#""ip";r=0;t=3600"#));
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    assert_eq!(response.header("x-app"), None);
    let body = response.json();
    assert_eq!(body["status"], 429);
    let policies = kind.passes_body().then(|| serde_json::json!(["ip"]));
    assert_eq!(body.get("violated-policies"), policies.as_ref());
}

pub(crate) fn clients_cannot_bypass_the_limit(kind: Kind) {
    let stage = Stage::set(kind, Patience::Long);
    users_have_buckets_of_their_own(&stage);
    clients_cannot_be_others(&stage);
    all_at_once(&stage);
}

fn users_have_buckets_of_their_own(stage: &Stage) {
    let allowed = |user: &str| {
        (0..5)
            .filter(|_| stage.request("GET", "/users", &[("x-api-key", user)], "").status == 200)
            .count()
    };
    assert_eq!((allowed("ann"), allowed("bob")), (2, 2));
}

/// Header fields of a client and spellings of a path do not change its bucket.
fn clients_cannot_be_others(stage: &Stage) {
    // As many as proxies accept.
    let many: Vec<_> = (0..90).map(|number| format!("x-many-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "1")).collect();
    let long = "c=".to_owned() + &"x".repeat(6000);
    let tricks: [(&str, &[(&str, &str)]); 12] = [
        ("/login", &[]),
        ("//login", &[]),
        ("/x/../login?y", &[("x-forwarded-for", "203.0.113.7")]),
        ("/%6cogin", &[("x-real-ip", "203.0.113.8"), ("forwarded", "for=203.0.113.9")]),
        ("/login", &[("x-forwarded-uri", "/other"), ("x-original-uri", "/other")]),
        ("/login", &[("x-forwarded-method", "GET"), ("x-original-method", "GET")]),
        ("/login", &[("x-original-uri", "/a"), ("x-original-uri", "/b")]),
        ("/login", &[("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "::1")]),
        ("/login", &[("connection", "x-forwarded-for, x-forwarded-uri, x-forwarded-method")]),
        ("/login", &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]),
        ("/login", &[("cookie", &long), ("x-long", &long)]),
        ("/login", &many),
    ];
    let mut statuses = Vec::new();
    for (path, headers) in tricks {
        statuses.push(stage.request_from_afar("POST", path, headers).status);
    }
    let allowed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((allowed, &statuses[..4]), (4, &[200; 4][..]), "{statuses:?} {}", stage.proxy.log());
    assert!(statuses[4..].iter().all(|status| *status == 429), "{statuses:?}");
    // Only the client's bucket was charged.
    assert_eq!(stage.request("POST", "/login", &[], "").status, 200);
}

/// Concurrent clients are granted exactly the capacity.
fn all_at_once(stage: &Stage) {
    let allowed: usize = thread::scope(|scope| {
        let ask = || {
            let ask = || stage.request("GET", "/crowd", &[("host", "Crowd.example")], "").status;
            (0..10).filter(|_| ask() == 200).count()
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(allowed, 20, "{}", stage.proxy.log());
}

pub(crate) fn sluicegate_may_be_down(kind: Kind) {
    let stage = Stage::set(kind, Patience::AsWritten);
    // Repeated, because a busy machine may miss the proxy's timeout.
    let drained = || stage.request("GET", "/limited/a", &[], "").status == 429;
    eventually("a denial", || drained().then_some(()));
    // Sluicegate accepts the connection and does not answer. Traefik would wait for half a minute.
    if kind != Kind::Traefik {
        stage.sluicegate.signal("STOP");
        eventually("a standstill", || stands_still(stage.sluicegate.pid()).then_some(()));
        match kind.status_without_sluicegate() {
            None => is_let_through(&stage),
            Some(_) => is_refused(&stage, 504),
        }
        stage.sluicegate.signal("CONT");
        eventually("a denial", || drained().then_some(()));
    }
    stage.sluicegate.signal("KILL");
    eventually("the end", || Client::connect(stage.sluicegate.address).is_err().then_some(()));
    match kind.status_without_sluicegate() {
        None => is_let_through(&stage),
        Some(status) => is_refused(&stage, status),
    }
}

fn is_refused(stage: &Stage, status: u16) {
    let started = now();
    let response = stage.request("POST", "/limited/a", &[], "hello");
    let took = now() - started;
    assert_eq!((response.status, response.body.as_str()), (status, ""));
    assert!(took.as_millis() < SOON_MS, "took {took:?}");
}

/// True if every thread of a process is stopped, which takes a moment after the signal.
fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let state = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state.rsplit(')').next().is_some_and(|state| state.trim_start().starts_with('T'))
    })
}

fn is_let_through(stage: &Stage) {
    let started = now();
    let response = stage.request("POST", "/limited/a", &[], "hello");
    let took = now() - started;
    assert_eq!(response.status, 200, "{response:?} {}", stage.proxy.log());
    assert_eq!(response.json()["body"], "hello");
    assert_eq!(response.header("ratelimit"), None);
    assert!(took.as_millis() < SOON_MS, "took {took:?}");
}
