//! Tokens and their roles over the whole API, and the lockout after wrong tokens.

use std::time::Duration;

use serde_json::json;
use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{Author, Database, Role};
use sluicegate_server::tokens;
use sluicegate_tests::postgres::Postgres;

use crate::common::{Client, Launch, Response, Server, eventually, now};

const BOOTSTRAP: &str = "correct-horse-battery-staple";
/// Maximum time until a created or revoked token takes effect.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// Read-only operations whose method is POST.
const READING: [&str; 2] = ["/v1/explain", "/v1/rules/preview"];

/// Service that does not lock out a test that sends many wrong tokens.
fn patient() -> Launch {
    Launch::serve(&["--admin-failures-per-minute", "1000000"])
}

/// URL of a service's default database.
fn its_own(server: &Server) -> String {
    format!("sqlite:{}", server.folder().join("sluicegate.db").display())
}

/// Runs `act` on a separate connection, like another process.
fn on_database<T>(url: &str, act: impl AsyncFnOnce(Database) -> T) -> T {
    let url = DatabaseUrl::parse(url).unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let database = Database::open(&url, Duration::from_secs(10)).await.unwrap();
        act(database).await
    })
}

/// Creates a token in the database of a service, and waits until the service accepts it.
fn make(server: &Server, name: &str, role: Role) -> String {
    make_in(&its_own(server), server, name, role)
}

fn make_in(url: &str, server: &Server, name: &str, role: Role) -> String {
    let (token, hash) = tokens::mint().unwrap();
    let token = token.expose().to_owned();
    on_database(url, async |database| {
        database.create_token(name, role, &hash, &Author::new("test")).await.unwrap();
    });
    let started = now();
    eventually("the token", || (list(server, &token).status == 200).then_some(()));
    assert!(now() - started < NOTICED_WITHIN, "{:?}", now() - started);
    token
}

fn revoke(url: &str, name: &str) {
    on_database(url, async |database| {
        database.delete_token(name, &Author::new("test")).await.unwrap();
    });
}

fn ask(server: &Server, method: &str, path: &str, token: Option<&str>) -> Response {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    server.request(method, path, &headers, "")
}

/// Status of an answer whose body may not end.
fn status_of(server: &Server, method: &str, path: &str, token: Option<&str>) -> u16 {
    let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let (host, bearer) = (server.address, bearer.unwrap_or_default());
    let mut client = server.connect();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n{bearer}\r\n");
    client.send(head.as_bytes()).unwrap();
    client.read_head().unwrap().status
}

fn list(server: &Server, token: &str) -> Response {
    ask(server, "GET", "/v1/overrides", Some(token))
}

/// Every operation of the API: method, path, and true if the OpenAPI document requires a token.
fn operations(server: &Server) -> Vec<(String, String, bool)> {
    let document = server.get("/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap();
        operations.iter().map(move |(method, operation)| {
            let ways = operation["security"].as_array().map_or(&[][..], Vec::as_slice);
            // An empty one is the way without a token.
            let needs_token = !ways.is_empty() && !ways.contains(&json!({}));
            // Ids that do not exist: an authorised request is answered 404.
            let path: Vec<_> = path
                .split('/')
                .map(|part| if part.starts_with('{') { "999999" } else { part })
                .collect();
            (method.to_uppercase(), path.join("/"), needs_token)
        })
    });
    operations.collect()
}

#[test]
fn roles_over_the_whole_api() {
    let server = patient().env("SLUICEGATE_ADMIN_TOKEN", BOOTSTRAP).start();
    let reader = make(&server, "grafana", Role::Read);
    let admin = make(&server, "deploy", Role::Admin);
    let operations = operations(&server);
    assert!(
        operations.iter().filter(|(.., needs_token)| *needs_token).count() >= 9,
        "{operations:?}"
    );
    for (method, path, needs_token) in operations {
        let status = |token: Option<&str>| status_of(&server, &method, &path, token);
        let what = format!("{method} {path}");
        if !needs_token {
            for token in [None, Some("wrong"), Some(BOOTSTRAP)] {
                assert!(![401, 403, 429].contains(&status(token)), "{what}");
            }
            continue;
        }
        assert_eq!(status(None), 401, "{what}");
        for wrong in ["wrong", "sg_", &reader[1..], &format!("{admin}x"), ""] {
            assert_eq!(status(Some(wrong)), 401, "{what}");
        }
        let only_looks = method == "GET" || READING.contains(&path.as_str());
        let read = status(Some(&reader));
        assert_eq!(read == 403, !only_looks, "{what}: {read}");
        for good in [admin.as_str(), BOOTSTRAP] {
            assert!(![401, 403, 429].contains(&status(Some(good))), "{what}");
        }
        assert!(status(Some(BOOTSTRAP)) < 500, "{what}");
    }
}

