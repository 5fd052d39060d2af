//! The program of `docs/clients/rust.md`, built here so that the tests can run it against a running service.
//!
//! ```text
//! make run
//! cargo run -p sluicegate-server --example client
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it waits for a token, and shows what it was told"
)]

include!("../../../examples/clients/rust/check.rs");
