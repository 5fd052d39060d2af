//! Integration tests of the service: one binary, one module per suite.
//!
//! `cargo test -p sluicegate-server --test it resp::` runs one suite.
//!
//! | module | subject |
//! |---|---|
//! | `admin` | the administration over HTTP, on real databases |
//! | `callers` | callers of the data doors: rights, namespaces, revocation |
//! | `cli` | the command line |
//! | `clients` | clients in many languages, as they are |
//! | `database` | SQLite and PostgreSQL behave the same |
//! | `documents` | links, anchors and commands in Markdown files |
//! | `envoy` | gRPC, called by a client and by the real Envoy |
//! | `http` | checks over HTTP |
//! | `openapi` | the API against its own document, by Schemathesis |
//! | `proxies` | nginx, Caddy, Traefik and HAProxy in front of an upstream |
//! | `resp` | the Redis protocol |
//! | `service` | start, settings, reload, connections, shutdown |
//! | `trouble` | databases that fail under a running service |
//! | `common` | starts the real binary and talks to it |

#![cfg(test)]

mod admin;
mod callers;
mod cli;
mod clients;
mod common;
mod database;
mod documents;
mod envoy;
mod http;
mod openapi;
mod proxies;
mod resp;
mod service;
mod trouble;