#[test]
fn changes_are_made_by_name() {
    let server = patient().env("SLUICEGATE_ADMIN_TOKEN", BOOTSTRAP).start();
    let admin = make(&server, "deploy", Role::Admin);
    for (token, name) in [(BOOTSTRAP, "admin"), (&admin, "token:deploy")] {
        let bearer = format!("Bearer {token}");
        let body = format!(r#"{{"rule_id": 1, "subject": "{name}", "blocked": true}}"#);
        let made = server.request("POST", "/v1/overrides", &[("authorization", &bearer)], &body);
        assert_eq!((made.status, &made.json()["created_by"]), (201, &name.into()), "{made:?}");
    }
}

#[test]
fn a_revoked_token_is_as_unknown_as_any() {
    let server = patient().start();
    a_revoked_token_is_unknown(&server, &its_own(&server));
    let postgres = Postgres::start();
    let url = postgres.create("tokens");
    a_revoked_token_is_unknown(&patient().env("SLUICEGATE_DATABASE_URL", &url).start(), &url);
}

fn a_revoked_token_is_unknown(server: &Server, url: &str) {
    // While no token exists, loopback needs none.
    assert_eq!(ask(server, "GET", "/v1/overrides", None).status, 200);
    let kept = make_in(url, server, "kept", Role::Read);
    let lost = make_in(url, server, "lost", Role::Admin);
    let started = now();
    revoke(url, "lost");
    let refused = eventually("the end of it", || {
        Some(list(server, &lost)).filter(|response| response.status != 200)
    });
    assert!(now() - started < NOTICED_WITHIN, "{:?}", now() - started);
    let unknown = list(server, "sg_unknown");
    assert_eq!((refused.status, &refused.body), (unknown.status, &unknown.body));
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(list(server, &kept).status, 200);
    assert_eq!(ask(server, "GET", "/v1/overrides", None).status, 401);
}

/// A long answer ends when its token is revoked.
#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let server = patient().start();
    // While no token exists, loopback needs none; afterwards it does.
    let mut without = begin_to_watch(&server, None);
    let (kept, lost) = (make(&server, "kept", Role::Read), make(&server, "lost", Role::Read));
    assert!(without.read_to_end().ends_with("0\r\n\r\n"));
    let mut watching = begin_to_watch(&server, Some(&lost));
    let mut still = begin_to_watch(&server, Some(&kept));
    let guesses = || {
        let metrics = server.get("/metrics").body;
        let is_wrong =
            |line: &&str| line.contains("sluicegate_auth_failures_total{reason=\"wrong\"}");
        metrics.lines().find(is_wrong).map(ToOwned::to_owned)
    };
    let before = guesses();
    revoke(&its_own(&server), "lost");
    // The stream ends properly.
    assert!(watching.read_to_end().ends_with("0\r\n\r\n"));
    let seen = now();
    // The other stream continues.
    while now() - seen < NOTICED_WITHIN {
        assert!(!still.read_chunk().unwrap().is_empty());
    }
    assert_eq!(guesses(), before, "no guess was counted");
}

/// Opens a stream of events.
fn begin_to_watch(server: &Server, token: Option<&str>) -> Client {
    let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let (host, bearer) = (server.address, bearer.unwrap_or_default());
    let mut client = server.connect();
    let head =
        format!("GET /v1/events HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{bearer}\r\n");
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.read_head().unwrap().status, 200);
    client
}

