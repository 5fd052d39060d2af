//! Attacks on the running service by a client with one address and little bandwidth: one module per target.
//!
//! | module | subject |
//! |---|---|
//! | `administration` | attempts to administer without the right to |
//! | `audit` | attempts to blind or to falsify the audit of violations |
//! | `bodies` | bodies that cost more than they should |
//! | `callers` | attempts to be a caller, or to stay one |
//! | `certificates` | client certificates that only resemble those of a caller |
//! | `connections` | connections that keep others out |
//! | `files` | files of the service that another user of the host has prepared |
//! | `grpc` | misuse of the gRPC listener |
//! | `http2` | frames of HTTP/2 that cost the service more than the client |
//! | `identity` | attempts to be another client |
//! | `injection` | text of clients that would act as syntax elsewhere |
//! | `namespaces` | attempts to reach buckets of another namespace |
//! | `passwords` | attempts to guess secrets |
//! | `paths` | spellings of a path that would escape its rule |
//! | `refunds` | attempts to refund without the right to |
//! | `resp` | misuse of the listener for the Redis protocol |
//! | `room` | floods of keys |
//! | `rules` | rules that cost more than they should |
//! | `secrets` | secrets of the operator in logs, answers and help |
//! | `smuggling` | requests whose end two parsers would see at different places |
//! | `watchers` | attempts to keep others from watching |
//!
//! `sockets` opens connections from other addresses of loopback, and reads replies of the Redis protocol.
//!
//! `cargo test -p sluicegate-server --test attacks -- --nocapture` runs them and prints their figures. With
//! `SLUICEGATE_TEST_CALLERS=1`, every service has a caller, and all attacks are carried out by this caller. SECURITY.md
//! lists them; the number in a test's name is the row there. Every attack is bounded in time and size, and stays on loopback.

#![cfg(test)]

mod administration;
mod audit;
mod bodies;
mod callers;
mod certificates;
#[allow(
    clippy::allow_attributes,
    dead_code,
    unused_imports,
    reason = "this suite uses a part of the support that it shares with the others, and more of it with every test"
)]
#[path = "../../crates/sluicegate-server/tests/common/mod.rs"]
mod common;
mod connections;
mod files;
mod grpc;
mod http2;
mod identity;
mod injection;
mod namespaces;
mod passwords;
mod paths;
mod refunds;
mod resp;
mod room;
mod rules;
mod secrets;
mod smuggling;
mod sockets;
mod watchers;
