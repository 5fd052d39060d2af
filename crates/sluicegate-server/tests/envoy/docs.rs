//! The pages show exactly the tested file and the real answers of commands.

use std::fs;
use std::path::Path;

use crate::common::Server;
use crate::envoy::proxy::{CALLER, example};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

#[test]
fn the_command_answers_what_the_page_says() {
    let page = page("reference/grpc.md");
    let block = page.split("```console\n").nth(1).unwrap();
    let (command, expected) = block.split("```").next().unwrap().split_once('\n').unwrap();
    let body = command.split("-d '").nth(1).unwrap().split('\'').next().unwrap();
    let answer = Server::start(&[]).post_json("/json", body);
    assert_eq!((answer.status, answer.body.as_str()), (200, expected.trim_end()));
}

#[test]
fn the_page_shows_the_file() {
    let page = page("envoy.md");
    let text = fs::read_to_string(example()).unwrap();
    let blocks: Vec<_> =
        page.split("```yaml\n").skip(1).map(|block| block.split("```").next()).collect();
    assert!(
        blocks.contains(&Some(&text)),
        "docs/envoy.md does not show examples/envoy/envoy.yaml as it is"
    );
    // Other blocks are parts of the file, except the one about the caller, with which a test starts Envoy.
    let is_part = |block: &&str| **block != text && !block.contains(CALLER);
    for block in blocks.into_iter().flatten().filter(is_part) {
        for line in block.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            assert!(text.contains(line), "{line:?} is not in the file");
        }
    }
}
