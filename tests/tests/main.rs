//! Tests on real servers: one binary, one module per suite.
//!
//! `cargo test -p sluicegate-tests --test it faults::` runs one suite.
//!
//! | module | subject |
//! |---|---|
//! | `cluster`, `sentinel`, `servers` | the harness: clusters, sentinels, single servers |
//! | `clusters` | the Redis store on sentinels and clusters under faults |
//! | `faults` | the Redis store on one server under faults |
//! | `proxy` | the harness's proxy that injects faults |

mod cluster;
mod clusters;
mod faults;
mod proxy;
mod sentinel;
mod servers;
