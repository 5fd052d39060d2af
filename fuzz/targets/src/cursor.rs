//! Query strings and cursors are parsed or refused.

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    sluicegate_server::fuzzing::query(text);
}
