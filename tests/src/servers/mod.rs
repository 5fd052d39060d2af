//! Private servers: each test has its own, on a port of its own, with nothing kept on disk.
//!
//! ```no_run
//! use sluicegate_tests::servers::{Flavour, RedisServer};
//!
//! let server = RedisServer::start(Flavour::Redis70);
//! server.command(&["SET", "k", "v"]);
//! server.stop(); // SIGSTOP: connections stay open and nothing answers
//! server.cont();
//! server.kill(); // SIGKILL: connections break
//! server.restart(); // the same port, empty
//! ```

mod builder;
mod flavour;
mod ports;
mod server;

pub use builder::Builder;
pub use flavour::Flavour;
pub use ports::free_port;
pub use server::RedisServer;
