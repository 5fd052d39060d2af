//! Rules in force: their source, the snapshot that decides, reloading, comparison and conversion.

pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod reload;
pub(crate) mod snapshot;
pub mod source;
