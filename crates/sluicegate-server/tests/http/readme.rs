//! The commands of the README return the answers it shows; the rules in the README and in the reference are valid.

use sluicegate::RuleSet;

use crate::common::Server;

const README: &str = include_str!("../../../../README.md");
const REFERENCE: &str = include_str!("../../../../docs/reference/rules.md");

/// The code blocks of one language.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Replaces numbers by a placeholder: waits differ between runs.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '9' } else { c };
        if !(c == '9' && shape.ends_with('9')) {
            shape.push(c);
        }
    }
    shape
}

/// Output of `curl ... -d 'BODY' URL`, run six times if the command is a loop; the last answer.
fn run(server: &Server, command: &str) -> String {
    let body = command.split("-d '").nth(1).unwrap().split('\'').next().unwrap();
    let path = command.split("127.0.0.1:8080").nth(1).unwrap().split([' ', ';']).next().unwrap();
    let times = if command.starts_with("for i in 1 2 3 4 5 6;") { 6 } else { 1 };
    assert_eq!(times > 1, command.ends_with("| tail -n 1"), "{command}");
    (0..times).fold(String::new(), |_, _| server.post_json(path, body).body)
}

#[test]
fn commands_answer_what_the_readme_says() {
    let server = Server::start(&[]);
    let mut seen = 0;
    for block in blocks(README, "console") {
        let (command, expected) = block.split_once('\n').unwrap();
        let command = command.strip_prefix("$ ").expect("a command comes first");
        // The README breaks answers into lines.
        let expected: String = expected.lines().map(str::trim).collect();
        assert_eq!(shape(&run(&server, command)), shape(&expected), "{command}");
        seen += 1;
    }
    assert_eq!(seen, 2, "as many answers as the README shows");
}

#[test]
fn its_rules_are_rules() {
    let rules =
        blocks(README, "toml").into_iter().find(|block| block.contains("[[rule]]")).unwrap();
    assert_eq!(RuleSet::from_toml("rules.toml", rules).unwrap().rules().len(), 2);
}

#[test]
fn the_reference_shows_a_mistake_as_it_is_reported() {
    let rules = blocks(REFERENCE, "toml")[0];
    let mistaken = rules.replacen("burst_capacity", "brust_capacity", 1);
    let errors = RuleSet::from_toml("rules.toml", &mistaken).unwrap_err().to_string();
    let shown = blocks(REFERENCE, "text");
    let shown = shown.into_iter().find(|block| block.starts_with("error")).unwrap();
    assert_eq!(errors.trim(), shown.trim());
}
