//! The Markdown files of the repository: links and anchors resolve, commands need no recent curl, the README stays
//! short, and the commands of the page "On a network" work.

mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

const README_WORDS_MAX: usize = 1_500;
/// Folders with generated or downloaded files.
const SKIPPED: [&str; 3] = ["target", "node_modules", "dist"];

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn add_pages(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                add_pages(&path, pages);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).unwrap();
            pages.insert(path, text);
        }
    }
}

/// All Markdown files, by absolute path.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    add_pages(&root(), &mut pages);
    assert!(pages.len() > 40, "{} pages found", pages.len());
    pages
}

/// Lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchor that GitHub gives to a heading, without the suffix of duplicates.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Targets of relative links.
fn links(text: &str) -> Vec<&str> {
    let targets = prose(text).flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains(':') && !target.contains(' ')).collect()
}

/// `a/b/../c` as `a/c`.
fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = result.pop(),
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}

/// Links of a page without a file or heading behind them.
fn broken_links(path: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let text = &pages[path];
    let is_broken = |target: &&str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = match file {
            "" => path.to_owned(),
            file => normalized(&path.parent().unwrap().join(file)),
        };
        let has_anchor = |text: &String| anchor.is_empty() || anchors(text).contains(anchor);
        !file.exists() || !pages.get(&file).is_none_or(has_anchor)
    };
    links(text).into_iter().filter(is_broken).map(str::to_owned).collect()
}

#[test]
fn every_relative_link_has_a_target() {
    let pages = pages();
    let broken: Vec<_> = pages
        .keys()
        .flat_map(|path| broken_links(path, &pages).into_iter().map(move |link| (path, link)))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn broken_links_are_found() {
    let path = root().join("README.md");
    let text = "# A `b`, c\n[ok](#a-b-c) [ok](docs/speed.md) [no](#b)\n[no](docs/none.md)\n```\n[x](y.md)\n```\n";
    let pages = BTreeMap::from([(path.clone(), text.to_owned())]);
    assert_eq!(broken_links(&path, &pages), ["#b", "docs/none.md"]);
}

/// Ubuntu 22.04 has a curl without `--json`.
#[test]
fn commands_need_no_recent_curl() {
    for (path, text) in pages() {
        let line = text.lines().find(|line| line.contains("curl") && line.contains("--json"));
        assert_eq!(line, None, "{}: use -H 'content-type: application/json' -d", path.display());
    }
}

#[test]
fn the_readme_is_short() {
    let words = pages()[&root().join("README.md")].split_whitespace().count();
    assert!(words < README_WORDS_MAX, "{words} words");
}
