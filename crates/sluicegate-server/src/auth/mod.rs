//! Authentication: tokens of administrators, the guard that checks them, and the limits on wrong tokens and passwords.

pub(crate) mod connection;
mod failures;
pub(crate) mod guard;
pub(crate) mod password_delays;
pub mod tokens;
