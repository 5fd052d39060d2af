//! Listeners: accept connections up to a limit and serve each in its own task.
//!
//! As the limit comes near, idle connections of the largest network make room for new ones (`slots`). Nothing that a
//! client or the operating system does ends a listener. Without free file descriptors it waits and retries; a connection
//! that breaks, stalls or panics ends alone.

mod activity;
mod bound;
mod connection;
mod frames;
pub(crate) mod proxy_protocol;
mod slots;
mod tls;
mod tracked_stream;
mod unsent;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use self::bound::Bound;
use self::connection::{HttpConnection, Protocols, Timeouts};
pub(crate) use self::proxy_protocol::ProxyProtocol;
use self::slots::Slot;
pub(crate) use self::slots::{ListenerLimit, ListenerSlots, Slots};
pub(crate) use self::tls::{Renewal, Tls};
use crate::auth::connection::{ConnectionInfo, ListenerTraits};
use crate::config::{Address, Limits};
use crate::doors::dispatch::Dispatch;
use crate::doors::progress::Progress;
use crate::doors::resp::Resp;
use crate::doors::socket::Socket;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::log_limit::LogLimit;
use crate::observe::metrics::Metrics;

/// Delay before accepting again after an error.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// Time during shutdown for accepting connections that are already queued.
const LAST_ACCEPT: Duration = Duration::from_millis(10);

/// Limits on lines about failures to accept, and about their end: clients can cause both in turn.
static ACCEPT_LINES: LogLimit = LogLimit::new();
static RECOVERY_LINES: LogLimit = LogLimit::new();

/// A listening socket and the handler of its connections.
pub(crate) struct Listener {
    socket: Bound,
    address: Address,
    protocols: Arc<Protocols>,
    config: ListenerConfig,
}

/// Everything needed to serve a connection.
#[derive(Clone)]
pub(crate) struct ListenerConfig {
    pub(crate) handler: ProtocolHandler,
    pub(crate) traits: ListenerTraits,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) slots: ListenerSlots,
    pub(crate) phase: PhaseWatch,
    /// With it, every connection begins with a PROXY protocol header.
    pub(crate) proxy_protocol: Option<ProxyProtocol>,
    /// With it, the listener accepts TLS only.
    pub(crate) tls: Option<Tls>,
}

/// Protocol of a listener.
#[derive(Clone)]
pub(crate) enum ProtocolHandler {
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
    /// The address is in use, or not permitted.
    pub(crate) fn bind(address: &Address, config: ListenerConfig) -> io::Result<Self> {
        // Redis clients may be idle for hours, and a peer that is gone must be detected eventually.
        let keeps_alive = matches!(config.handler, ProtocolHandler::Resp(_));
        let socket = Bound::new(address, keeps_alive)?;
        let address = socket.address(address)?;
        Ok(Self { socket, address, protocols: Arc::new(Protocols::new()), config })
    }

    /// Bound address, with the actual port.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns whether it accepts TLS only.
    pub(crate) fn is_tls(&self) -> bool {
        self.config.tls.is_some()
    }

    /// Accepts and serves connections until the shutdown. Open connections continue.
    pub(crate) async fn run(self) {
        let mut phase = self.config.phase.clone();
        tokio::select! {
            () = self.accept_connections() => {}
            () = phase.draining() => {}
        }
        self.socket.retire();
        // Connections already queued count as in flight.
        let _ = timeout(LAST_ACCEPT, self.accept_connections()).await;
    }

    /// Accepts connections. Never returns.
    async fn accept_connections(&self) {
        let mut failures: u64 = 0;
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if failures > 0 {
                        self.log_recovery(failures);
                        failures = 0;
                    }
                    self.serve(stream, peer).await;
                }
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    if failures == 0 {
                        self.log_failure(&error);
                    }
                    failures += 1;
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn log_failure(&self, error: &io::Error) {
        if let Some(suppressed) = ACCEPT_LINES.admit() {
            warn!(address = %self.address, %error, suppressed, "cannot accept connections");
        }
    }

    fn log_recovery(&self, failures: u64) {
        if let Some(suppressed) = RECOVERY_LINES.admit() {
            info!(address = %self.address, failures, suppressed, "connections are accepted again");
        }
    }

    /// Serves a connection in its own task, or closes it if the limit is reached.
    async fn serve(&self, stream: Socket, peer: SocketAddr) {
        let Some(slot) = self.config.slots.take(peer.ip()).await else {
            self.config.metrics.connection_refused();
            return;
        };
        stream.set_nodelay();
        let serving = match &self.config.proxy_protocol {
            None => self.config.serve_connection(stream, peer, &slot.progress, &self.protocols),
            Some(protocol) => self.serve_proxied(protocol.clone(), stream, peer, &slot),
        };
        let (id, counted) = (slot.id, self.config.metrics.connection());
        let task = tokio::spawn(async move {
            serving.await;
            drop((counted, slot));
        });
        self.config.slots.set_task(id, &task.abort_handle());
    }

