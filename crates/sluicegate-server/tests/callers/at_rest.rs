//! Records about callers: their last use is kept, and their token nowhere.

use std::fs;

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;

use super::doors::{Doors, check_grpc, post};
use super::support::{RULES, launch};
use crate::common::{Client, Launch, Server, eventually};
use crate::envoy::rls::Rls;
use crate::resp::support::{Redis, Reply};

fn create(server: &Server, name: &str) -> String {
    let body = json!({"name": name, "rights": ["check", "authorize"]}).to_string();
    let made = server.post_json("/v1/callers", &body);
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().unwrap().to_owned()
}

fn last_uses(server: &Server) -> Vec<Value> {
    let listed = server.get("/v1/callers").json();
    listed["callers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|caller| caller["last_used_at"].clone())
        .collect()
}

/// Shutdown writes the uses that were not written yet.
#[test]
fn the_last_use_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("t.db").display());
    let postgres = Postgres::start();
    for url in [sqlite, postgres.create("uses")] {
        let start = || launch(RULES).env("SLUICEGATE_DATABASE_URL", &url).start();
        let server = start();
        let tokens = ["http", "grpc", "resp", "unused"].map(|name| create(&server, name));
        assert_eq!(last_uses(&server), [const { Value::Null }; 4]);
        let doors = Doors::of(&server);
        let mut http = Client::connect(doors.http).unwrap();
        assert_eq!(post(&mut http, "/v1/authorize", Some(&tokens[0]), "").status, 200);
        assert_eq!(check_grpc(&Rls::connect(doors.grpc), &tokens[1]), Ok(()));
        let mut redis = Redis::connect(doors.resp).unwrap();
        redis.ask(&format!("AUTH resp {}", tokens[2]));
        assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
        drop((http, redis));
        server.signal("TERM");
        assert_eq!(server.wait().code, Some(0));

        let uses = last_uses(&start());
        assert!(uses[..3].iter().all(Value::is_string), "{uses:?}");
        assert_eq!(uses[3], Value::Null, "{uses:?}");
        let list = Launch::new(&["callers", "list", "--database", &url]).run().stdout;
        let used_at = uses[0].as_str().unwrap().split('.').next().unwrap();
        assert!(list.contains(used_at), "{list}");
    }
}

/// A token is in no file, line of the log, metric or answer but the first.
#[test]
fn a_token_is_nowhere_at_rest() {
    let server = launch(RULES).args(&["--log-level", "trace"]).start();
    let token = create(&server, "checkout");
    let doors = Doors::of(&server);
    let mut http = Client::connect(doors.http).unwrap();
    let mut seen = String::new();
    // Accepted, refused for its right, and in the wrong place.
    for path in ["/v1/check", "/v1/take", "/v1/authorize"] {
        seen += &post(&mut http, path, Some(&token), "{}").body;
    }
    let bearer = format!("Bearer {token}");
    seen += &http.request("GET", "/v1/callers?x", &[("authorization", &bearer)], b"").unwrap().body;
    check_grpc(&Rls::connect(doors.grpc), &token).unwrap();
    let mut redis = Redis::connect(doors.resp).unwrap();
    redis.ask(&format!("AUTH checkout {token}"));
    seen += &redis.error(&format!("AUTH other {token}"));
    for path in ["/metrics", "/v1/callers", "/v1/stats", "/readyz?verbose"] {
        seen += &server.get(path).body;
    }
    eventually("the snapshot file", || {
        let snapshot = fs::read_to_string(server.folder().join("sluicegate.snapshot.json"));
        snapshot.is_ok_and(|text| text.contains("checkout")).then_some(())
    });
    seen += &server.stderr();
    assert!(seen.contains("caller created"), "{seen}");
    let secret = token.strip_prefix("sg_").unwrap();
    assert!(!seen.contains(secret), "{seen}");

    let mut names = Vec::new();
    for entry in fs::read_dir(server.folder()).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        let bytes = fs::read(&path).unwrap();
        let has = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!has(secret.as_bytes()), "{}", path.display());
    }
    assert!(names.iter().any(|name| name == "sluicegate.db"), "{names:?}");
    assert!(names.iter().any(|name| name == "sluicegate.snapshot.json"), "{names:?}");
}
