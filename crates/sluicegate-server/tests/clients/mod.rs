//! Unmodified clients in many languages against the real binary: the programs in `examples/clients`, and the usual
//! Redis clients with their defaults.
//!
//! `make clients` fetches languages and clients. A missing one fails the test; it is never skipped.

mod defaults;
mod docs;
mod examples;
mod program;
