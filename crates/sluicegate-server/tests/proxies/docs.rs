//! The pages about proxies show exactly the tested files.

use std::fs;
use std::path::Path;

use crate::common::Launch;
use crate::proxies::proxy::{Kind, examples};

/// Beginning of every command on the pages.
const COMMAND: &str = "sluicegate serve ";

/// Code blocks of the pages with the page's name, without fences and info strings.
fn blocks() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/proxies");
    let mut blocks = Vec::new();
    for page in fs::read_dir(docs).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.matches("```").count() % 2, 0, "a block of {name} has no end");
        let inside = text.split("```").skip(1).step_by(2);
        blocks.extend(inside.map(|block| {
            let (_, code) = block.split_once('\n').unwrap();
            (name.clone(), code.to_owned())
        }));
    }
    assert!(!blocks.is_empty());
    blocks
}

#[test]
fn pages_show_the_files() {
    let blocks = blocks();
    let files: Vec<_> = Kind::ALL.into_iter().flat_map(Kind::files).collect();
    let texts: Vec<_> =
        files.iter().map(|file| fs::read_to_string(examples().join(file)).unwrap()).collect();
    for (file, text) in files.iter().zip(&texts) {
        let is_shown = blocks.iter().any(|(_, code)| code == text);
        assert!(is_shown, "docs/proxies/ does not show examples/proxies/{file} as it is");
    }
    for (page, code) in &blocks {
        let is_known = texts.contains(code) || code.starts_with(COMMAND);
        assert!(is_known, "docs/proxies/{page} shows untested code:\n{code}");
    }
}

#[test]
fn commands_do_what_they_say() {
    let blocks = blocks();
    let commands: Vec<_> =
        blocks.iter().filter_map(|(_, code)| code.strip_prefix(COMMAND)).collect();
    assert!(!commands.is_empty());
    for command in commands {
        let arguments: Vec<_> = command.split_whitespace().collect();
        let server = Launch::serve(&arguments).start();
        assert_eq!(server.get("/v1/authorize").status, 200, "{command}");
    }
}
