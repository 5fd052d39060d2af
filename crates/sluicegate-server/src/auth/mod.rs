//! Authentication: tokens of administrators, the guard that checks them, callers of the data doors, properties of
//! connections, and the limits on wrong tokens and passwords.

pub(crate) mod admission;
pub(crate) mod callers;
pub(crate) mod connection;
mod failures;
pub(crate) mod guard;
pub(crate) mod password_delays;
pub mod tokens;
