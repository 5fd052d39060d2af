//! `rules.toml` that is not right: all mistakes at once, each in its place, and nothing worse.

use proptest::prelude::*;
use sluicegate::RuleSet;
use sluicegate::rules::{FileErrors, RULES_FILE_BYTES_MAX, RULES_MAX};

use crate::library::support::cases;

fn errors(text: &str) -> FileErrors {
    RuleSet::from_toml("rules.toml", text).unwrap_err()
}

/// `line:column: message` of every mistake.
fn listed(text: &str) -> Vec<String> {
    errors(text).errors().iter().map(ToString::to_string).collect()
}

/// The one mistake that a rule has with this line in it, as `column: message`.
fn of_line(line: &str) -> String {
    let text = format!("[[rule]]\nkey_pattern = 'a'\n{line}\ntokens = 5\nperiod = 1\n");
    let [error] = &listed(&text)[..] else { panic!("{line}: {}", errors(&text)) };
    error.strip_prefix("3:").unwrap_or(error).to_owned()
}

#[test]
fn everything_is_shown_at_once() {
    let text = r#"version = 1

[[rule]]
key_pattern = "user:{user_id"
tokens = 10
period = "1 fortnight"
burst = 50

[[rule]]
rule_id = 7
key_pattern = "login:{ip}"
tokens = 5
period = 60
burst_capacity = 0
conditions = { endpoint = "", method = 5 }

[[rule]]
rule_id = 7
tokens = -1
plan = free

[[rule]]
rule_id = 7
key_pattern = "login:{ip}"
rate_per_second = 0
"#;
    let expected = r#"error: unknown key `version`: use `rule`
 --> rules.toml:1:1
  |
1 | version = 1
  | ^^^^^^^

error: key_pattern: this `{` is never closed
 --> rules.toml:4:21
  |
4 | key_pattern = "user:{user_id"
  |                     ^

error: period: not a unit of time: use us, ms, s, minute, hour, day or week
 --> rules.toml:6:10
  |
6 | period = "1 fortnight"
  |          ^^^^^^^^^^^^^

error: unknown column `burst`: did you mean `burst_capacity`?
 --> rules.toml:7:1
  |
7 | burst = 50
  | ^^^^^

error: burst_capacity: a capacity of zero grants nothing
  --> rules.toml:14:18
   |
14 | burst_capacity = 0
   |                  ^

error: conditions.endpoint: an empty glob matches nothing
  --> rules.toml:15:27
   |
15 | conditions = { endpoint = "", method = 5 }
   |                           ^^

error: conditions.method: expected text, found a whole number
  --> rules.toml:15:40
   |
15 | conditions = { endpoint = "", method = 5 }
   |                                        ^

error: invalid boolean, expected `false`
  --> rules.toml:20:8
   |
20 | plan = free
   |        ^^^^

error: rule_id 7 is duplicated, first in line 10
  --> rules.toml:23:11
   |
23 | rule_id = 7
   |           ^

error: key_pattern `login:{ip}` is duplicated for every plan, first in line 11
  --> rules.toml:24:15
   |
24 | key_pattern = "login:{ip}"
   |               ^^^^^^^^^^^^

error: rate_per_second: a rate of zero never refills
  --> rules.toml:25:19
   |
25 | rate_per_second = 0
   |                   ^"#;
    assert_eq!(errors(text).to_string(), expected);
    assert_eq!(errors(text).left_out(), 0);
    assert_eq!(errors(text).name(), "rules.toml");
}

