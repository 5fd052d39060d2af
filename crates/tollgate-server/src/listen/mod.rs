//! Listening: taking connections, no more than there may be, and serving each.
//!
//! Nothing that a client or the operating system does ends a listener. Out of file descriptors, it
//! waits a little and goes on; a connection that breaks, stalls or panics ends alone.

mod activity;
mod connection;
mod stream;
mod tls;
mod watched;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use self::connection::{Connection, Protocols, Timeouts};
pub(crate) use self::tls::{Renewal, Tls};
use crate::config::Limits;
use crate::metrics::Metrics;
use crate::shutdown::PhaseWatch;

/// Connections that the kernel holds until they are taken.
const BACKLOG: u32 = 1024;
/// How long to wait when no connection can be taken. Short enough that one is soon after it can.
const TAKE_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long connections that came before the end may take to be seen.
const LAST_CALL: Duration = Duration::from_millis(10);

/// A socket that listens, and what to do with whoever connects.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    protocols: Arc<Protocols>,
    serving: Serving,
}

/// What serving a connection takes.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) phase: PhaseWatch,
    /// With it, only TLS is spoken.
    pub(crate) tls: Option<Tls>,
}

/// The connections of a listener that takes no more.
pub(crate) struct Remaining {
    slots: Arc<Semaphore>,
    connections_max: usize,
}

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// If it is taken, or may not be.
    pub(crate) fn bind(address: SocketAddr, serving: Serving) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of a process that has ended do not hold its address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(BACKLOG)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, protocols: Arc::new(Protocols::new()), serving })
    }

    /// Where it listens: the port is the real one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections and serves them until the end, and returns those that are then left.
    pub(crate) async fn run(self) -> Remaining {
        let connections_max = self.serving.limits.connections_max;
        let slots = Arc::new(Semaphore::new(connections_max));
        let mut phase = self.serving.phase.clone();
        tokio::select! {
            () = self.take_connections(&slots) => {}
            () = phase.draining() => {}
        }
        // Whoever has connected by now is in flight as well.
        let _ = timeout(LAST_CALL, self.take_connections(&slots)).await;
        Remaining { slots, connections_max }
    }

    /// Takes connections for ever.
    async fn take_connections(&self, slots: &Arc<Semaphore>) {
        let mut failures: u64 = 0;
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if failures > 0 {
                        info!(address = %self.address, failures, "connections are taken again");
                        failures = 0;
                    }
                    self.serve(stream, peer, slots);
                }
                Err(error) if is_the_peers(&error) => {}
                Err(error) => {
                    if failures == 0 {
                        warn!(address = %self.address, %error, "no connection can be taken");
                    }
                    failures += 1;
                    sleep(TAKE_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Serves a connection by its own task, or closes it if there are too many.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, slots: &Arc<Semaphore>) {
        let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
            self.serving.metrics.connection_refused();
            return;
        };
        // Over a listener for both, IPv4 addresses look like IPv6: they are to be what they are.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        // Answers are small and wanted at once. If it cannot be had, they come all the same.
        let _ = stream.set_nodelay(true);
        let counted = self.serving.metrics.connection();
        let limits = &self.serving.limits;
        let connection = Connection {
            stream,
            peer,
            router: self.serving.router.clone(),
            protocols: Arc::clone(&self.protocols),
            timeouts: Timeouts { header: limits.header_timeout, idle: limits.idle_timeout },
            phase: self.serving.phase.clone(),
            metrics: self.serving.metrics.clone(),
        };
        match &self.serving.tls {
            None => tokio::spawn(async move {
                connection.serve().await;
                drop((counted, slot));
            }),
            Some(tls) => {
                let acceptor = tls.acceptor();
                tokio::spawn(async move {
                    connection.serve_tls(acceptor).await;
                    drop((counted, slot));
                })
            }
        };
    }
}

impl Remaining {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.connections_max - self.slots.available_permits()
    }

    /// Waits until there is none.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(self.connections_max).unwrap_or(u32::MAX);
        // Nobody closes the semaphore.
        let _ = self.slots.acquire_many(all).await;
    }
}

/// Whether an error is about the connection that was to be taken, and not about taking any.
fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tollgate::MemoryStore;

    use super::*;
    use crate::config::Config;
    use crate::shutdown::{Phase, Phases};

    fn listen(router: Router, phases: &Phases) -> Listener {
        let metrics = Metrics::new(Arc::new(MemoryStore::new().into()));
        let limits = Config::default().limits;
        let serving = Serving { router, metrics, limits, phase: phases.watch(), tls: None };
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), serving).unwrap()
    }

    async fn ask(stream: &mut TcpStream, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        answer.truncate(read);
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_panic_is_answered_and_ends_nothing() {
        let router = Router::new()
            .route(
                "/panic",
                get(|| async {
                    if true {
                        panic!("on purpose")
                    }
                }),
            )
            .route(
                "/peer",
                get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }),
            );
        let phases = Phases::new();
        let listener = listen(router, &phases);
        let address = listener.address();
        let listening = tokio::spawn(listener.run());

        let mut stream = TcpStream::connect(address).await.unwrap();
        let answer = ask(&mut stream, "/panic").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
        // On the same connection, which also tells handlers whose it is.
        let answer = ask(&mut stream, "/peer").await;
        assert!(answer.ends_with(&stream.local_addr().unwrap().to_string()), "{answer}");

        phases.enter(Phase::Draining);
        let remaining = listening.await.unwrap();
        remaining.ended().await;
        assert_eq!(remaining.count(), 0);
    }
}
