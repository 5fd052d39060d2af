//! Output and questions at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cli::support::Gate;
use crate::common::eventually;

/// Width of the terminal.
const COLUMNS: u16 = 80;

/// Runs a command at a terminal, answers its question, and returns the output and the exit code.
fn at_a_terminal(arguments: &[&str], environment: &[(&str, &str)], answer: &str) -> (String, i32) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(theirs())
        .stdout(theirs())
        .stderr(theirs())
        .spawn()
        .unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let (writer, mut keyboard) = (Arc::clone(&seen), File::from(ours.try_clone().unwrap()));
    let reading = thread::spawn(move || {
        let (mut ours, mut bytes) = (File::from(ours), [0; 4096]);
        // A closed terminal reads as an error instead of the end of the file.
        while let Ok(read @ 1..) = ours.read(&mut bytes) {
            writer.lock().push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    });
    let mut is_answered = answer.is_empty();
    let status = eventually("the end", || {
        if !is_answered && seen.lock().contains("[y/N]") {
            keyboard.write_all(answer.as_bytes()).unwrap();
            is_answered = true;
        }
        child.try_wait().unwrap()
    });
    drop(keyboard);
    reading.join().unwrap();
    let seen = seen.lock().replace("\r\n", "\n");
    (seen, status.code().unwrap())
}

#[test]
fn a_person_is_asked_before_something_is_destroyed() {
    let gate = Gate::database();
    let url = gate.url();
    let delete = ["rules", "delete", "9", "--database", &url];
    for no in ["n\n", "\n", "perhaps\n"] {
        let (seen, code) = at_a_terminal(&delete, &[("TERM", "xterm")], no);
        assert!(
            seen.contains("Delete rule 9 (search:{user_id}) and its overrides? [y/N]"),
            "{seen}"
        );
        assert!(seen.contains("error: nothing was changed") && code == 2, "{code}: {seen}");
    }
    assert!(gate.ok(&["rules", "list"]).contains("search:{user_id}"));
    let (seen, code) = at_a_terminal(&delete, &[("TERM", "xterm")], "y\n");
    assert!(seen.contains("Rule 9 was deleted.") && code == 0, "{code}: {seen}");
    assert!(!gate.ok(&["rules", "list"]).contains("search:{user_id}"));
}

#[test]
fn a_person_sees_the_difference_before_the_question() {
    let gate = Gate::database();
    let url = gate.url();
    let file = gate
        .file("rules.toml", "[[rule]]\nrule_id = 1\nkey_pattern = \"a\"\ntokens = 1\nperiod = 1\n");
    let import = ["rules", "import", &file, "--database", &url];
    let (seen, code) = at_a_terminal(&import, &[("TERM", "xterm")], "y\n");
    let (difference, question) =
        (seen.find("- rule 9").unwrap(), seen.find("Apply this change?").unwrap());
    assert!(difference < question && code == 0, "{code}: {seen}");
    assert!(seen.contains("\u{1b}[31m- rule 9"), "{seen:?}");
    assert!(seen.contains("1 rule is in force."), "{seen}");
}

#[test]
fn tables_have_colours_for_those_who_want_them() {
    let gate = Gate::database();
    let url = gate.url();
    let list = ["rules", "list", "--database", &url];
    let (seen, code) = at_a_terminal(&list, &[("TERM", "xterm")], "");
    assert!(seen.contains('\u{1b}') && code == 0, "{seen:?}");
    for environment in [[("TERM", "xterm"), ("NO_COLOR", "1")], [("TERM", "dumb"), ("X", "1")]] {
        let (seen, _) = at_a_terminal(&list, &environment, "");
        assert!(!seen.contains('\u{1b}') && seen.contains("user:{user_id}"), "{seen:?}");
    }
}

#[test]
fn rules_can_be_read_in_a_narrow_terminal() {
    let gate = Gate::server();
    let (url, plain) = (gate.url(), [("NO_COLOR", "1")]);
    let (seen, code) = at_a_terminal(&["rules", "list", "--database", &url], &plain, "");
    assert_eq!(code, 0, "{seen}");
    let rules = gate.json(&["rules", "list"]);
    for rule in rules["rules"].as_array().unwrap() {
        let (id, pattern) = (&rule["rule_id"], rule["key_pattern"].as_str().unwrap());
        let is_its = |line: &&str| line.starts_with(&format!("{id} ")) && line.contains(pattern);
        assert!(seen.lines().any(|line| is_its(&line)), "{pattern}:\n{seen}");
    }
    assert!(seen.contains(" endpoint=/payment\n"), "{seen}");
    assert!(seen.lines().all(|line| line.len() <= usize::from(COLUMNS)), "{seen}");

    // Times are rounded to seconds; JSON has them exact.
    let (seen, _) = at_a_terminal(&["rules", "show", "1", "--database", &url], &plain, "");
    let made = seen.lines().find_map(|line| line.strip_prefix("created_at")).unwrap();
    assert!(made.ends_with('Z') && !made.contains('.'), "{seen}");
    assert!(rules["rules"][0]["created_at"].as_str().unwrap().contains('.'), "{rules}");
}

#[test]
fn an_explanation_can_be_read_in_a_narrow_terminal() {
    let gate = Gate::server();
    let server = format!("http://{}", gate.server_of().address);
    let explain = [
        "explain",
        "--user-id",
        "42",
        "--ip",
        "203.0.113.9",
        "--plan",
        "free",
        "--server",
        &server,
    ];
    let (seen, code) = at_a_terminal(&explain, &[("NO_COLOR", "1")], "");
    assert_eq!(code, 0, "{seen}");
    for (id, pattern) in [(1, "user:{user_id}"), (7, "ip:{ip}"), (9, "search:{user_id}")] {
        let is_its = |line: &str| line.starts_with(&format!("{id} ")) && line.contains(pattern);
        assert!(seen.lines().any(is_its), "{pattern}:\n{seen}");
    }
    assert!(seen.lines().all(|line| line.len() <= usize::from(COLUMNS)), "{seen}");
}

#[test]
fn an_export_does_not_control_the_terminal() {
    let gate = Gate::database();
    gate.sql(
        "INSERT INTO rate_limit_violations (bucket_key, bucket_id, user_id, requested_at, last_at, \
         tokens_at_time, rule_id, minute) VALUES ('b', x'62', char(27) || '[2J', 0, 0, 0, 1, 0)",
    );
    let export = ["violations", "export", "--database", &gate.url()];
    let (seen, code) = at_a_terminal(&export, &[("TERM", "xterm")], "");
    assert!(code == 0 && seen.contains("\\u001b[2J") && !seen.contains('\u{1b}'), "{seen}");
    // A file or a pipe gets the data as they are.
    assert!(gate.ok(&["violations", "export"]).contains("\u{1b}[2J"));
}
