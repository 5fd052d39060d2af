//! Configuration files of Envoy's rate limit service and of Limitador are converted or refused with a place.

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    sluicegate_server::fuzzing::import(text);
}
