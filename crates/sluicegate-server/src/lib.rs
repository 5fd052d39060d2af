//! The Sluicegate service: protocols in front of the `sluicegate` library, administration, settings and command line.
//!
//! The binary is nothing but [`cli::main`]; everything is here, where tests can reach it. Dependencies point one way:
//! a folder uses only folders with a higher number. `tests/tests/tidy/house.rs` in the repository reads the `use crate::` edges and checks it.
//!
//! ```text
//!  1 cli       commands: `serve` starts `process`, the others ask a running service or run `admin` in process
//!  2 process   assembles, starts and stops the service
//!  3 doors     protocols on the data path: http, grpc, resp, and their listeners
//!  4 admin     endpoints of the administration
//!  5 web       parts of HTTP that doors and admin share: bodies, queries, problems, access
//!  6 app       the limiter, and the observers of its answers
//!  7 rules     source, snapshot, reload, diff and conversion of rules
//!  8 observe   metrics, statistics, live traffic, audit, logging, readiness
//!  9 auth      tokens, and the guard that checks them
//! 10 data      the database; the only place that knows SQL
//! 10 store     the store of buckets that the settings name
//! 11 body_budget memory for unfinished bodies
//! 11 config    the table of settings
//! 11 json      JSON forms of values and of a rule, with their schemas
//! 12 envoy_names, lifecycle, log_limit, network, normalize, private_file, time: no knowledge of the service
//! ```

mod admin;
mod app;
mod auth;
mod body_budget;
pub mod cli;
pub mod config;
pub mod data;
mod doors;
mod envoy_names;
#[cfg(feature = "floor")]
#[doc(hidden)]
pub mod floor;
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod lifecycle;
mod log_limit;
mod network;
mod normalize;
mod observe;
mod private_file;
mod process;
mod rules;
mod store;
pub mod time;
mod web;

// For tests and benchmarks, which reach no further than this.
#[doc(hidden)]
pub use self::auth::tokens;
#[doc(hidden)]
pub use self::doors::resp::parser;
#[doc(hidden)]
pub use self::process::startup;
#[doc(hidden)]
pub use self::rules::source;
