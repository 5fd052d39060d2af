//! The house of the service: a folder uses only folders with a higher level, so that data flows one way.

use super::sources::below;

/// Levels of the folders and root files of `sluicegate-server/src`, as `lib.rs` lists them. Those of one level do not
/// know each other.
const LEVELS: [(&str, u8); 21] = [
    ("cli", 1),
    ("process", 2),
    ("doors", 3),
    ("admin", 4),
    ("web", 5),
    ("app", 6),
    ("rules", 7),
    ("observe", 8),
    ("auth", 9),
    ("data", 10),
    ("store", 10),
    ("body_budget", 11),
    ("config", 11),
    ("json", 11),
    ("envoy_names", 12),
    ("lifecycle", 12),
    ("log_limit", 12),
    ("network", 12),
    ("normalize", 12),
    ("private_file", 12),
    ("time", 12),
];

/// Levels inside folders whose parts are large enough to have an order of their own.
const DOORS: [(&str, u8); 11] = [
    ("listen", 1),
    ("dispatch", 2),
    ("http", 3),
    ("grpc", 4),
    ("resp", 4),
    ("admission", 5),
    ("answer_bytes", 5),
    ("progress", 5),
    ("refunds", 5),
    ("stream", 5),
    ("socket", 6),
];

#[test]
fn every_edge_points_to_a_higher_level() {
    let mut wrong = Vec::new();
    for (file, text) in below("crates/sluicegate-server/src", ".rs") {
        let module = module(&file);
        for target in targets(&module, &text) {
            wrong.extend(complaint(&file, &module, &target));
        }
    }
    assert!(wrong.is_empty(), "edges that point the wrong way:\n{}", wrong.join("\n"));
}

#[test]
fn lib_rs_names_every_level() {
    let sources = below("crates/sluicegate-server/src", "lib.rs");
    let (_, lib) = &sources[0];
    for (name, level) in LEVELS {
        let line = lib.lines().find(|line| {
            let words = line.trim_start_matches("//!").trim_start();
            words.starts_with(&format!("{level} ")) && words.contains(name)
        });
        assert!(line.is_some(), "lib.rs does not list {name} at level {level}");
    }
}

/// The check itself finds wrong edges, in each form that they are written in.
#[test]
fn wrong_edges_are_found() {
    let found = |file: &str, text: &str| {
        let module = module(file);
        let targets = targets(&module, text);
        targets.iter().filter_map(|target| complaint(file, &module, target)).count()
    };
    assert_eq!(found("observe/live/mod.rs", "use crate::app::App;"), 1);
    assert_eq!(found("data/rules.rs", "use crate::store::open;"), 1);
    assert_eq!(found("data/rules.rs", "use crate::{config, store};"), 1);
    assert_eq!(found("web/body.rs", "use super::super::doors::http::check;"), 1);
    assert_eq!(found("web/body.rs", "fn f() { crate::admin::rules::view() }"), 1);
    assert_eq!(found("doors/resp/mod.rs", "use crate::doors::listen::Stream;"), 1);
    assert_eq!(found("doors/resp/mod.rs", "use super::grpc::rls;"), 1);
    assert_eq!(found("doors/stream.rs", "use crate::doors::resp::Resp;"), 1);
    assert_eq!(found("new_folder/mod.rs", "use crate::time::Timestamp;"), 1);
    assert_eq!(found("doors/new_folder/mod.rs", "use crate::time::Timestamp;"), 1);
    assert_eq!(found("doors/new_file.rs", "use super::grpc::rls;"), 1);
    assert_eq!(found("doors/mod.rs", "use crate::doors::listen::Listener;"), 0);
    assert_eq!(found("web/body.rs", "//! As [`x`](crate::cli::x).\nuse crate::app::App;"), 0);
    assert_eq!(found("doors/http/check.rs", "use super::take;\nuse crate::{app, config};"), 0);
    assert_eq!(found("doors/http/mod.rs", "use crate::doors::grpc::json;"), 0);
}

/// Path of the module that a file holds: `["doors", "http", "check"]`.
fn module(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// Modules that a file refers to by `crate::` or by leaving its folder with `super::`.
fn targets(module: &[String], text: &str) -> Vec<Vec<String>> {
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        if !code[..at].ends_with("pub(in ") {
            paths(&[], &code[at + word.len()..], &mut found);
        }
    }
    // A file's inline module of tests is one level deeper: its `super::` stays in the file.
    for (at, _) in code.match_indices("super::") {
        let (before, rest) = (&code[..at], &code[at..]);
        let is_first = !before.ends_with("super::") && !before.ends_with("self::");
        let is_top_level = before.ends_with("use ") && !before.ends_with("    use ");
        if is_first && is_top_level {
            let ups = rest.split("super::").take_while(|between| between.is_empty()).count();
            let base = &module[..module.len().saturating_sub(ups)];
            paths(base, &rest[ups * "super::".len()..], &mut found);
        }
    }
    found
}

/// Adds the paths that `rest` begins with, below `base`; a group in braces is several.
fn paths(base: &[String], rest: &str, found: &mut Vec<Vec<String>>) {
    if let Some(group) = rest.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (at, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    paths(base, group[start..at].trim(), found);
                    return;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    paths(base, group[start..at].trim(), found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let name = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '_');
    let mut path = base.to_vec();
    let mut rest = rest;
    // Two names are enough to tell folders and their parts.
    while path.len() < 2 {
        let end = rest.find(name).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        path.push(rest[..end].to_owned());
        let Some(more) = rest[end..].strip_prefix("::") else { break };
        if more.starts_with('{') {
            return paths(&path, more, found);
        }
        rest = more;
    }
    if !path.is_empty() {
        found.push(path);
    }
}

/// A line about an edge that points the wrong way.
fn complaint(file: &str, from: &[String], to: &[String]) -> Option<String> {
    if ["lib.rs", "main.rs", "floor.rs", "fuzzing.rs"].contains(&file) {
        return None;
    }
    let level = |of: &[(&str, u8)], name: &str| {
        of.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    };
    let (source, target) = (&from[0], &to[0]);
    let Some(source_level) = level(&LEVELS, source) else {
        return Some(format!("{file}: {source} has no level; give it one here and in lib.rs"));
    };
    if source == "doors"
        && let Some(part) = from.get(1)
        && level(&DOORS, part).is_none()
    {
        return Some(format!("{file}: doors/{part} has no level; give it one here"));
    }
    if source != target {
        // What has no level is an item of the root, of which there are none but modules.
        let target_level = level(&LEVELS, target)?;
        return (target_level <= source_level)
            .then(|| format!("{file}: {source} ({source_level}) uses {target} ({target_level})"));
    }
    let (Some(part), Some(other)) = (from.get(1), to.get(1)) else { return None };
    if source != "doors" || part == other {
        return None;
    }
    // A target that has no level is an item of `doors/mod.rs`.
    let (part_level, other_level) = (level(&DOORS, part)?, level(&DOORS, other)?);
    (other_level <= part_level)
        .then(|| format!("{file}: doors/{part} ({part_level}) uses doors/{other} ({other_level})"))
}
