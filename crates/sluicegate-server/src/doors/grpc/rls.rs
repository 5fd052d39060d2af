//! Envoy's rate limit protocol, as `build.rs` makes it of the files in `proto/`.

#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "nobody wrote this code"
)]

include!(concat!(env!("OUT_DIR"), "/rls.rs"));

/// The protocol as it describes itself.
pub(crate) const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rls.bin"));
