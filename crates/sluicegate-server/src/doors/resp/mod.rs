//! The Redis protocol front door: commands in, the limiter's answer out. It translates and never decides.
//!
//! [`parser`] finds commands in what is read, a session understands them, and what they ask of the limiter is
//! answered in their order: at once where the store is in this process, and otherwise many on their way together.

mod buffers;
mod commands;
mod connection;
mod error;
pub mod parser;
mod password;
mod pipeline;
mod reply;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use self::connection::Connection;
use self::password::Password;
use self::session::{House, Session};
use crate::app::App;
use crate::config::Config;
use crate::doors::stream::Stream;
use crate::lifecycle::PhaseWatch;

/// What speaks the Redis protocol. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Resp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    app: Arc<App>,
    house: House,
    timeouts: Timeouts,
    connections: AtomicU64,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// From the first byte of a command that is not all there to its last; of a new connection, to the end of its
    /// first command, and until it has shown the password if there is one.
    command: Duration,
    /// Until a client takes what it is sent.
    write: Duration,
    /// Between commands, if there is a bound.
    idle: Option<Duration>,
}

impl Resp {
    /// Over everything that a front door needs.
    pub(crate) fn new(app: Arc<App>, config: &Config) -> Self {
        let house = House {
            password: config.resp.password.as_ref().map(Password::new),
            limits: app.limits.clone(),
            metrics: app.metrics.resp.clone(),
            opened: Instant::now(),
        };
        let timeouts = Timeouts {
            command: config.limits.header_timeout,
            write: config.limits.idle_timeout,
            idle: config.resp.idle_timeout,
        };
        Self { shared: Arc::new(Shared { app, house, timeouts, connections: AtomicU64::new(0) }) }
    }

    /// Answers a client until it leaves, breaks a rule, or everything ends.
    pub(crate) async fn converse<S: Stream>(&self, stream: S, peer: SocketAddr, phase: PhaseWatch) {
        let id = self.shared.connections.fetch_add(1, Relaxed) + 1;
        let session = Session::new(id, peer, &self.shared.house);
        Connection::new(&self.shared, stream, session).run(phase).await;
    }
}
