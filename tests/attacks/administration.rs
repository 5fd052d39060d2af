//! Attempts to administer without the right to.

use serde_json::Value;

use crate::common::{Launch, Response, Server, eventually};

/// Fields by which a proxy says that it passes a request on, with values that claim this machine.
const OF_PROXIES: [(&str, &str); 9] = [
    ("x-forwarded-for", "127.0.0.1"),
    ("X-Forwarded-For", ""),
    ("forwarded", "for=127.0.0.1;host=localhost"),
    ("x-forwarded-proto", "http"),
    ("x-forwarded-host", "localhost"),
    ("x-forwarded-server", "localhost"),
    ("x-real-ip", "::1"),
    ("via", "1.1 localhost"),
    ("VIA", "2 edge"),
];

/// Operations that need a token, with their paths, as the service itself describes them.
fn operations(server: &Server) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let path: String = path.split('/').skip(1).map(of_segment).collect();
        let methods = item.as_object().unwrap().iter();
        let guarded = methods.filter(|(_, operation)| operation.get("security").is_some());
        guarded.map(|(method, _)| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// A segment of a path, with 1 for a parameter.
fn of_segment(segment: &str) -> String {
    let is_parameter = segment.starts_with('{');
    format!("/{}", if is_parameter { "1" } else { segment })
}

fn rules(server: &Server) -> usize {
    server.get("/v1/rules").json()["rules"].as_array().unwrap().len()
}

/// The answer of an operation with this field.
fn through_a_proxy(server: &Server, method: &str, path: &str, field: (&str, &str)) -> Response {
    let json = ("content-type", "application/json");
    let mut client = server.connect();
    client.request(method, path, &[field, json], b"{}").unwrap()
}

#[test]
fn a05_a_request_through_a_proxy_on_this_machine_does_not_administer() {
    let server = Launch::serve(&[]).start();
    let (before, operations) = (rules(&server), operations(&server));
    for (method, path) in &operations {
        for field in OF_PROXIES {
            let answer = through_a_proxy(&server, method, path, field);
            assert_eq!(answer.status, 401, "{method} {path} {field:?}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let detail = answer.json()["detail"].to_string();
            assert!(detail.contains("came through a proxy"), "{detail}");
        }
    }
    eprintln!("{} operations through {} kinds of proxies: 401", operations.len(), OF_PROXIES.len());
    assert!(operations.len() >= 20, "{operations:?}");
    assert_eq!(rules(&server), before);
    let count = operations.len() * OF_PROXIES.len();
    let line = format!("sluicegate_auth_failures_total{{reason=\"forwarded\"}} {count}");
    assert!(server.get("/metrics").body.contains(&line), "{line}");
    let message = "administration through a proxy without a token rejected";
    server.wait_for_log(message);
    assert_eq!(server.stderr().matches(message).count(), 1, "once a minute for an address");

    // This machine itself, and checks through a proxy, as before.
    assert_eq!(server.request("DELETE", "/v1/rules/1", &[], "").status, 204);
    let check = through_a_proxy(&server, "POST", "/v1/check", OF_PROXIES[0]);
    assert_eq!(check.status, 200);
}

#[test]
fn a05_details_of_the_readiness_do_not_go_through_a_proxy() {
    // No server listens on this port.
    let server = Launch::serve(&[]).env("SLUICEGATE_STORE_URL", "redis://127.0.0.1:1").start();
    let reason = eventually("the store's trouble", || {
        let shown = server.get("/readyz?verbose").body;
        shown.lines().find(|line| line.starts_with("    ")).map(str::to_owned)
    });
    for field in OF_PROXIES {
        let shown = through_a_proxy(&server, "GET", "/readyz?verbose", field).body;
        assert!(shown.contains("store") && !shown.contains(&reason), "{shown}");
    }
}

#[test]
fn a05_with_admin_local_off_this_machine_needs_a_token_too() {
    let server = Launch::serve(&[]).file("sluicegate.toml", "[admin]\nlocal = false\n").start();
    server.wait_for_line(|line| line.contains("the administration is closed"));
    for (method, path) in operations(&server) {
        let answer = server.request(&method, &path, &[], "");
        assert_eq!(answer.status, 401, "{method} {path}");
    }
    // A token can be created all the same: that needs the database, not the service.
    let database = format!("sqlite:{}", server.folder().join("sluicegate.db").display());
    let made = Launch::new(&["tokens", "create", "ci", "--role", "admin"])
        .env("SLUICEGATE_DATABASE_URL", &database)
        .run();
    assert_eq!(made.code, Some(0), "{made:?}");
    let bearer = format!("Bearer {}", made.stdout.trim());
    let delete = || server.request("DELETE", "/v1/rules/1", &[("authorization", &bearer)], "");
    eventually("the token", || (delete().status == 204).then_some(()));
    assert_eq!(server.get("/v1/rules").status, 401);
}
