//! The Sluicegate service: front doors over the `sluicegate` library, its settings and its command line.
//!
//! The binary is nothing but [`cli::main`]; everything is here, where tests can reach it. From the
//! command line inwards: [`cli`] reads [`config`], [`serve`] puts the service together from the rules
//! of [`rules_source`], the store, the listeners and the front doors ([`http`]), and ends it in order.

pub mod app;
pub mod audit;
mod backoff;
pub mod cli;
pub mod config;
mod convert;
pub mod data;
mod descriptors;
#[doc(hidden)]
pub mod floor;
mod grpc;
pub mod http;
mod listen;
pub mod live;
pub mod logging;
pub mod metrics;
mod names;
mod page;
pub mod ready;
pub mod recent;
mod reload;
pub mod resp;
mod routes;
mod rules_diff;
pub mod rules_source;
pub mod serve;
mod shutdown;
pub mod snapshot;
mod spelling;
pub mod startup;
pub mod stats;
mod store;
pub mod time;
pub mod tokens;
