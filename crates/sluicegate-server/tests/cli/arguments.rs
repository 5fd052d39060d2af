//! Help, completions, the manual, and errors in arguments.

use std::process::Command;

use crate::common::Launch;

const COMMANDS: [&str; 12] = [
    "serve",
    "check",
    "explain",
    "rules",
    "overrides",
    "violations",
    "buckets",
    "tokens",
    "callers",
    "migrate",
    "completions",
    "man",
];

fn help(arguments: &[&str]) -> String {
    let finished = Launch::new(&[arguments, &["--help"]].concat()).run();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    finished.stdout
}

#[test]
fn every_command_has_help_with_examples_and_exit_codes() {
    let overview = help(&[]);
    for command in COMMANDS {
        assert!(overview.contains(&format!("\n  {command}")), "{command}: {overview}");
        assert!(help(&[command]).contains("Examples:"), "{command}");
    }
    assert!(overview.contains("1 denied (check), 2 wrong arguments or refused, 3 cannot reach"));
    for command in
        ["rules", "check", "overrides", "violations", "buckets", "tokens", "callers", "migrate"]
    {
        assert!(help(&[command]).contains("Exit codes: 0 "), "{command}");
    }
    for action in ["list", "create", "update", "delete", "history", "preview", "export", "import"] {
        let help = help(&["rules", action]);
        for option in ["--json", "--server", "--database", "--token-file", "Examples:"] {
            assert!(help.contains(option), "rules {action}: {option}");
        }
    }
}

#[test]
fn mistakes_are_usage_errors_with_a_suggestion() {
    for (arguments, said) in [
        (&["rule"][..], "'rules'"),
        (&["rules", "lst"], "'list'"),
        (&["rules", "list", "--jsn"], "'--json'"),
        (&["rules", "create", "--rate", "10/fortnight"], "10/s"),
        (&["rules", "create", "--mode", "off"], "enforce, shadow"),
        (&["check", "--attribute", "tenant"], "NAME=VALUE"),
        (&["overrides", "set", "--rule", "1", "--subject", "x"], "--unlimited"),
        (
            &["overrides", "set", "--rule", "1", "--subject", "x", "--block", "--unlimited"],
            "cannot be used",
        ),
        (&["violations", "list", "--since", "soon"], "7 days"),
        (&["tokens", "create", "x", "--role", "root"], "read, admin"),
        (
            &["callers", "create", "x", "--may", "check,administer"],
            "check, take, refund, authorize",
        ),
        (&["callers", "create", "x"], "--may"),
        (&["callers", "create", "x", "--may", "check", "--expires-in", "soon"], "--expires-in"),
        (&["callers", "create", "x", "--may", "check", "--expires-in", "0s"], "longer than zero"),
        (
            &["callers", "create", "x", "--may", "check", "--expires-at", "2020-01-01T00:00:00Z"],
            "in the future",
        ),
        (&["callers", "create", "x", "--may", "check", "--no-token"], "--certificate"),
        (&["check", "--server", "127.0.0.1:1"], "--server: must be a URL"),
        (&["rules", "list", "--database", "mysql://h"], "--database: must begin with"),
    ] {
        let finished = Launch::new(arguments).run();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(finished.stderr.contains(said), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn a_token_is_no_flag() {
    let finished = Launch::new(&["rules", "list", "--token", "canary"]).run();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("--token"), "{finished:?}");
}

/// Generates completions, reading the output while it is written: it exceeds a pipe's buffer.
fn completions(shell: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_sluicegate");
    let output = Command::new(binary).args(["completions", shell]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = completions(shell);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sluicegate");
    std::fs::write(&path, completions("bash")).unwrap();
    let sourced = Command::new("bash").arg("-n").arg(&path).status().unwrap();
    assert!(sourced.success());
}

#[test]
fn a_page_of_the_manual_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1").display().to_string();
    let finished = Launch::new(&["man", "--out", &out]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let page = |name: &str| std::fs::read_to_string(format!("{out}/{name}.1")).unwrap();
    assert!(page("sluicegate").contains(".TH sluicegate 1"));
    for command in COMMANDS {
        let page = page(&format!("sluicegate-{command}"));
        assert!(page.contains(".SH EXAMPLES\n.nf\nsluicegate "), "{command}: {page}");
        assert!(!page.contains(".SH EXTRA") && page.contains("\n.fi\n"), "{command}: {page}");
    }
    for page_name in
        ["sluicegate-rules-import", "sluicegate-overrides-set", "sluicegate-violations-top"]
    {
        let page = page(page_name);
        assert!(page.contains(".SH OPTIONS"), "{page_name}");
        assert!(page.contains(&format!(".TH {page_name} 1")), "{page}");
    }
    // Commands stay on separate lines, to be copied.
    let lines =
        "\nsluicegate migrate \\-\\-status            list the migrations, and which are applied\n";
    assert!(page("sluicegate-migrate").contains(lines), "{}", page("sluicegate-migrate"));
    let first = Launch::new(&["man"]).run();
    assert!(first.code == Some(0) && first.stdout.contains(".SH NAME"), "{first:?}");
    let nowhere = Launch::new(&["man", "--out", "/dev/null/x"]).run();
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
}

/// Closing the pipe is not an error.
#[test]
fn a_closed_pipe_is_no_panic() {
    let finished = Launch::new(&["completions", "bash"]).after_shell("exec >&-").run();
    assert!(!finished.stderr.contains("panic"), "{finished:?}");
    let binary = env!("CARGO_BIN_EXE_sluicegate");
    let script = format!("set -o pipefail; {binary} completions zsh | true");
    let piped = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(piped.status.code(), Some(0), "{piped:?}");
    assert!(piped.stderr.is_empty(), "{piped:?}");
}
