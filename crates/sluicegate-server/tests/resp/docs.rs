//! The documentation shows the real replies.

use crate::resp::clients::cli;
use crate::resp::support::serve;

const PAGE: &str = include_str!("../../../../docs/redis-protocol.md");

#[test]
fn the_transcripts_are_true() {
    let server = serve(&[]);
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut seen = 0;
    for step in blocks.flat_map(|block| block.split("$ redis-cli -p 6380 ").skip(1)) {
        let (command, shown) = step.split_once('\n').unwrap();
        let arguments: Vec<_> = ["--no-raw"].into_iter().chain(command.split(' ')).collect();
        assert_eq!(cli(&server, &arguments, ""), shown, "{command}");
        seen += 1;
    }
    assert!(seen >= 5, "as many commands as the page has: {seen}");
}
