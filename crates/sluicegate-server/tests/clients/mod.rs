//! Clients in many languages, as they are, against the real binary: the programs in `examples/clients`, and the usual
//! Redis clients at their defaults.
//!
//! `make clients` fetches languages and clients; if one is missing, that is a panic, never a skipped test.

mod defaults;
mod docs;
mod examples;
mod program;
