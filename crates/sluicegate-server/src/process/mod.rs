//! The process: assembles the service, starts it, and stops it in order.

mod file_limit;
pub(crate) mod serve;
mod signals;
pub mod startup;