    /// Serves a connection after its PROXY protocol header is read.
    fn serve_proxied(
        &self,
        protocol: ProxyProtocol,
        mut stream: Socket,
        peer: SocketAddr,
        slot: &Slot,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (config, protocols) = (self.config.clone(), Arc::clone(&self.protocols));
        let (id, progress) = (slot.id, Arc::clone(&slot.progress));
        Box::pin(async move {
            let (header_timeout, phase) = (config.limits.header_timeout, config.phase.clone());
            // Boxed, so that its memory is freed before the connection is served.
            let metrics = &config.metrics;
            let client = protocol.client(&mut stream, peer, header_timeout, phase, metrics);
            let client = Box::pin(client).await;
            if let Some(client) = client {
                config.slots.set_client(id, client.ip());
                config.serve_connection(stream, client, &progress, &protocols).await;
            }
        })
    }
}

impl ListenerConfig {
    /// Future that serves a connection.
    fn serve_connection(
        &self,
        stream: Socket,
        peer: SocketAddr,
        progress: &Arc<Progress>,
        protocols: &Arc<Protocols>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Self { handler, metrics, limits, phase, tls, traits, .. } = self;
        let acceptor = tls.as_ref().map(Tls::acceptor);
        let progress = Arc::clone(progress);
        match handler {
            ProtocolHandler::Http(dispatch) => {
                let connection = HttpConnection {
                    stream,
                    peer,
                    listener: *traits,
                    progress,
                    dispatch: dispatch.clone(),
                    protocols: Arc::clone(protocols),
                    timeouts: Timeouts { header: limits.header_timeout, idle: limits.idle_timeout },
                    phase: phase.clone(),
                    metrics: metrics.clone(),
                    unsent_bytes_max: limits.unsent_bytes_max,
                };
                match acceptor {
                    None => Box::pin(connection.serve()),
                    Some(acceptor) => Box::pin(connection.serve_tls(acceptor)),
                }
            }
            ProtocolHandler::Resp(resp) => {
                let (resp, phase, header_timeout) =
                    (resp.clone(), phase.clone(), limits.header_timeout);
                let connection = ConnectionInfo::new(peer, *traits);
                match acceptor {
                    None => {
                        Box::pin(
                            async move { resp.serve(stream, connection, progress, phase).await },
                        )
                    }
                    Some(acceptor) => Box::pin(async move {
                        let accepting = timeout(header_timeout, acceptor.accept(stream));
                        // Boxed, so that its memory is freed before the connection is served.
                        let accepted = Box::pin(unless_draining(accepting, phase.clone())).await;
                        if let Some(Ok(Ok(stream))) = accepted {
                            let connection = match tls::client_certificate(stream.get_ref().1) {
                                Some(certificate) => connection.with_certificate(certificate),
                                None => connection,
                            };
                            resp.serve(stream, connection, progress, phase).await;
                        }
                    }),
                }
            }
        }
    }
}

/// Runs a future until it ends. During shutdown it gets only [`QUIET`] more.
async fn unless_draining<T>(
    operation: impl Future<Output = T>,
    mut phase: PhaseWatch,
) -> Option<T> {
    let end = async {
        phase.draining().await;
        sleep(QUIET).await;
    };
    tokio::select! {
        biased;
        done = operation => Some(done),
        () = end => None,
    }
}

/// Returns whether an error concerns the one connection only, and not the listener.
fn is_connection_error(error: &io::Error) -> bool {
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
    use axum::Extension;
    use axum::Router;
    use axum::routing::get;
    use sluicegate::MemoryStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::config::{Config, Door};
    use crate::lifecycle::{Phase, Phases};

    fn metrics() -> Metrics {
        Metrics::new(Arc::new(MemoryStore::new().into()))
    }

    fn listen(router: Router, phases: &Phases, slots: &Slots) -> Listener {
        let limits = Config::default().limits;
        let handler = ProtocolHandler::Http(router.into());
        let config = ListenerConfig {
            handler,
            traits: ListenerTraits {
                door: Door::Http,
                is_local: true,
                requires_certificates: false,
            },
            metrics: metrics(),
            limits,
            slots: slots.per_listener().next().unwrap(),
            phase: phases.watch(),
            proxy_protocol: None,
            tls: None,
        };
        let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        Listener::bind(&address, config).unwrap()
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
                get(|Extension(connection): Extension<Arc<ConnectionInfo>>| async move {
                    connection.peer.to_string()
                }),
            );
        let phases = Phases::new();
        let slots = Slots::new(
            100,
            &[ListenerLimit { listener: "http", connections_max: None }],
            &[],
            &metrics(),
        );
        let listener = listen(router, &phases, &slots);
        let address = listener.address().to_string();
        let listening = tokio::spawn(listener.run());

        let mut stream = TcpStream::connect(address).await.unwrap();
        let answer = ask(&mut stream, "/panic").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
        // The same connection goes on, and handlers know its peer.
        let answer = ask(&mut stream, "/peer").await;
        assert!(answer.ends_with(&stream.local_addr().unwrap().to_string()), "{answer}");

        phases.enter(Phase::Draining);
        listening.await.unwrap();
        slots.all_free().await;
        assert_eq!(slots.taken(), 0);
    }
}
