//! Connections that proxies make for others, and whose they are: the PROXY protocol, versions 1 and 2.
//!
//! ```text
//!   PROXY TCP4 203.0.113.9 192.0.2.1 51234 8080\r\n      then what the client says, TLS included
//! ```
//!
//! Where it is expected, every connection begins with it, from a proxy that is trusted; others are closed. Whether
//! it is there is never guessed: a client could say it as well.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use proxy_header::{Error, ParseConfig, Protocol, ProxyHeader};
use sluicegate::client_ip::ClientIp;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tracing::debug;

use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::Metrics;

/// The most bytes of a header. Addresses take 232 at most; the rest is what proxies add.
const HEADER_BYTES_MAX: usize = 2048;

/// Both versions; what proxies add is not looked at.
const PARSE: ParseConfig = ParseConfig { include_tlvs: false, allow_v1: true, allow_v2: true };

/// Which proxies are believed. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Proxied {
    proxies: ClientIp,
}

impl Proxied {
    /// Those in these networks.
    pub(crate) fn by(trusted: &[IpNet]) -> Self {
        Self { proxies: ClientIp::default().trust(trusted.iter().copied()) }
    }

    /// Whose connection this is; its header is then read, and nothing beyond. `None` if there is no header in time,
    /// or nobody to be believed: then it is to be closed.
    pub(super) async fn client(
        self,
        stream: &mut TcpStream,
        peer: SocketAddr,
        patience: Duration,
        mut phase: PhaseWatch,
        metrics: &Metrics,
    ) -> Option<SocketAddr> {
        if !self.proxies.is_trusted(peer.ip()) {
            metrics.proxy_refused("peer");
            debug!(%peer, "connection closed: its peer is no trusted proxy");
            return None;
        }
        // What is on its way at the end still arrives.
        let end = async {
            phase.draining().await;
            sleep(QUIET).await;
        };
        tokio::select! {
            biased;
            source = read_source(stream) => match source {
                Ok(source) => Some(source.unwrap_or(peer)),
                Err(error) => {
                    metrics.proxy_refused("header");
                    debug!(%peer, %error, "connection closed: no header of the PROXY protocol");
                    None
                }
            },
            () = sleep(patience) => {
                metrics.proxy_refused("timeout");
                debug!(%peer, "connection closed: no header of the PROXY protocol in time");
                None
            }
            () = end => None,
        }
    }
}

/// Reads the header, and nothing beyond: who connected to the proxy, or none if it asks for itself.
async fn read_source(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut header = Vec::new();
    let mut ahead = vec![0; HEADER_BYTES_MAX];
    loop {
        let seen = stream.peek(&mut ahead).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = header.len();
        header.extend_from_slice(&ahead[..seen]);
        match ProxyHeader::parse(&header, PARSE) {
            Ok((parsed, length)) => {
                stream.read_exact(&mut ahead[..length - read]).await?;
                return source(&parsed);
            }
            // Then all of it belongs to the header.
            Err(Error::BufferTooShort) if header.len() < HEADER_BYTES_MAX => {
                stream.read_exact(&mut ahead[..seen]).await?;
            }
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

fn source(header: &ProxyHeader<'_>) -> io::Result<Option<SocketAddr>> {
    match header.proxied_address() {
        Some(address) if address.protocol == Protocol::Datagram => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "this is not about a connection"))
        }
        Some(address) => {
            let source = address.source;
            Ok(Some(SocketAddr::new(source.ip().to_canonical(), source.port())))
        }
        None => Ok(None),
    }
}
