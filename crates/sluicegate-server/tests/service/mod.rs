//! The service through the real binary: startup, settings, reloading, connections, shutdown.

mod admin_listener;
mod anonymous;
mod config;
mod connections;
mod http2;
mod listeners;
mod proxy_protocol;
mod redis;
mod redis_trouble;
mod reload;
mod secrets;
mod shutdown;
mod start;
mod terminal;
mod tls;
mod unix_sockets;
