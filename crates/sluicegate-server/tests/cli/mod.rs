//! The command line, through the real binary.

mod support;

mod arguments;
mod buckets;
mod callers;
mod checks;
mod client;
mod converters;
mod history;
mod migrate;
mod overrides;
mod postgres;
mod readme;
mod rules;
mod terminal;
mod tls;
mod tokens;
mod transfer;
mod violations;
