//! The administration over HTTP, through the real binary and real databases.

mod buckets;
mod events;
mod explain;
mod overrides;
mod preview;
mod replacing;
mod rules;
mod stats;
mod tokens;
mod violations;
