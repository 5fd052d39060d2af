//! The README tells the truth: its commands answer what it says they do, and its rules are rules.

use sluicegate::RuleSet;

use crate::common::Server;

const README: &str = include_str!("../../../../README.md");

/// The code blocks of one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Numbers are told apart only by whether there is one: waits are never the same twice.
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

/// What `curl -s --json BODY URL | cut -c 1-N` prints.
fn run(server: &Server, command: &str) -> String {
    let body = command.split("--json '").nth(1).unwrap().split('\'').next().unwrap();
    let path = command.split("127.0.0.1:8080").nth(1).unwrap().split([' ', ';']).next().unwrap();
    let answer = server.post_json(path, body).body;
    let cut = command.split("cut -c 1-").nth(1).map(|rest| rest.split([' ', ';']).next().unwrap());
    cut.map_or(answer.clone(), |end| answer[..end.parse().unwrap()].to_owned())
}

#[test]
fn commands_answer_what_the_readme_says() {
    let server = Server::start(&[]);
    let mut seen = 0;
    for block in blocks("console") {
        let mut lines = block.lines();
        let command = lines.next().unwrap().strip_prefix("$ ").expect("a command comes first");
        if command.split(' ').any(|word| word == "make") {
            continue;
        }
        let expected: Vec<_> = lines.collect();
        let times = if command.starts_with("for i in 1 2 3 4 5 6;") { 6 } else { 1 };
        assert_eq!(expected.len(), times, "{command}");
        for line in expected {
            assert_eq!(shape(&run(&server, command)), shape(line), "{command}");
            seen += 1;
        }
    }
    assert_eq!(seen, 10, "as many answers as the README shows");
}

#[test]
fn its_rules_are_rules_and_its_mistake_is_shown_as_it_says() {
    let rules = blocks("toml").into_iter().find(|block| block.contains("[[rule]]")).unwrap();
    assert_eq!(RuleSet::from_toml("rules.toml", rules).unwrap().rules().len(), 2);
    let mistaken = rules.replacen("burst_capacity", "brust_capacity", 1);
    let errors = RuleSet::from_toml("rules.toml", &mistaken).unwrap_err().to_string();
    let shown = blocks("text").into_iter().find(|block| block.starts_with("error")).unwrap();
    assert_eq!(errors.trim(), shown.trim());
}
