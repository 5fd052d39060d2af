//! `sluicegate tokens`, directly on the database.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::cli::support::Gate;
use crate::common::{Launch, eventually};

#[test]
fn tokens_are_made_shown_once_and_revoked() {
    let gate = Gate::database();
    let none = gate.run(&["tokens", "list"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "No tokens in the database.\n"));
    let dry = gate.run(&["tokens", "create", "deploy", "--role", "admin", "--dry-run"]);
    assert!(dry.stdout.is_empty() && dry.stderr.contains("Nothing was created"), "{dry:?}");

    let made = gate.run(&["tokens", "create", "deploy", "--role", "admin"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let token = made.stdout.strip_suffix('\n').unwrap();
    assert!(
        token.starts_with("sg_") && token.len() > 40 && !token.contains(char::is_whitespace),
        "{made:?}"
    );
    assert!(
        made.stderr.contains("It is not shown again.") && !made.stderr.contains(token),
        "{made:?}"
    );
    assert!(made.stderr.contains("from now on all calls"), "{made:?}");
    assert!(gate.refused(2, &["tokens", "create", "deploy", "--role", "read"]).contains("deploy"));

    let shown = gate.json(&["tokens", "create", "viewer", "--role", "read"]);
    assert_eq!(shown["role"], json!("read"));
    assert!(shown["token"].as_str().unwrap().starts_with("sg_"));
    let list = gate.ok(&["tokens", "list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(list.contains("deploy  admin") && list.contains("command line (tester)"), "{list}");
    let list = gate.json(&["tokens", "list"]);
    assert!(
        list["tokens"][0].get("token").is_none() && !list.to_string().contains("hash"),
        "{list}"
    );

    assert!(gate.refused(2, &["tokens", "revoke", "deploy"]).contains("Revoke the token deploy"));
    gate.ok(&["tokens", "revoke", "deploy", "--dry-run"]);
    let revoked = gate.run(&["tokens", "revoke", "deploy", "--yes"]);
    assert_eq!(
        (revoked.code, revoked.stderr.as_str()),
        (Some(0), "The token deploy was revoked.\n"),
        "{revoked:?}"
    );
    assert!(
        gate.refused(2, &["tokens", "revoke", "deploy", "--yes"])
            .contains("no token is called deploy")
    );
}

/// A token's file is readable by its owner only, and does not overwrite another file.
#[test]
fn a_token_goes_to_a_file_of_its_own() {
    let gate = Gate::database();
    let out = gate.path("deploy.token");
    let create =
        |name: &str| gate.run(&["tokens", "create", name, "--role", "read", "--out", &out]);
    let made = create("deploy");
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), ""), "{made:?}");
    let token = gate.read("deploy.token");
    assert!(token.starts_with("sg_") && token.ends_with('\n'), "{token}");
    assert!(!made.stderr.contains(token.trim()), "{made:?}");
    let mode = std::fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let there = create("other");
    assert_eq!(there.code, Some(3), "{there:?}");
    assert!(there.stderr.contains("file exists"), "{there:?}");
    assert_eq!(gate.read("deploy.token"), token);
    assert_eq!(gate.json(&["tokens", "list"])["tokens"].as_array().unwrap().len(), 1);
    // A token that could not be created leaves no file.
    let new = gate.path("new.token");
    gate.refused(2, &["tokens", "create", "deploy", "--role", "read", "--out", &new]);
    assert!(!std::path::Path::new(&new).exists());
    let second = gate.run(&["tokens", "create", "second", "--role", "read"]);
    assert!(!second.stderr.contains("from now on"), "{second:?}");
}

/// The database comes from the settings, as for `serve`; and the server accepts the token.
#[test]
fn a_server_goes_by_them() {
    let gate = Gate::server();
    let create = |role: &str| {
        let launch = Launch::new(&["tokens", "create", role, "--role", role]);
        let made =
            launch.env("SLUICEGATE_DATABASE_URL", &gate.url()).env("SLUICEGATE_SERVER", "x").run();
        assert_eq!(made.code, Some(0), "{made:?}");
        made.stdout.trim().to_owned()
    };
    let (reader, admin) = (create("read"), create("admin"));
    let list = |token: &str| gate.launch(&["rules", "list"]).env("SLUICEGATE_TOKEN", token).run();
    // While no token exists, none is needed: tokens are loaded once a wrong one is rejected.
    eventually("the server to know both", || {
        let knows = |token: &str| list(token).code == Some(0);
        (!knows("wrong") && knows(&reader) && knows(&admin)).then_some(())
    });
    let refused = gate.refused(2, &["rules", "list"]);
    assert!(refused.contains("SLUICEGATE_TOKEN"), "{refused}");
    let delete = |token: &str| {
        gate.launch(&["rules", "delete", "9", "--yes"]).env("SLUICEGATE_TOKEN", token).run()
    };
    let refused = delete(&reader);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(refused.stderr, "error: this needs a token whose role is admin\n");
    assert_eq!(delete(&admin).code, Some(0));
    for text in [gate.server_of().stderr(), refused.stderr] {
        assert!(!text.contains(&reader) && !text.contains(&admin), "{text}");
    }
}
