//! A header of the PROXY protocol is found at the start of a connection, whatever follows, and never needs bytes beyond
//! its length.

use sluicegate_server::fuzzing::proxy_protocol as parse;

/// Runs the target.
pub fn run(data: &[u8]) {
    let Some((source, length)) = parse(data) else { return };
    assert!(length <= data.len());
    assert_eq!(parse(&data[..length]), Some((source, length)));
    if length > 0 {
        assert_eq!(parse(&data[..length - 1]), None);
    }
}
