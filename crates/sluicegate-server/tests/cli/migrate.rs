//! `sluicegate migrate`.

use crate::cli::support::Gate;
use crate::common::Launch;

#[test]
fn a_database_is_made_ready_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let run = |arguments: &[&str]| {
        Launch::new(&["migrate"]).args(arguments).args(&["--database", &url]).run()
    };
    let dry = run(&["--dry-run"]);
    assert!(dry.code == Some(0) && dry.stderr.contains("nothing was changed"), "{dry:?}");
    assert!(dry.stdout.starts_with("VERSION  APPLIED  DESCRIPTION\n1        no "), "{dry:?}");
    let done = run(&[]);
    assert!(done.code == Some(0) && done.stderr.starts_with("applied: 1 "), "{done:?}");
    let again = run(&[]);
    assert!(again.code == Some(0) && again.stderr.contains("nothing to do"), "{again:?}");
    let status = run(&["--status"]);
    assert!(
        status.stdout.starts_with("VERSION  APPLIED  DESCRIPTION\n1        yes "),
        "{status:?}"
    );
    let status = run(&["--status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["migrations"][0]["is_applied"], serde_json::json!(true));

    let unasked = run(&["--down-to", "0"]);
    assert_eq!((unasked.code, unasked.stdout.as_str()), (Some(2), ""), "{unasked:?}");
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
    for beyond in ["--down-to=999", "--down-to=-1"] {
        let typed = run(&[beyond, "--yes"]);
        assert_eq!((typed.code, typed.stdout.as_str()), (Some(2), ""), "{typed:?}");
        assert!(typed.stderr.contains("--down-to"), "{typed:?}");
    }
    let back = run(&["--down-to", "1", "--yes"]);
    assert!(back.code == Some(0) && back.stderr.starts_with("reverted: "), "{back:?}");
    let rules = Launch::new(&["rules", "list", "--database", &url]).run();
    assert_eq!(rules.code, Some(3), "{rules:?}");
    assert!(rules.stderr.contains("lacks migrations of this version"), "{rules:?}");
    let forth = run(&["--json"]);
    let forth: serde_json::Value = serde_json::from_str(&forth.stdout).unwrap();
    assert!(!forth["migrations"].as_array().unwrap().is_empty(), "{forth}");
    assert_eq!(Launch::new(&["rules", "list", "--database", &url]).run().code, Some(0));
}

#[test]
fn the_settings_say_where_the_database_is() {
    let migrate =
        Launch::new(&["migrate"]).file("sluicegate.toml", "[database]\nurl = \"sqlite:mine.db\"\n");
    let path = migrate.folder().join("mine.db");
    let database = path.display().to_string();
    let finished = migrate.run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("applied: 1 "), "{finished:?} {database}");
    let wrong = Launch::new(&["migrate"])
        .file("sluicegate.toml", "[database]\nulr = \"sqlite:mine.db\"\n")
        .run();
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("sluicegate.toml:2:1") && wrong.stderr.contains("did you mean"),
        "{wrong:?}"
    );
    let nowhere =
        Launch::new(&["migrate", "--database", "postgres://nobody@127.0.0.1:1/none"]).run();
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
    assert!(
        nowhere.stderr.starts_with("error: postgres://nobody@127.0.0.1:1/none: "),
        "{nowhere:?}"
    );
}

/// Only the server may be able to read its secrets: commands on the database need none of them.
#[test]
fn settings_for_servers_only_may_be_missing() {
    let gate = Gate::database();
    let text = format!(
        "[listen]\nhttp = \"0.0.0.0:1\"\n[audit]\nprivacy = \"hashed\"\n[database]\nurl = \"{}\"\n",
        gate.url()
    );
    let settings = gate.file("sluicegate.toml", &text);
    let run =
        |arguments: &[&str]| Launch::new(arguments).args(&["--config", settings.as_str()]).run();
    for arguments in [
        &["migrate", "--status"][..],
        &["tokens", "create", "ops", "--role", "admin"],
        &["rules", "list", "--database", "settings"],
        &["violations", "list"],
    ] {
        let finished = run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
    }
    // Without the key no violation would be found, and the empty list would look like an answer.
    for arguments in [
        &["violations", "list", "--user-id", "42"][..],
        &["violations", "export", "--ip", "203.0.113.9"],
        &["violations", "delete", "--user-id", "42", "--yes"],
    ] {
        let finished = run(arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.contains("audit.privacy_key is not set here"), "{finished:?}");
    }
    let serve = run(&["serve", "--check-config"]);
    assert!(serve.code == Some(2) && serve.stderr.contains("admin.token is not set"), "{serve:?}");
}
