//! Tests on real servers: one binary, one module per suite.
//!
//! `cargo test -p sluicegate-tests --test it faults::` runs one suite.
//!
//! | module | subject |
//! |---|---|
//! | `clusters` | the Redis store on sentinels and clusters under faults |
//! | `faults` | the Redis store on one server under faults |
//! | `harness` | the harness: single servers, sentinels, clusters, and the proxy that injects faults |

mod clusters;
mod faults;
mod harness;
