//! The service around its front doors, through the real binary: starting, settings, reloading,
//! connections, ending.

mod config;
mod connections;
mod http2;
mod proxy_protocol;
mod redis;
mod redis_trouble;
mod reload;
mod secrets;
mod shutdown;
mod start;
mod terminal;
mod tls;
