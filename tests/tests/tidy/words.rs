//! Plain words: doc comments name things, and the product has one name.

use super::sources::below;

/// Folders with Rust code of ours.
const FOLDERS: [&str; 4] = ["crates", "tests", "bench", "fuzz"];

/// Words that a doc comment does not open with: they paraphrase a thing instead of naming it.
const OPENINGS: [&str; 6] = ["What", "How", "Whether", "Who", "Whom", "Whose"];

#[test]
fn doc_comments_of_rust_name_things() {
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        for (file, text) in below(folder, ".rs") {
            wrong.extend(complaints(&format!("{folder}/{file}"), &rust_docs(&text)));
        }
    }
    assert!(wrong.is_empty(), "{} doc comments to rewrite:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn doc_comments_of_the_page_name_things() {
    let mut wrong = Vec::new();
    for ending in [".ts", ".tsx"] {
        for (file, text) in below("dashboard", ending) {
            wrong.extend(complaints(&format!("dashboard/{file}"), &page_docs(&text)));
        }
    }
    assert!(wrong.is_empty(), "{} doc comments to rewrite:\n{}", wrong.len(), wrong.join("\n"));
}

/// The checks find what they are for.
#[test]
fn bad_doc_comments_are_found() {
    let found = |text: &str| complaints("a.rs", &rust_docs(text)).len();
    assert_eq!(found("/// What answers the requests of a door.\nstruct A;"), 1);
    assert_eq!(found("//! How it works.\n"), 1);
    assert_eq!(found("    /// Whether it is on.\n    is_on: bool,"), 1);
    assert_eq!(found("    /// Why.\n    source: Error,"), 1);
    assert_eq!(found("/// Seconds\nlength: u64,\n/// Who asks.\nuser: u64,"), 2);
    assert_eq!(found("/// Dispatches a request.\n///\n/// How is up to the router.\n"), 0);
    assert_eq!(found("// What follows is sorted.\n/// `WATCH`: however it ends.\n"), 0);
    assert_eq!(found("/// Whatever\n/// comes is counted.\n"), 0);
    let found = |text: &str| complaints("a.ts", &page_docs(text)).len();
    assert_eq!(found("/** What is shown. */\nconst a = 1;"), 1);
    assert_eq!(found("/**\n * How it is drawn,\n * and when.\n */\n"), 1);
    assert_eq!(found("/** Draws a bucket.\n * What is left is blue. */"), 0);
}

/// A doc comment: the number of its first line, and its text.
type Doc = (usize, String);

/// Doc comments of Rust code. Lines that follow each other are one.
fn rust_docs(text: &str) -> Vec<Doc> {
    let mut docs: Vec<Doc> = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let words = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match (words, docs.last_mut()) {
            (Some(words), Some((_, doc))) if is_inside => {
                doc.push('\n');
                doc.push_str(words.trim());
            }
            (Some(words), _) => docs.push((number, words.trim().to_owned())),
            (None, _) => {}
        }
        is_inside = words.is_some();
    }
    docs
}

/// Doc comments of TypeScript: from `/**` to `*/`.
fn page_docs(text: &str) -> Vec<Doc> {
    let mut docs = Vec::new();
    for (at, start) in text.match_indices("/**") {
        let number = text[..at].matches('\n').count() + 1;
        let body = &text[at + start.len()..];
        let body = body.split_once("*/").map_or(body, |(body, _)| body);
        let lines = body.lines().map(|line| line.trim().trim_start_matches('*').trim());
        let lines: Vec<_> = lines.skip_while(|line| line.is_empty()).collect();
        docs.push((number, lines.join("\n")));
    }
    docs
}

fn complaints(file: &str, docs: &[Doc]) -> Vec<String> {
    let wrong = docs.iter().filter(|(_, doc)| opens_badly(doc) || is_one_word(doc));
    wrong.map(|(number, doc)| format!("{file}:{number}: {}", first_line(doc))).collect()
}

fn first_line(doc: &str) -> &str {
    doc.lines().next().unwrap_or_default()
}

fn opens_badly(doc: &str) -> bool {
    let first = doc.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    OPENINGS.contains(&first)
}

/// True for "Why." or "Seconds", which state no contract. A name in code marks says what is documented.
fn is_one_word(doc: &str) -> bool {
    let word = doc.trim_end_matches(['.', '?', '!']);
    !word.is_empty() && word.chars().all(char::is_alphabetic)
}
