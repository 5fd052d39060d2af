//! Globs, against a matcher that backtracks.

use proptest::prelude::*;
use sluicegate::rules::{Glob, GlobError};

use crate::library::support::cases;

fn matches(glob: &str, text: &str) -> bool {
    Glob::parse(glob).unwrap().matches(text)
}

/// The definition, word by word, and in exponential time.
fn naive(glob: &[char], text: &[char]) -> bool {
    let within_segment = |end: &usize| !text[..*end].contains(&'/');
    match glob {
        [] => text.is_empty(),
        ['*', '*', rest @ ..] => (0..=text.len()).any(|end| naive(rest, &text[end..])),
        ['*', rest @ ..] => {
            (0..=text.len()).take_while(within_segment).any(|end| naive(rest, &text[end..]))
        }
        [c, rest @ ..] => text.first() == Some(c) && naive(rest, &text[1..]),
    }
}

#[test]
fn a_glob_matches_the_whole_text() {
    for (glob, text) in [
        ("/login", "/login"),
        ("*", ""),
        ("*", "login"),
        ("**", ""),
        ("**", "/a/b"),
        ("/api/*", "/api/"),
        ("/api/*", "/api/search"),
        ("/api/*/items", "/api/7/items"),
        ("/api/**", "/api/a/b/c"),
        ("/**/items", "/a/b/items"),
        ("**/items", "/items"),
        ("/v*/x", "/v12/x"),
        ("*.jpg", "a.b.jpg"),
        ("/a**z", "/a/b/cz"),
        ("/é*", "/éè"),
        ("a***b", "a/b"),
        ("***", "/"),
        ("*", "*"),
    ] {
        assert!(matches(glob, text), "{glob} {text}");
    }
    for (glob, text) in [
        ("/login", "/login/"),
        ("/login", "/LOGIN"),
        ("/login", "/logi"),
        ("*", "/"),
        ("/api/*", "/api"),
        ("/api/*", "/api/a/b"),
        ("/api/*/items", "/api/a/b/items"),
        ("/api/**", "/api"),
        ("/api/**", "/apis/a"),
        ("/v*", "/v/1"),
        ("*.jpg", "a/b.jpg"),
        ("/a?c", "/abc"),
        ("[ab]", "a"),
    ] {
        assert!(!matches(glob, text), "{glob} {text}");
    }
}

#[test]
fn a_glob_without_a_star_is_one_text() {
    assert_eq!(Glob::parse("/a?[b]{c}\\").unwrap().literal(), Some("/a?[b]{c}\\"));
    assert_eq!(Glob::parse("/a*").unwrap().literal(), None);
}

#[test]
fn a_glob_has_a_bounded_length() {
    assert_eq!(Glob::parse(""), Err(GlobError::Empty));
    assert!(Glob::parse(&"*".repeat(256)).is_ok());
    assert_eq!(Glob::parse(&"a".repeat(257)), Err(GlobError::TooLong));
}

/// A matcher that goes back would take longer than the universe has; one that keeps every star of a row
/// as a place of its own would take minutes.
#[test]
fn matching_is_linear_in_the_text() {
    let text = "a".repeat(1 << 16);
    for glob in ["a*".repeat(127) + "b", "**a".repeat(85), "*".repeat(255) + "b", "*a".repeat(128)]
    {
        let ends_in_b = glob.ends_with('b');
        assert_eq!(matches(&glob, &text), !ends_in_b, "{glob}");
        assert_eq!(matches(&glob, &format!("{text}b")), ends_in_b, "{glob}");
    }
}

/// Every text of up to `len_max` of these letters.
fn all_texts(letters: &[char], len_max: usize) -> Vec<Vec<char>> {
    let (mut texts, mut longest) = (vec![Vec::new()], vec![Vec::new()]);
    for _ in 0..len_max {
        let longer = longest.iter().flat_map(|text: &Vec<char>| {
            letters.iter().map(move |letter| text.iter().copied().chain([*letter]).collect())
        });
        longest = longer.collect();
        texts.extend(longest.iter().cloned());
    }
    texts
}

/// With nothing left out: every short glob against every short text.
#[test]
fn short_globs_match_what_their_definition_says() {
    let texts = all_texts(&['a', '/'], 6);
    for glob in &all_texts(&['a', '/', '*'], 6)[1..] {
        let parsed = Glob::parse(&String::from_iter(glob)).unwrap();
        for text in &texts {
            let found = parsed.matches(&String::from_iter(text));
            assert_eq!(found, naive(glob, text), "{glob:?} {text:?}");
        }
    }
}

/// The definition, by dynamic programming: whether the rest of the glob matches the rest of the text, for all rests.
fn tabulated(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let mut rests = vec![vec![false; text.len() + 1]; glob.len() + 1];
    rests[glob.len()][text.len()] = true;
    for g in (0..glob.len()).rev() {
        let is_double = glob[g] == b'*' && (glob.get(g + 1) == Some(&b'*'));
        for t in (0..=text.len()).rev() {
            let longer = |rests: &[Vec<bool>]| t < text.len() && rests[g][t + 1];
            rests[g][t] = match glob[g] {
                b'*' if is_double => rests[g + 2][t] || longer(&rests),
                b'*' => rests[g + 1][t] || (text.get(t) != Some(&b'/') && longer(&rests)),
                byte => text.get(t) == Some(&byte) && rests[g + 1][t + 1],
            };
        }
    }
    rests[0][0]
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_glob_matches_what_its_definition_says(glob in "[ab*/é]{1,10}", text in "[ab*/é]{0,12}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(matches(&glob, &text), naive(&chars(&glob), &chars(&text)));
    }

    /// Globs with several stars between slashes, which short ones cannot have.
    #[test]
    fn a_long_glob_matches_what_its_definition_says(
        glob in "([ab]{1,2}|[*]|[*][*]|/){1,16}",
        text in "([ab]|/){0,24}",
    ) {
        prop_assert_eq!(matches(&glob, &text), tabulated(&glob, &text));
    }
}
