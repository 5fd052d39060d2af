//! The administration over HTTP, through the real binary and real databases.

mod buckets;
mod callers;
mod events;
mod explain;
mod history;
mod overrides;
mod preview;
mod replacing;
mod rules;
mod stats;
mod tokens;
mod violations;