#[test]
fn a_mistake_is_found_in_its_place() {
    for (line, expected) in [
        ("rule_id = 'x'", "11: rule_id: expected a whole number, found text"),
        ("rule_id = 1.5", "11: rule_id: expected a whole number, found a decimal number"),
        ("rule_id = -1", "11: rule_id: is negative"),
        ("rule_id = 99999999999999999999", "11: rule_id: is too large"),
        ("rule_id = 0x20000000000000", "11: rule_id: is at most 9007199254740991"),
        ("scope = 'users'", "9: scope: unknown scope `users`: did you mean `user`?"),
        (
            "scope = 'team'",
            "9: scope: unknown scope `team`: use `global`, `ip`, `endpoint`, `user` or `custom`",
        ),
        ("plan = 5", "8: plan: expected text, found a whole number"),
        (
            "plan = \"a\\tb\"",
            "8: plan: a plan's name must have at most 32 bytes and no control characters",
        ),
        ("rate_per_second = 'x'", "19: rate_per_second: expected a number, found text"),
        ("rate_per_second = -0.5", "19: rate_per_second: is negative"),
        ("rate_per_second = nan", "19: rate_per_second: not a decimal number"),
        ("rate_per_second = -inf", "19: rate_per_second: infinity is not allowed"),
        ("rate_per_second = 5e0", "19: rate_per_second: write the number without an exponent"),
        ("rate_per_second = 4.99", "19: rate_per_second: is not 5 per period: leave it out"),
        (
            "rate_per_second = 5.0000000000000000000001",
            "19: rate_per_second: too many digits to be kept exactly",
        ),
        ("burst_capacity = 0", "18: burst_capacity: a capacity of zero grants nothing"),
        (
            "burst_capacity = true",
            "18: burst_capacity: expected a whole number, found true or false",
        ),
        ("is_active = 1", "13: is_active: expected true or false, found a whole number"),
        ("description = []", "15: description: expected text, found a list"),
        (
            "created_at = 2026-08-01",
            "14: created_at: write it with date, time and offset, such as 2026-08-01T12:00:00Z",
        ),
        (
            "created_at = 'yesterday'",
            "14: created_at: write it with date, time and offset, such as 2026-08-01T12:00:00Z",
        ),
        ("version = -1", "11: version: is negative"),
        (
            "algorithm = 'leaky-bucket'",
            "13: algorithm: unknown algorithm `leaky-bucket`: did you mean `leaky_bucket`?",
        ),
        ("refill = 'Interval'", "10: refill: unknown refill `Interval`: did you mean `interval`?"),
        ("max_wait = 1", "12: max_wait: max_wait needs the leaky_bucket algorithm"),
        (
            "max_wait = '1'",
            "12: max_wait: write it as a number of seconds, or text such as \"62.5s\" or \"1 minute\"",
        ),
        (
            "mode = 'dry-run'",
            "8: mode: unknown mode `dry-run`: use `enforce`, `shadow` or `unlimited`",
        ),
        (
            "on_error = 'block'",
            "12: on_error: unknown on_error `block`: use `local`, `allow` or `deny`",
        ),
        (
            "conditions = '/x'",
            "14: conditions: expected a table of attributes and globs, found text",
        ),
        (
            "conditions = { 'a b' = 'x' }",
            "16: conditions.a b: `a b` is not the name of an attribute (at most 64 letters, digits, \
             `_`, `-`, `.`)",
        ),
        ("name = 5", "8: name: expected text, found a whole number"),
        ("replaces = 'a'", "12: replaces: expected a list of names, found text"),
        ("replaces = ['a', 5]", "12: replaces: expected text, found a whole number"),
        (
            "replaces = ['a', '']",
            "12: replaces: a name must have 1 to 128 bytes and no control characters",
        ),
        ("conditions = { ip = '!' }", "21: conditions.ip: an empty glob matches nothing"),
        ("tokns = 5", "1: unknown column `tokns`: did you mean `tokens`?"),
        ("rate = 5", "1: unknown column `rate`: did you mean `rate_per_second`?"),
        ("KeyPattern = 'a'", "1: unknown column `KeyPattern`: did you mean `key_pattern`?"),
        ("tokens = 6", "4:1: duplicate key"),
    ] {
        assert_eq!(of_line(line), expected, "{line}");
    }
    let unknown = of_line("colour = 5");
    assert!(
        unknown.starts_with("1: unknown column `colour`: use `rule_id`, `name`, `key_pattern`"),
        "{unknown}"
    );
}

