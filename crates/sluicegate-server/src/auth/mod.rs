//! Authentication of administrators: tokens, the guard that checks them, and the limit on failed attempts.

mod failures;
pub(crate) mod guard;
pub mod tokens;
