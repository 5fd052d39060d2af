//! Commands directly on PostgreSQL.

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;

use crate::common::Launch;

#[test]
fn a_database_is_made_and_rules_and_tokens_are_kept_in_it() {
    let postgres = Postgres::start();
    let url = postgres.create("cli");
    let run = |arguments: &[&str]| Launch::new(arguments).args(&["--database", &url]).run();
    let not_ready = run(&["rules", "list"]);
    assert_eq!(not_ready.code, Some(3), "{not_ready:?}");
    assert!(not_ready.stderr.contains("lacks migrations of this version"), "{not_ready:?}");
    assert_eq!(run(&["migrate"]).code, Some(0));

    let made =
        run(&["rules", "create", "--key-pattern", "pg:{a}", "--rate", "1 per 62.5s burst 2"]);
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), "Rule 10 was created.\n"), "{made:?}");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rules.toml").display().to_string();
    assert_eq!(run(&["rules", "export", "--out", &out]).code, Some(0));
    assert_eq!(run(&["rules", "delete", "10", "--yes"]).code, Some(0));
    let imported = run(&["rules", "import", &out, "--yes", "--json"]);
    let report: Value = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!(report["diff"]["added"][0]["period"], json!(62.5), "{report}");
    assert_eq!(report["diff"]["unchanged"], json!(9));
    assert!(run(&["rules", "diff", &out]).stdout.starts_with("No difference: 10 rules"));
    let history = run(&["rules", "history", "10"]).stdout;
    assert_eq!(history.lines().count(), 4, "{history}");

    assert_eq!(run(&["tokens", "create", "a", "--role", "read"]).code, Some(0));
    assert!(run(&["tokens", "list"]).stdout.contains("a     read"));
    assert_eq!(run(&["violations", "top"]).stderr, "No violations.\n");

    // Only a newer version can undo its migrations.
    let newer = "INSERT INTO rate_limit_migrations (version, description, applied_at) \
                 SELECT 99, 'later', applied_at FROM rate_limit_migrations WHERE version = 1";
    postgres.sql("cli", newer);
    let refused = run(&["migrate", "--down-to", "1", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("migration 99 was made by a newer version"), "{refused:?}");
}

#[test]
fn a_command_that_the_database_refuses_shows_the_cause() {
    let postgres = Postgres::start();
    let url = postgres.create("cause");
    let run = |arguments: &[&str]| Launch::new(arguments).args(&["--database", &url]).run();
    assert_eq!(run(&["migrate"]).code, Some(0));
    postgres.sql("cause", "ALTER DATABASE cause SET default_transaction_read_only = on");
    let refused = run(&["rules", "delete", "9", "--yes"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("the database does not answer: try again"), "{refused:?}");
    assert!(refused.stderr.contains("Cause: "), "{refused:?}");
    assert!(refused.stderr.contains("read-only transaction"), "{refused:?}");
}
