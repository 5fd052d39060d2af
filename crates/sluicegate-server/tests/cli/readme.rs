//! The commands of the README and the examples of the help work unchanged.

use crate::cli::support::{Gate, words};
use crate::common::Launch;

const README: &str = include_str!("../../../../README.md");

/// On a new installation, without a terminal for questions.
#[test]
fn commands_of_the_readme_work() {
    let gate = Gate::server();
    let blocks = README.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut seen = 0;
    for line in blocks.flat_map(str::lines) {
        let Some(arguments) = line.strip_prefix("sluicegate ") else { continue };
        let arguments = words(arguments);
        gate.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        seen += 1;
    }
    assert!(seen >= 5, "as many commands as the README has: {seen}");
    let denied = gate.run(&["check", "--ip", "203.0.113.9"]);
    assert_eq!(denied.code, Some(1), "{denied:?}");
}

#[test]
fn examples_of_new_rules_work_on_a_new_installation() {
    for gate in Gate::both() {
        let mut seen = 0;
        for help in [&["rules", "--help"][..], &["rules", "create", "--help"]] {
            let help = Launch::new(help).run().stdout;
            let examples =
                help.lines().filter(|line| line.starts_with("  sluicegate rules create "));
            for line in examples {
                let arguments = words(line.trim_start().trim_start_matches("sluicegate "));
                let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                gate.ok(&[&arguments[..], &["--dry-run"]].concat());
                seen += 1;
            }
        }
        assert!(seen >= 3, "{seen}");
    }
}