/// A database that has not answered yet may contain tokens.
#[test]
fn administration_is_unavailable_until_tokens_are_loaded() {
    const RULES: &str = "[[rule]]\nkey_pattern = \"user:{user_id}\"\nrate_per_second = 1\n";
    let postgres = Postgres::start();
    let url = postgres.create("late");
    postgres.kill();
    let server = patient()
        .args(&["--rules", "r.toml"])
        .file("r.toml", RULES)
        .env("SLUICEGATE_DATABASE_URL", &url)
        .start();
    for token in [None, Some("sg_some")] {
        for (method, path) in [("GET", "/v1/buckets/1/42"), ("POST", "/v1/buckets/1/42/reset")] {
            let response = ask(&server, method, path, token);
            assert_eq!(response.status, 503, "{response:?}");
            assert!(response.header("retry-after").is_some());
        }
    }
    postgres.restart();
    eventually("the database", || {
        (ask(&server, "POST", "/v1/buckets/1/42/reset", None).status == 200).then_some(())
    });
}

#[test]
fn guessing_tokens_locks_an_address_out_for_a_while() {
    // Ten per second, so that the lockout is short.
    let server = Launch::serve(&["--admin-failures-per-minute", "600"])
        .env("SLUICEGATE_ADMIN_TOKEN", BOOTSTRAP)
        .start();
    let reader = make(&server, "grafana", Role::Read);
    let mut client = server.connect();
    let mut show = |token: &str| {
        let headers = [("authorization", format!("Bearer {token}"))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        client.request("DELETE", "/v1/buckets/k", &headers, b"").unwrap()
    };
    let mut failures = 0;
    let locked_out = loop {
        let response = show(&format!("wrong{failures}"));
        if response.status != 401 {
            break response;
        }
        failures += 1;
        assert!(failures < 100_000, "guessing goes on for ever");
    };
    // One may have been spent on the token above before it was loaded.
    assert!(failures >= 599, "{failures}");
    assert_eq!(locked_out.status, 429, "{locked_out:?}");
    assert_eq!(locked_out.header("retry-after"), Some("1"));
    // The token of the settings is locked out too. Requests without a token, with a generated one, or to other
    // endpoints are answered as before.
    while show(&format!("wrong{failures}")).status == 401 {
        failures += 1;
    }
    assert_eq!(show(BOOTSTRAP).status, 429);
    assert_eq!(show(&reader).status, 403);
    assert_eq!(ask(&server, "DELETE", "/v1/buckets/k", None).status, 401);
    assert_eq!(server.post_json("/v1/check", "{}").status, 200);
    let verbose = ask(&server, "GET", "/readyz?verbose", Some(BOOTSTRAP));
    assert_eq!(verbose.status, 200);
    let metrics = server.get("/metrics").body;
    for reason in ["missing", "wrong", "too_many"] {
        let line = format!("sluicegate_auth_failures_total{{reason=\"{reason}\"}} ");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    eventually("the end of it", || (show(BOOTSTRAP).status == 204).then_some(()));

    // All of them are logged in one line.
    let log = server.stderr();
    assert_eq!(log.matches("token rejected").count(), 1, "{log}");
}

/// A client that keeps sending a revoked token may share its address with others.
#[test]
fn repeating_a_revoked_token_locks_no_address_out() {
    let server = Launch::serve(&["--admin-failures-per-minute", "2"])
        .env("SLUICEGATE_ADMIN_TOKEN", BOOTSTRAP)
        .start();
    for _ in 0..20 {
        assert_eq!(list(&server, "sg_revoked").status, 401);
        assert_eq!(list(&server, BOOTSTRAP).status, 200);
    }
}

#[test]
fn tokens_are_never_shown() {
    let server =
        patient().args(&["--log-level", "trace"]).env("SLUICEGATE_ADMIN_TOKEN", BOOTSTRAP).start();
    let token = make(&server, "ci", Role::Admin);
    let slip = format!("{token}x");
    let hash: String = tokens::hash(&token).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut seen = String::new();
    for shown in [token.as_str(), &slip, BOOTSTRAP] {
        for path in
            ["/readyz?verbose", "/metrics", "/v1/overrides", "/v1/buckets/1/42", "/nonsense"]
        {
            seen += &format!("{:?}", ask(&server, "GET", path, Some(shown)));
            seen += &format!("{:?}", ask(&server, "POST", path, Some(shown)));
        }
    }
    revoke(&its_own(&server), "ci");
    server.signal("TERM");
    let finished = server.wait();
    for text in [&seen, &finished.stdout, &finished.stderr] {
        for secret in [token.as_str(), BOOTSTRAP, &hash] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
