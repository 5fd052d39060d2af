//! Authentication: tokens of administrators, the guard that checks them, callers of the data doors, properties of
//! connections, and the limits on wrong tokens and passwords.

#[cfg_attr(not(test), expect(dead_code, reason = "the doors ask it with the next change"))]
pub(crate) mod callers;
pub(crate) mod connection;
mod failures;
pub(crate) mod guard;
pub(crate) mod password_delays;
pub mod tokens;
