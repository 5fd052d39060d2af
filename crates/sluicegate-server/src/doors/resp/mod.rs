//! Redis protocol listener: commands in, the limiter's answers out. It translates and never
//! decides.
//!
//! [`parser`] finds commands in the input, a session interprets them, and those for the limiter are
//! answered in order: at once if the store is in this process, otherwise with many in flight
//! together.

mod buffers;
pub(crate) mod commands;
mod connection;
mod error;
pub mod parser;
mod password;
mod pipeline;
mod reply;
mod session;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sluicegate::QuotaError;
use tokio::time::Instant;

use self::connection::RespConnection;
use self::password::Password;
use self::session::{ClientSession, SharedConfig};
use crate::app::App;
use crate::auth::connection::ConnectionInfo;
use crate::auth::password_delays::PasswordDelays;
use crate::config::{Config, Limits};
use crate::doors::progress::Progress;
use crate::doors::stream::Stream;
use crate::lifecycle::PhaseWatch;

/// Server of the Redis protocol. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Resp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    app: Arc<App>,
    shared_config: SharedConfig,
    timeouts: Timeouts,
    connections: AtomicU64,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// From the first byte of an incomplete command to its last; if a password is set, from the
    /// first byte of a connection to its authentication.
    command: Duration,
    /// Until a client reads what it is sent.
    write: Duration,
    /// Between commands; `None` for no limit.
    idle: Option<Duration>,
}

impl Resp {
    /// Server over the application's shared state, with the limits of its listener.
    ///
    /// # Errors
    ///
    /// Never: delays of wrong passwords have a constant and valid quota.
    pub(crate) fn new(app: Arc<App>, config: &Config, limits: &Limits) -> Result<Self, QuotaError> {
        let shared_config = SharedConfig {
            password: config.resp.password.as_ref().map(Password::new),
            delays: PasswordDelays::new()?,
            limits: app.limits.clone(),
            metrics: app.metrics.resp.clone(),
            admission: Arc::clone(&app.admission),
            caller_metrics: app.metrics.callers.clone(),
            history: app.history.clone(),
            opened: Instant::now(),
        };
        let timeouts = Timeouts {
            command: limits.header_timeout,
            write: limits.idle_timeout,
            idle: config.resp.idle_timeout,
        };
        let connections = AtomicU64::new(0);
        Ok(Self { shared: Arc::new(Shared { app, shared_config, timeouts, connections }) })
    }

    /// Serves a connection until the client leaves, breaks the protocol, or the process shuts down.
    pub(crate) async fn serve<S: Stream>(
        &self,
        stream: S,
        connection: ConnectionInfo,
        progress: Arc<Progress>,
        phase: PhaseWatch,
    ) {
        let id = self.shared.connections.fetch_add(1, Relaxed) + 1;
        let session = ClientSession::new(id, Arc::new(connection), &self.shared.shared_config);
        RespConnection::new(&self.shared, stream, session, progress).run(phase).await;
    }
}
