//! Listening: taking connections, no more than there may be, and serving each.
//!
//! Nothing that a client or the operating system does ends a listener. Out of file descriptors, it
//! waits a little and goes on; a connection that breaks, stalls or panics ends alone.

mod activity;
mod connection;
mod proxy_protocol;
mod slots;
mod tls;
mod watched;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use self::connection::{Connection, Protocols, Timeouts};
pub(crate) use self::proxy_protocol::Proxied;
pub(crate) use self::slots::{Room, Slots};
pub(crate) use self::tls::{Renewal, Tls};
use crate::config::Limits;
use crate::doors::dispatch::Dispatch;
use crate::doors::resp::Resp;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::Metrics;

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
    pub(crate) door: Doorway,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) room: Room,
    pub(crate) phase: PhaseWatch,
    /// With it, every connection begins with a header of the PROXY protocol.
    pub(crate) proxied: Option<Proxied>,
    /// With it, only TLS is spoken.
    pub(crate) tls: Option<Tls>,
}

/// Who speaks with whoever connects.
#[derive(Clone)]
pub(crate) enum Doorway {
    /// HTTP/1 and HTTP/2, gRPC among it.
    Http(Dispatch),
    /// The Redis protocol.
    Resp(Resp),
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
        // Connections have it from their listener. Those of Redis clients may be quiet for hours: that their peer
        // is gone must show some day.
        socket.set_keepalive(matches!(serving.door, Doorway::Resp(_)))?;
        socket.bind(address)?;
        let socket = socket.listen(BACKLOG)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, protocols: Arc::new(Protocols::new()), serving })
    }

    /// Where it listens: the port is the real one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections and serves them until the end. Those that are then left go on.
    pub(crate) async fn run(self) {
        let mut phase = self.serving.phase.clone();
        tokio::select! {
            () = self.take_connections() => {}
            () = phase.draining() => {}
        }
        // Whoever has connected by now is in flight as well.
        let _ = timeout(LAST_CALL, self.take_connections()).await;
    }

    /// Takes connections for ever.
    async fn take_connections(&self) {
        let mut failures: u64 = 0;
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if failures > 0 {
                        info!(address = %self.address, failures, "connections are taken again");
                        failures = 0;
                    }
                    self.serve(stream, peer);
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
    fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(slot) = self.serving.room.take() else {
            self.serving.metrics.connection_refused();
            return;
        };
        // Over a listener for both, IPv4 addresses look like IPv6: they are to be what they are.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        // Answers are small and wanted at once. If it cannot be had, they come all the same.
        let _ = stream.set_nodelay(true);
        let serving = match &self.serving.proxied {
            None => self.serving.converse(stream, peer, &self.protocols),
            Some(proxied) => self.serve_proxied(proxied.clone(), stream, peer),
        };
        let counted = self.serving.metrics.connection();
        tokio::spawn(async move {
            serving.await;
            drop((counted, slot));
        });
    }

    /// Serves a connection once it is known whose it is.
    fn serve_proxied(
        &self,
        proxied: Proxied,
        mut stream: TcpStream,
        peer: SocketAddr,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (serving, protocols) = (self.serving.clone(), Arc::clone(&self.protocols));
        Box::pin(async move {
            let (patience, phase) = (serving.limits.header_timeout, serving.phase.clone());
            // In a box, which is gone when the conversation begins.
            let metrics = &serving.metrics;
            let client = proxied.client(&mut stream, peer, patience, phase, metrics);
            let client = Box::pin(client).await;
            if let Some(client) = client {
                serving.converse(stream, client, &protocols).await;
            }
        })
    }
}

impl Serving {
    /// What a connection does from its first byte to its last.
    fn converse(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        protocols: &Arc<Protocols>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Self { door, metrics, limits, phase, tls, .. } = self;
        let acceptor = tls.as_ref().map(Tls::acceptor);
        match door {
            Doorway::Http(dispatch) => {
                let connection = Connection {
                    stream,
                    peer,
                    dispatch: dispatch.clone(),
                    protocols: Arc::clone(protocols),
                    timeouts: Timeouts { header: limits.header_timeout, idle: limits.idle_timeout },
                    phase: phase.clone(),
                    metrics: metrics.clone(),
                };
                match acceptor {
                    None => Box::pin(connection.serve()),
                    Some(acceptor) => Box::pin(connection.serve_tls(acceptor)),
                }
            }
            Doorway::Resp(resp) => {
                let (resp, phase, patience) = (resp.clone(), phase.clone(), limits.header_timeout);
                match acceptor {
                    None => Box::pin(async move { resp.converse(stream, peer, phase).await }),
                    Some(acceptor) => Box::pin(async move {
                        let accepting = timeout(patience, acceptor.accept(stream));
                        // In a box, which is gone when the conversation begins.
                        let accepted = Box::pin(before_the_end(accepting, phase.clone())).await;
                        if let Some(Ok(Ok(stream))) = accepted {
                            resp.converse(stream, peer, phase).await;
                        }
                    }),
                }
            }
        }
    }
}

/// Waits for something, but at the end only for what is on its way.
async fn before_the_end<T>(doing: impl Future<Output = T>, mut phase: PhaseWatch) -> Option<T> {
    let end = async {
        phase.draining().await;
        sleep(QUIET).await;
    };
    tokio::select! {
        biased;
        done = doing => Some(done),
        () = end => None,
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
    use axum::Router;
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use sluicegate::MemoryStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::config::Config;
    use crate::lifecycle::{Phase, Phases};

    fn listen(router: Router, phases: &Phases, slots: &Slots) -> Listener {
        let metrics = Metrics::new(Arc::new(MemoryStore::new().into()));
        let limits = Config::default().limits;
        let door = Doorway::Http(router.into());
        let serving = Serving {
            door,
            metrics,
            limits,
            room: slots.rooms().next().unwrap(),
            phase: phases.watch(),
            proxied: None,
            tls: None,
        };
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
        let slots = Slots::new(100, 1);
        let listener = listen(router, &phases, &slots);
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
        listening.await.unwrap();
        slots.all_free().await;
        assert_eq!(slots.taken(), 0);
    }
}
