//! Rows of the table of settings, section by section.

mod data;
mod doors;
mod listeners;
mod service;
mod store;

use super::Key;

const TIMEOUT_MS_MIN: u64 = 10;
const TIMEOUT_MS_MAX: u64 = 3_600_000;

/// All settings, in the order of the reference.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    use self::listeners::{ADMIN, COMMON, GRPC, HTTP, IDLE, RESP};
    [COMMON, HTTP, GRPC, RESP, ADMIN, IDLE, doors::KEYS, store::KEYS, data::KEYS, service::KEYS]
        .into_iter()
        .flatten()
}
