//! The commands of the page "On a network" run as they are, in order, and print what the page shows.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use sluicegate_tests::servers::{Flavour, free_port};

const PAGE: &str = include_str!("../../../../docs/network.md");

/// Ports on the page, which free ones replace.
const PORTS: [&str; 4] = ["8443", "8444", "6390", "8082"];

/// Time for the whole page.
const SECONDS_MAX: &str = "150";

/// A block of commands, and the output that the page shows below it.
#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    commands: &'a str,
    output: Option<&'a str>,
}

/// Steps of a page: each block in the language `sh`, with the block in the language `text` that follows.
fn steps(page: &str) -> Vec<Step<'_>> {
    let blocks = page.split("```").skip(1).step_by(2);
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut is_after_commands = false;
    for (language, text) in blocks.filter_map(|block| block.split_once('\n')) {
        match language {
            "sh" => steps.push(Step { commands: text, output: None }),
            "text" if is_after_commands => steps.last_mut().unwrap().output = Some(text),
            _ => {}
        }
        is_after_commands = language == "sh";
    }
    steps
}

/// A program that starts another one.
fn link(folder: &Path, name: &str, program: &Path) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", program.display())).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Script of all steps for one shell, which ends at the first command that fails, and ends what runs in the background.
fn script(steps: &[Step<'_>]) -> String {
    let mut script =
        "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n".to_owned();
    for (number, Step { commands, .. }) in steps.iter().enumerate() {
        script +=
            &format!("echo {number} >step\nexec >output.{number} 2>errors.{number}\n{commands}");
    }
    script
}

/// Runs the steps of a page in a new folder; the error names the step, and what happened.
fn run(page: &str) -> Result<usize, String> {
    let page = PORTS.iter().fold(page.to_owned(), |page, port| {
        let free = free_port();
        page.replace(&format!(":{port}"), &format!(":{free}"))
            .replace(&format!("-p {port}"), &format!("-p {free}"))
    });
    let steps = steps(&page);
    let folder = tempfile::tempdir().unwrap();
    let (work, programs) = (folder.path().join("work"), folder.path().join("bin"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&programs).unwrap();
    link(&programs, "sluicegate", Path::new(env!("CARGO_BIN_EXE_sluicegate")));
    link(&programs, "redis-cli", &Flavour::Redis70.program().with_file_name("cli"));
    fs::write(folder.path().join("script"), script(&steps)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let done = Command::new("timeout")
        .args(["-k", "5", SECONDS_MAX, "bash", "../script"])
        .env_clear()
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(&work)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    let read = |name: String| fs::read_to_string(work.join(name)).unwrap_or_default();
    if !done.success() {
        let number = read("step".into());
        let errors = read(format!("errors.{}", number.trim()));
        let commands = number.trim().parse().ok().and_then(|number: usize| steps.get(number));
        return Err(format!("{done} in {commands:?}: {errors}{}", read("sluicegate.log".into())));
    }
    for (number, step) in steps.iter().enumerate() {
        let printed = read(format!("output.{number}"));
        if step.output.is_some_and(|shown| shown != printed) {
            return Err(format!(
                "{step:?} printed {printed:?}{}",
                read(format!("errors.{number}"))
            ));
        }
    }
    Ok(steps.len())
}

#[test]
fn its_commands_work_and_print_what_it_shows() {
    let steps = run(PAGE).unwrap_or_else(|error| panic!("{error}"));
    assert!(steps >= 10, "as many blocks as the page has: {steps}");
}

#[test]
fn a_command_that_fails_and_another_output_are_found() {
    let page =
        |commands: &str, shown: &str| format!("```sh\n{commands}\n```\n\n```text\n{shown}\n```\n");
    assert_eq!(run(&page("word=one; echo $word", "one")), Ok(1));
    let two = page("word=one", "").replace("```text\n\n```\n", "") + &page("echo $word", "one");
    assert_eq!(run(&two), Ok(2), "one shell runs all blocks");
    assert!(run(&page("echo two", "one")).is_err_and(|error| error.contains("printed \"two")));
    for failing in ["false", "false | cat", "echo $unset", "sluicegate nothing"] {
        assert!(run(&page(failing, "")).is_err(), "{failing}");
    }
}
