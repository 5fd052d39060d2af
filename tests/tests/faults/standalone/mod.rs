//! Faults of one server.

pub(crate) mod access;
pub(crate) mod clocks;
pub(crate) mod corrupt;
pub(crate) mod errors;
pub(crate) mod exact;
pub(crate) mod loss;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod outage;
pub(crate) mod scarce;
pub(crate) mod scripts;
pub(crate) mod steady;
