//! The Redis protocol, through the real binary and real sockets.

mod clients;
mod commands;
mod connections;
mod docs;
mod handshake;
mod limits;
mod password;
mod pipelines;
mod redis_cell;
mod refund;
pub(crate) mod support;
mod tls;
