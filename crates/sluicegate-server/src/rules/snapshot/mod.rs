//! The rules in force, kept up to date.
//!
//! ```text
//!   database --load--> Loaded --compose--> RuleSet with overrides --swap--> limiter
//!      |                  \--> the snapshot file, to start from while the database is down
//!   file of rules --------------^   (then only overrides and tokens come from the database)
//! ```
//!
//! A check never touches the database: it uses the rule set in force, which is replaced as a whole.
//! A set with any error is rejected as a whole and the last good one stays; a database that does
//! not answer changes nothing.

mod compose;
pub(crate) mod file;
mod keeper;
mod start;
mod watch;

pub(crate) use self::keeper::{Keeper, Parts};
pub(crate) use self::start::{SnapshotError, Start};