/// The very character of a key pattern, however its string is written.
#[test]
fn a_key_pattern_is_pointed_into() {
    for (written, column) in [
        (r#"key_pattern = "user:{x""#, 21),
        ("key_pattern = 'user:{x'", 21),
        (r#"key_pattern = "é:{x""#, 18),
        (r#"key_pattern = "\u00e9:{x""#, 23),
        (r#"key_pattern = "\U0001F600\x41\"\\{x""#, 34),
        (r#"key_pattern = """user:{x""""#, 23),
        ("key_pattern = '''user:{x'''", 23),
        ("key_pattern=\t'{x'", 15),
        ("key_pattern = 'endpoint:'", 25),
        ("key_pattern = ''", 16),
        (r#"key_pattern = "a\n""#, 17),
    ] {
        let errors = errors(&format!("[[rule]]\n{written}\nrate_per_second = 1\n"));
        let [error] = errors.errors() else { panic!("{errors}") };
        assert_eq!((error.line(), error.column()), (2, column), "{errors}");
    }
    // On a later line of a string that has several.
    let text = "[[rule]]\nkey_pattern = \"\"\"\\\n    user:\\\r\n  {x\"\"\"\nrate_per_second = 1\n";
    assert_eq!(listed(text), ["4:3: key_pattern: this `{` is never closed"]);
}

#[test]
fn what_is_missing_is_missed_where_its_rule_begins() {
    assert_eq!(
        listed("\n[[rule]]\n\n  [[rule]]\n  key_pattern = 'a'\n"),
        [
            "2:1: key_pattern: is missing",
            "2:1: tokens: is missing: give tokens and period, or rate_per_second",
            "4:3: tokens: is missing: give tokens and period, or rate_per_second",
        ]
    );
}

#[test]
fn what_follows_from_another_mistake_is_not_reported() {
    let text = "[[rule]]\nkey_pattern = 5\ntokens = 'x'\nperiod = 0\nburst_capacity = 0\n";
    assert_eq!(
        listed(text),
        [
            "2:15: key_pattern: expected text, found a whole number",
            "3:10: tokens: expected a whole number, found text",
            "4:10: period: the period must be longer than zero",
        ]
    );
    // A rule with broken TOML in it is left alone; the others are not.
    let text = "[[rule]]\nkey_pattern = 'a\ntokens = 0\n\
                [[rule]]\nkey_pattern = 'b'\ntokens = 0\nperiod = 1";
    assert_eq!(
        listed(text),
        [
            "2:17: invalid literal string, expected `'`",
            "6:10: tokens: a rate of zero never refills",
        ]
    );
}

#[test]
fn a_file_without_rules_must_say_so() {
    let nothing = "1:1: no rules: write `rule = []` for a file without rules";
    assert_eq!(listed(""), [nothing]);
    assert_eq!(listed("# nothing yet\n"), [nothing]);
    assert!(RuleSet::from_toml("rules.toml", "rule = []").is_ok());
    assert_eq!(listed("[[rules]]\n"), ["1:3: unknown key `rules`: did you mean `rule`?"]);
    let brackets = "rules are written as `[[rule]]`, with two brackets";
    assert_eq!(listed("[rule]\nkey_pattern = 'a'\n"), [format!("1:1: {brackets}")]);
    assert_eq!(listed("rule = 5"), [format!("1:8: {brackets}")]);
    assert_eq!(listed("rule = [5]"), ["1:9: a rule is a table, not a whole number"]);
}

#[test]
fn there_is_an_end_to_everything() {
    let long = "#".repeat(RULES_FILE_BYTES_MAX + 1);
    assert_eq!(listed(&long), ["1:4194305: a file has at most 4194304 bytes"]);
    let longest = "rule=[]\n".to_owned() + &"#".repeat(RULES_FILE_BYTES_MAX - 8);
    assert!(RuleSet::from_toml("rules.toml", &longest).is_ok());

    let many = "[[rule]]\n".repeat(RULES_MAX + 1);
    assert_eq!(listed(&many), ["10001:1: 10001 rules exceed the maximum of 10000"]);

    // A hundred mistakes are enough to begin with.
    let many = errors(&"[[rule]]\n".repeat(RULES_MAX));
    assert_eq!((many.errors().len(), many.left_out()), (100, 19_900));
    assert!(many.to_string().ends_with("\n\nand 19900 more"));

    // Quoted text is truncated.
    let name = "n".repeat(100_000);
    let errors = errors(&format!("[[rule]]\n{name} = 1\n{name}"));
    assert!(errors.to_string().len() < 5_000, "{}", errors.to_string().len());
    assert!(errors.errors().iter().all(|error| error.message().len() < 1_000));

    // Deep nesting ends in an error, not in a full stack.
    assert!(
        RuleSet::from_toml("rules.toml", &("rule=".to_owned() + &"[".repeat(100_000))).is_err()
    );
    assert!(RuleSet::from_toml("rules.toml", &("a.".repeat(100_000) + "b=1")).is_err());
}

/// Nothing that a file or its name contains reaches a terminal as a command to it.
#[test]
fn control_characters_are_never_shown_raw() {
    let escapes = "\u{1b}[31m\u{9b}2J\u{7}\u{7f}\u{202e}\u{2066}";
    let text = format!(
        "# {escapes}\n{escapes} = 1\n\"{escapes}\" = 2\n[[rule]]\n\"\\u001b[2J\\u0007\" = 1 # {escapes}\n\
         plan = \"\\u001b[2J\"\nkey_pattern = \"{escapes}\"\nscope = \"\\u009b\"\n'{escapes}' = 2"
    );
    let name = format!("rules{escapes}\n.toml");
    let errors = RuleSet::from_toml(&name, &text).unwrap_err();
    let harmless =
        |c: char| !c.is_control() && !('\u{202a}'..='\u{2069}').contains(&c) || c == '\n';
    assert!(errors.to_string().chars().all(harmless), "{errors:?}");
    assert!(errors.name().chars().all(|c| c != '\n' && harmless(c)));
    for error in errors.errors() {
        assert!(error.to_string().chars().all(|c| c != '\n' && harmless(c)), "{error:?}");
    }
    // In colour, the only escapes are those that colour.
    let coloured = errors.coloured().to_string();
    for escape in coloured.split('\u{1b}').skip(1) {
        let colours = escape.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let is_colour = |codes: &str| codes.bytes().all(|b| b.is_ascii_digit() || b == b';');
        assert!(colours.is_some_and(|(codes, _)| is_colour(codes)), "{escape:?}");
    }
}

#[test]
fn colours_are_for_terminals() {
    let errors = errors("rule = 5");
    assert!(!errors.to_string().contains('\u{1b}'));
    let coloured = errors.coloured().to_string();
    assert!(coloured.contains("\u{1b}[1m") && coloured.contains("rules.toml:1:8"));
}

#[test]
fn lines_are_counted_as_editors_do() {
    let text = "\u{feff}x = 1\r\n\ty = 2\r\n";
    assert_eq!(
        listed(text),
        ["1:1: unknown key `x`: use `rule`", "2:2: unknown key `y`: use `rule`"]
    );
    let shown = errors(text).to_string();
    assert!(shown.contains("1 | x = 1\n  | ^\n") && shown.contains("rules.toml:2:2"), "{shown}");
}

proptest! {
    #![proptest_config(cases(500))]

    /// Parsing any text ends, and the position of every error exists.
    #[test]
    fn reading_is_total(text in file()) {
        if let Err(errors) = RuleSet::from_toml("rules.toml", &text) {
            prop_assert!(!errors.errors().is_empty());
            let lines: Vec<&str> = text.split('\n').collect();
            for error in errors.errors() {
                let columns = lines[error.line() - 1].chars().count() + 1;
                prop_assert!((1..=columns).contains(&error.column()));
            }
            prop_assert!(errors.to_string().starts_with("error: "));
        }
    }
}

/// Texts that look like rules, more or less.
fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => Just("[[rule]]".to_owned()),
        4 => Just("key_pattern = 'user:{user_id}'".to_owned()),
        4 => "(tokens|period|rate_per_second|burst_capacity|rule_id|version) = (0|1|5|-1|0\\.016|1e3|'1s'|nan)",
        2 => "(plan|scope|mode|algorithm|refill|on_error) = '(free|user|shadow|fixed_window|x)'",
        1 => "key_pattern = \"[{}a\\\\u0041:é]{0,6}\"",
        1 => "conditions = \\{ (endpoint|'x y') = '(/a\\*)?' \\}",
        1 => "\\PC{0,10}",
        1 => "[\u{0}-\u{ff}\r\n\"'=\\[\\]{}.#]{0,8}",
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}
