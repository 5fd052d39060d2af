//! The Redis protocol, through the real binary and real sockets.

#![cfg(test)]

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod commands;
mod connections;
mod docs;
mod handshake;
mod limits;
mod password;
mod pipelines;
mod redis_cell;
mod support;
mod tls;
