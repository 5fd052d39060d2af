//! Denied requests, and the violations recorded for them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Client, Launch, Server, eventually};

/// Rules with a capacity of one token each: a cost of two is always denied and charges nothing.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1s"

[[rule]]
rule_id = 2
key_pattern = "tenant:{tenant}"
tokens = 1
period = "1s"
mode = "shadow"

[[rule]]
rule_id = 3
key_pattern = "address:{ip}"
tokens = 1
period = "1s"
conditions = { address = "yes" }
"#;

/// Service with these rules and a separate database.
pub(super) fn launch() -> Launch {
    Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", RULES)
}

/// Connection that sends requests to be denied.
pub(super) struct Denials(Client);

impl Denials {
    pub(super) fn of(server: &Server) -> Self {
        Self(server.connect())
    }

    /// Sends requests of one user.
    pub(super) fn by_user(&mut self, user_id: &str, count: usize) {
        self.send(&json!({"user_id": user_id}), count);
    }

    /// Sends requests with these attributes; missing ones are filled in.
    pub(super) fn send(&mut self, attributes: &Value, count: usize) {
        let mut request = json!({
            "ip": "203.0.113.9", "endpoint": "/pay", "method": "POST", "cost": 2, "attributes": {},
        });
        for (name, value) in attributes.as_object().unwrap() {
            match name.as_str() {
                "tenant" | "address" => request["attributes"][name] = value.clone(),
                _ => request[name] = value.clone(),
            }
        }
        let (body, json) = (request.to_string(), [("content-type", "application/json")]);
        for _ in 0..count {
            let answer = self.0.request("POST", "/v1/check", &json, body.as_bytes()).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            let answer = answer.json();
            let tiers = answer["tiers"].as_array().unwrap();
            assert!(tiers.iter().all(|tier| tier["allowed"] == false), "{answer}");
        }
    }
}

/// Violations found by a query.
pub(super) fn list(server: &Server, query: &str) -> Vec<Value> {
    let response = server.get(&format!("/v1/violations?{query}&limit=1000").replace("?&", "?"));
    assert_eq!(response.status, 200, "{query}: {response:?}");
    response.json()["violations"].as_array().unwrap().clone()
}

/// All violations.
pub(super) fn all(server: &Server) -> Vec<Value> {
    list(server, "")
}

/// Sum of their denials.
pub(super) fn sum(rows: &[Value]) -> u64 {
    rows.iter().map(|row| row["count"].as_u64().unwrap()).sum()
}

/// Waits until a query finds this number of denials.
pub(super) fn recorded(server: &Server, query: &str, count: u64) -> Vec<Value> {
    eventually("violations to be on record", || {
        let rows = list(server, query);
        assert!(sum(&rows) <= count, "{rows:?}");
        (sum(&rows) == count).then_some(rows)
    })
}

/// Value of a metric.
pub(super) fn figure(metrics: &str, name: &str) -> u64 {
    let line = metrics
        .lines()
        .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    let value = line.unwrap_or_else(|| panic!("{name} is not in {metrics}")).rsplit(' ').next();
    value.unwrap().parse().unwrap()
}

/// Contents of all files of the database.
pub(super) fn database_bytes(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_its = |path: &std::path::PathBuf| {
        path.file_name().unwrap().to_str().unwrap().starts_with("sluicegate.db")
    };
    files.filter(is_its).flat_map(|path| fs::read(path).unwrap_or_default()).collect()
}
