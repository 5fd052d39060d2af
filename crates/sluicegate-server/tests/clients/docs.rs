//! The pages about clients show the exact programs, and every program is on a page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clients::program::root;

const LANGUAGES: [&str; 8] = ["dotnet", "go", "java", "node", "php", "python", "ruby", "rust"];

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

#[test]
fn pages_show_the_programs() {
    let examples = root().join("examples/clients");
    let mut shown = BTreeSet::new();
    for language in LANGUAGES {
        let page = root().join(format!("docs/clients/{language}.md"));
        let page = fs::read_to_string(page).unwrap();
        for file in files(&examples.join(language)) {
            let text = fs::read_to_string(&file).unwrap();
            let is_shown = page
                .split("```")
                .any(|block| block.split_once('\n').is_some_and(|(_, shown)| shown == text));
            assert!(is_shown, "docs/clients/{language}.md does not show {}", file.display());
            shown.insert(file);
        }
    }
    assert_eq!(shown, files(&examples), "a page for every language");
}

/// A program that is not tested says so, in its source and on its page.
#[test]
fn untested_programs_say_so() {
    let runs = include_str!("examples.rs");
    let examples = root().join("examples/clients");
    for file in files(&examples) {
        let name = file.strip_prefix(&examples).unwrap().to_str().unwrap();
        let says_so = fs::read_to_string(&file).unwrap().contains("Not run by the tests");
        assert_ne!(runs.contains(&format!("\"{name}\"")), says_so, "{name}");
    }
}
