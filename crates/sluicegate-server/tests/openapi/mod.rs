//! The API, tested against its own document by Schemathesis: every answer to a generated request conforms to the
//! document, and the service survives.
//!
//! `make schemathesis` fetches the tool. If it is missing, the test fails; it is never skipped. The seed is fixed;
//! `SLUICEGATE_SEED=7 SLUICEGATE_API_EXAMPLES=500` sets another one, and more requests.
//!
//! `SLUICEGATE_UPDATE=1` rewrites `docs/reference/openapi.json`.

mod odd;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;

use crate::common::{Launch, Server, eventually};

const TOKEN: &str = "schemathesis-7f1d0c";

/// Seed without `SLUICEGATE_SEED`.
const SEED: u64 = 4;

/// Number of requests for each operation without `SLUICEGATE_API_EXAMPLES`: about a minute in total.
const EXAMPLES: u64 = 25;

/// The same on another database or without one, where most answers are equal.
const EXAMPLES_FEW: u64 = 5;

/// Snapshot file, from which the service starts while the database is down.
const SNAPSHOT: &str = "sluicegate.snapshot.json";

fn launch() -> Launch {
    Launch::serve(&[])
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        // The generated requests include many wrong tokens.
        .env("SLUICEGATE_ADMIN_FAILURES_PER_MINUTE", "1000000")
}

#[test]
fn the_document_is_true() {
    is_true(launch(), EXAMPLES);
}

#[test]
fn the_document_is_true_on_postgresql() {
    let postgres = Postgres::start();
    is_true(launch().env("SLUICEGATE_DATABASE_URL", &postgres.create("openapi")), EXAMPLES_FEW);
}

fn is_true(launch: Launch, examples: u64) {
    let server = launch.start();
    drive(&server, examples, &[]);
    is_well(&server);
    assert_eq!(server.get("/readyz").status, 200);
    // Generated requests did change rules.
    let token = format!("Bearer {TOKEN}");
    let changes = server.request("GET", "/v1/rules/changes", &[("authorization", &token)], "");
    assert_ne!(changes.json()["changes"].as_array().unwrap().len(), 0, "{changes:?}");
}

/// Answers of 503 occur only where the document has them.
#[test]
fn the_document_is_true_without_a_database() {
    let before = launch().start();
    let snapshot = before.folder().join(SNAPSHOT);
    let snapshot = eventually("the snapshot", || std::fs::read_to_string(&snapshot).ok());
    // No server listens on this port.
    let nowhere = launch().env("SLUICEGATE_DATABASE_URL", "postgres://127.0.0.1:1/none");
    let server = nowhere.file(SNAPSHOT, &snapshot).start();
    // A token cannot be verified without the database: an unknown one is answered 503 too.
    let down = "[checks.not_a_server_error]\nexpected-statuses = [\"2xx\", \"3xx\", \"4xx\", 503]\n\
                [checks.ignored_auth]\nenabled = false\n";
    drive(&server, EXAMPLES_FEW, &[down]);
    is_well(&server);
}

/// For client generators: every operation and schema has a unique name, and every reference resolves.
#[test]
fn names_are_unique() {
    let server = launch().start();
    let document = server.get("/openapi.json").json();
    let mut names = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{method} {path}: {name} again");
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut missing = Vec::new();
    visit(&document, &mut |reference| {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        if !schemas.contains_key(name) {
            missing.push(name.to_owned());
        }
    });
    assert_eq!(missing, [""; 0]);
}

/// Every endpoint is included, with the header fields that proxies use.
#[test]
fn the_document_is_complete() {
    let server = launch().start();
    let document = server.get("/openapi.json").json();
    for (path, method) in [("/json", "post"), ("/healthcheck", "get"), ("/v1/authorize", "trace")] {
        assert!(document["paths"][path][method].is_object(), "{method} {path}");
    }
    let answers = &document["paths"]["/v1/authorize"]["get"]["responses"];
    for status in ["200", "429", "403"] {
        for header in ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-reset"] {
            assert!(answers[status]["headers"][header].is_object(), "{status} {header}");
        }
    }
    assert!(answers["200"]["headers"]["x-sluicegate-delay-ms"].is_object());
    assert_eq!(answers["429"]["headers"]["retry-after"]["schema"]["minimum"], 1);
}

