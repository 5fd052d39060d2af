//! PROXY protocol, versions 1 and 2: the client's address on connections from proxies.
//!
//! ```text
//!   PROXY TCP4 203.0.113.9 192.0.2.1 51234 8080\r\n      then the client's bytes, TLS included
//! ```
//!
//! If enabled, every connection must begin with this header and come from a trusted proxy; others
//! are closed. The header is never optional, because a client could send it as well.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use proxy_header::{Error, ParseConfig, Protocol, ProxyHeader};
use sluicegate::client_ip::{ClientIp, canonical};
use tokio::io::AsyncReadExt;
use tokio::time::sleep;
use tracing::debug;

use crate::doors::socket::Socket;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::Metrics;

/// Maximum bytes of a header. Addresses take at most 232; the rest is for extensions.
const HEADER_BYTES_MAX: usize = 2048;

/// Both versions; extensions (TLVs) are ignored.
const PARSE: ParseConfig = ParseConfig { include_tlvs: false, allow_v1: true, allow_v2: true };

/// Proxies whose headers are trusted. Clones share the list.
#[derive(Clone, Debug)]
pub(crate) struct ProxyProtocol {
    proxies: ClientIp,
}

impl ProxyProtocol {
    /// Trusts proxies in these networks.
    pub(crate) fn trusting(trusted: &[IpNet]) -> Self {
        Self { proxies: ClientIp::default().trust(trusted.iter().copied()) }
    }

    /// Reads the header and nothing beyond, and returns the client's address. `None` if the
    /// connection must be closed: no valid header within the timeout, or the peer is not trusted.
    pub(super) async fn client(
        self,
        stream: &mut Socket,
        peer: SocketAddr,
        timeout: Duration,
        mut phase: PhaseWatch,
        metrics: &Metrics,
    ) -> Option<SocketAddr> {
        if !self.proxies.is_trusted(peer.ip()) {
            metrics.proxy_refused("peer");
            debug!(%peer, "connection closed: its peer is not a trusted proxy");
            return None;
        }
        // During shutdown, bytes already sent still arrive.
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
                    debug!(%peer, %error, "connection closed: invalid PROXY protocol header");
                    None
                }
            },
            () = sleep(timeout) => {
                metrics.proxy_refused("timeout");
                debug!(%peer, "connection closed: no PROXY protocol header within the timeout");
                None
            }
            () = end => None,
        }
    }
}

/// Reads the header and nothing beyond: address of the client, or `None` if the proxy connects on
/// its own behalf.
async fn read_source(stream: &mut Socket) -> io::Result<Option<SocketAddr>> {
    let mut header = Vec::new();
    let mut ahead = vec![0; HEADER_BYTES_MAX];
    loop {
        let seen = stream.peek(&mut ahead).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read = header.len();
        header.extend_from_slice(&ahead[..seen]);
        match parse(&header)? {
            Some((source, length)) => {
                stream.read_exact(&mut ahead[..length - read]).await?;
                return Ok(source);
            }
            // All bytes seen belong to the header.
            None => {
                stream.read_exact(&mut ahead[..seen]).await?;
            }
        }
    }
}

/// Parses a header: the client's address, unless the proxy connects on its own behalf, and the length of the header.
/// `None` if it is not complete.
pub(crate) fn parse(header: &[u8]) -> io::Result<Option<(Option<SocketAddr>, usize)>> {
    match ProxyHeader::parse(header, PARSE) {
        Ok((parsed, length)) => Ok(Some((source(&parsed)?, length))),
        Err(Error::BufferTooShort) if header.len() < HEADER_BYTES_MAX => Ok(None),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

fn source(header: &ProxyHeader<'_>) -> io::Result<Option<SocketAddr>> {
    match header.proxied_address() {
        Some(address) if address.protocol == Protocol::Datagram => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a datagram, not a connection"))
        }
        Some(address) => {
            let source = address.source;
            Ok(Some(SocketAddr::new(canonical(source.ip()), source.port())))
        }
        None => Ok(None),
    }
}
