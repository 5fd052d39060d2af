//! Bodies of the fuzz targets. Each takes arbitrary bytes, and panics if something does not hold.
//!
//! libFuzzer runs them (`fuzz_targets`), and a test runs them over the corpora (`tests/corpus.rs`).

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is what the targets are for"
)]

mod client_ip;
mod cursor;
mod decide;
mod import;
mod proxy_protocol;
mod rate;
mod resp;
mod rules_file;

pub use sluicegate::fuzzing::read_reply as redis_reply;
pub use sluicegate_server::fuzzing::{body, descriptors, header_fields, snapshot};

pub use self::client_ip::run as client_ip;
pub use self::cursor::run as cursor;
pub use self::decide::run as decide;
pub use self::import::run as import;
pub use self::proxy_protocol::run as proxy_protocol;
pub use self::rate::run as rate;
pub use self::resp::run as resp;
pub use self::rules_file::run as rules_file;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 13] = [
    ("body", body),
    ("client_ip", client_ip),
    ("cursor", cursor),
    ("decide", decide),
    ("descriptors", descriptors),
    ("header_fields", header_fields),
    ("import", import),
    ("proxy_protocol", proxy_protocol),
    ("rate", rate),
    ("redis_reply", redis_reply),
    ("resp", resp),
    ("rules_file", rules_file),
    ("snapshot", snapshot),
];