/// The data operations name the token of a caller, which they need only if callers exist, and their refusals.
#[test]
fn data_operations_take_the_token_of_a_caller() {
    let document = launch().start().get("/openapi.json").json();
    let operations = [
        ("/v1/check", "token"),
        ("/v1/check/batch", "token"),
        ("/v1/take", "token"),
        ("/json", "token"),
        ("/v1/authorize", "caller_token"),
    ];
    for (path, scheme) in operations {
        let operation = &document["paths"][path]["post"];
        assert_eq!(operation["security"], json!([{}, {scheme: []}]), "{path}");
        for status in ["401", "403", "429"] {
            let content = &operation["responses"][status]["content"];
            assert!(content["application/problem+json"].is_object(), "{path}: {status}");
        }
    }
    let scheme = &document["components"]["securitySchemes"]["caller_token"];
    assert_eq!((&scheme["in"], &scheme["name"]), (&json!("header"), &json!("X-Sluicegate-Token")));
}

/// The stored document, which the page's types are generated from, is the served one.
#[test]
fn the_file_is_the_document() {
    let file = root().join("docs/reference/openapi.json");
    let served = launch().start().get("/openapi.json");
    if std::env::var_os("SLUICEGATE_UPDATE").is_some() {
        std::fs::write(&file, format!("{}\n", served.body)).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    let mut documents = [served.json(), serde_json::from_str(&written).unwrap()];
    for document in &mut documents {
        // Changes with every release.
        document["info"]["version"] = Value::Null;
    }
    let [served, written] = documents;
    let help = "run `SLUICEGATE_UPDATE=1 cargo test -p sluicegate-server --test it the_file`";
    assert!(served == written, "{} is not what is served: {help}", file.display());
}

/// Runs Schemathesis against this server with additional settings, and fails the test if it reports an error.
fn drive(server: &Server, examples: u64, settings: &[&str]) {
    let program = root().join("target/schemathesis/bin/st");
    assert!(program.exists(), "{} is missing: run `make schemathesis`", program.display());
    let file = server.folder().join("schemathesis.toml");
    let common = include_str!("schemathesis.toml");
    std::fs::write(&file, [&[common], settings].concat().join("\n")).unwrap();
    let seed = variable("SLUICEGATE_SEED", SEED);
    let examples = variable("SLUICEGATE_API_EXAMPLES", examples);
    let line = format!("SLUICEGATE_SEED={seed} SLUICEGATE_API_EXAMPLES={examples}");
    let output = Command::new(program)
        .arg("--config-file")
        .arg(&file)
        .args(["run", &format!("http://{}/openapi.json", server.address)])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()])
        .env("TOKEN", TOKEN)
        .env("PYTHONHASHSEED", "0")
        .current_dir(server.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let trouble = String::from_utf8_lossy(&output.stderr);
    println!("{line}\n{}", told.split("= SUMMARY =").last().unwrap_or_default());
    assert!(output.status.success(), "{line}\n{told}\n{trouble}");
}

/// Asserts that no request caused an internal error, and that the service still answers.
fn is_well(server: &Server) {
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("\nsluicegate_panics_total 0\n"), "{}", server.stderr());
    // Generated requests may have created callers: a token of the administration counts as one.
    let token = format!("Bearer {TOKEN}");
    let headers = [("authorization", token.as_str())];
    let body = r#"{"user_id": 1, "cost": 0}"#;
    let checked = server.request("POST", "/v1/check", &headers, body);
    assert_eq!(checked.status, 200, "{checked:?}");
}

/// Number in an environment variable.
fn variable(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// Visits every reference in a document.
fn visit(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                see(reference);
            }
            object.values().for_each(|value| visit(value, see));
        }
        Value::Array(values) => values.iter().for_each(|value| visit(value, see)),
        _ => {}
    }
}

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
