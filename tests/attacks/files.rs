//! Files of the service that another user of the host has prepared.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use crate::common::{Launch, eventually};

const SNAPSHOT: &str = "sluicegate.snapshot.json";

/// Exit codes of `serve`: wrong settings, and a dependency that is not there.
const WRONG_SETTINGS: i32 = 2;
const NOT_THERE: i32 = 3;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Snapshot that a service has written.
fn written_snapshot() -> String {
    let server = Launch::serve(&[]).start();
    let path = server.folder().join(SNAPSHOT);
    eventually("the snapshot", || fs::read_to_string(&path).ok())
}

/// Service whose database is down, with this snapshot.
fn without_database(snapshot: &str) -> Launch {
    Launch::serve(&["--database-timeout-ms", "500"])
        .env("SLUICEGATE_DATABASE_URL", "postgres://127.0.0.1:1/sluicegate")
        .file(SNAPSHOT, snapshot)
}

#[test]
fn a14_the_snapshot_follows_no_link() {
    // The process id is known before the service starts: it is that of the shell.
    let server = Launch::serve(&[])
        .file("precious", "content of another file")
        .after_shell(&format!("ln -s precious {SNAPSHOT}.$$"))
        .start();
    let path = server.folder().join(SNAPSHOT);
    let written = eventually("the snapshot", || fs::symlink_metadata(&path).ok());
    let precious = fs::read_to_string(server.folder().join("precious")).unwrap();
    assert_eq!(precious, "content of another file");
    assert!(written.is_file(), "{written:?}");
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a14_a_snapshot_that_others_can_write_is_not_believed() {
    let snapshot = written_snapshot();
    for mode in [0o666, 0o622, 0o602, 0o660] {
        let launch = without_database(&snapshot);
        set_mode(&launch.folder().join(SNAPSHOT), mode);
        let refused = launch.run();
        assert_eq!(refused.code, Some(NOT_THERE), "{refused:?}");
        let remedy = format!("(mode {mode:o}): check its content, then run `chmod 600 {SNAPSHOT}`");
        assert!(refused.stderr.contains(&remedy), "{refused:?}");
    }
    // Only root can give a file away.
    let launch = without_database(&snapshot);
    let path = launch.folder().join(SNAPSHOT);
    set_mode(&path, 0o600);
    if chown(&path, Some(65_534), None).is_ok() {
        let refused = launch.run();
        assert_eq!(refused.code, Some(NOT_THERE), "{refused:?}");
        assert!(refused.stderr.contains("belongs to another user (id 65534)"), "{refused:?}");
        assert!(refused.stderr.contains(SNAPSHOT), "{refused:?}");
    }
    // A pipe does not keep the service from deciding.
    let piped =
        without_database(&snapshot).after_shell(&format!("rm {SNAPSHOT}; mkfifo {SNAPSHOT}"));
    let refused = piped.run();
    assert_eq!(refused.code, Some(NOT_THERE), "{refused:?}");
    assert!(refused.stderr.contains("it is not a regular file"), "{refused:?}");
    // The operator's own file is used, also by a link.
    let launch = without_database(&snapshot);
    let (path, elsewhere) = (launch.folder().join(SNAPSHOT), launch.folder().join("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    set_mode(&elsewhere, 0o600);
    symlink(&elsewhere, &path).unwrap();
    launch.start().wait_for_log("starting from the snapshot file");
}

#[test]
fn a14_a_new_database_follows_no_link() {
    let launch = Launch::serve(&["--database-timeout-ms", "500"]);
    let target = launch.folder().join("elsewhere.db");
    symlink(&target, launch.folder().join("sluicegate.db")).unwrap();
    let refused = launch.run();
    assert_eq!(refused.code, Some(NOT_THERE), "{refused:?}");
    assert!(!target.exists());
}

#[test]
fn a14_a_short_token_is_refused() {
    let short = "fifteen-bytes--";
    let ways = [
        Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", short),
        Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN_FILE", "token").file("token", short),
        Launch::serve(&[]).file("sluicegate.toml", &format!("[admin]\ntoken = \"{short}\"\n")),
    ];
    for launch in ways {
        let refused = launch.run();
        assert_eq!(refused.code, Some(WRONG_SETTINGS), "{refused:?}");
        assert!(refused.stderr.contains("admin.token must have at least 16 bytes"), "{refused:?}");
        assert!(!refused.stderr.contains(short), "{refused:?}");
    }
    drop(Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", "sixteen-bytes---").start());
}

#[test]
fn a14_files_that_every_user_can_read_or_replace_are_warned_of() {
    let launch = Launch::new(&["serve", "--check-config"])
        .file("sluicegate.toml", "[resp]\npassword = \"short\"\n[store]\ntls_key = \"key.pem\"\n")
        .file("key.pem", "")
        .file("token", "0123456789abcdef")
        .file("sluicegate.db", "")
        .env("SLUICEGATE_ADMIN_TOKEN_FILE", "token");
    set_mode(&launch.folder().join("sluicegate.db"), 0o666);
    set_mode(launch.folder(), 0o777);
    let report = launch.run();
    assert_eq!(report.code, Some(0), "{report:?}");
    for warning in [
        "store.tls_key: every user of this machine can read key.pem",
        "SLUICEGATE_ADMIN_TOKEN_FILE: every user of this machine can read token",
        "the settings file with its secrets: every user of this machine can read sluicegate.toml",
        "database.url: sluicegate.db: other users can write to it (mode 666)",
        "database.snapshot: every user of this machine can replace files in .",
        "resp.password has less than 16 bytes",
    ] {
        assert!(report.stdout.contains(warning), "{warning}\n{}", report.stdout);
    }
    // Not where other users cannot reach the files.
    let launch = Launch::new(&["serve", "--check-config"])
        .file("token", "0123456789abcdef")
        .env("SLUICEGATE_ADMIN_TOKEN_FILE", "token");
    set_mode(launch.folder(), 0o700);
    let report = launch.run();
    assert!(!report.stdout.contains("every user"), "{}", report.stdout);
}
