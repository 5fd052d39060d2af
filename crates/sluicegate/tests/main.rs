//! Integration tests of the library: one binary, one module per suite.
//!
//! `cargo test -p sluicegate --all-features --test it store::` runs one suite.
//!
//! | module | subject |
//! |---|---|
//! | `common` | shared helpers |
//! | `http` | header fields, problem bodies, client addresses |
//! | `library` | rules, verdicts, buckets, waiting, files |
//! | `middleware` | the tower layer, in memory and on real sockets |
//! | `redis` | the Redis store on real, private servers |
//! | `store` | the memory store |

#![cfg(test)]

mod common;
#[cfg(feature = "http")]
mod http;
mod library;
#[cfg(feature = "axum")]
mod middleware;
#[cfg(feature = "redis")]
mod redis;
mod store;
