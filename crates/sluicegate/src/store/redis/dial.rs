//! Stream to a server: a socket, with TLS or without.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::classify::{tidy, tls_text};
use super::settings::{
    ADDRESSES_MAX, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_RETRIES, NEXT_ADDRESS_AFTER,
    Settings,
};
use super::tls::TlsFiles;
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// Transport of a connection.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A stream that is not read before the first write.
///
/// A server that refuses us (too many clients, protected mode, our certificate) sends the reason at once, and
/// redis-rs discards input that arrives before a command is pending. This way the reason is the reply to the
/// first command.
pub(super) struct Stream {
    socket: Box<dyn Socket>,
    written: bool,
    /// Waker of a reader that polled before the first write.
    reader: Option<Waker>,
}

/// Opens a stream, without a timeout.
///
/// # Cancel safety
///
/// Dropping the future closes all that was opened.
///
/// # Errors
///
/// - `Connection`: connection refused, or the name does not resolve.
/// - `Tls`: the handshake failed, or a file for it cannot be used.
pub(super) async fn dial(settings: &Settings, address: &Address) -> Result<Stream, Trouble> {
    let socket = socket(settings, address).await?;
    Ok(Stream { socket, written: false, reader: None })
}

async fn socket(settings: &Settings, address: &Address) -> Result<Box<dyn Socket>, Trouble> {
    match address {
        Address::Tcp { host, port } if settings.url.tls() => {
            let config = tls_config(settings.tls.clone()).await?;
            let name = ServerName::try_from(host.clone()).map_err(|_| {
                Trouble::new(TroubleKind::Tls, "the host's name is not valid in a certificate")
            })?;
            let stream = tcp(host, *port).await.map_err(|error| trouble(&error))?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
            Ok(Box::new(stream.map_err(|error| trouble(&error))?))
        }
        Address::Tcp { host, port } => {
            Ok(Box::new(tcp(host, *port).await.map_err(|error| trouble(&error))?))
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await;
            Ok(Box::new(stream.map_err(|error| trouble(&error))?))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => {
            Err(Trouble::new(TroubleKind::Unexpected, "this system has no Unix sockets"))
        }
    }
}

fn trouble(error: &io::Error) -> Trouble {
    match tls_text(error) {
        Some(text) => Trouble::new(TroubleKind::Tls, tidy(&text)),
        None => Trouble::new(TroubleKind::Connection, tidy(&error.to_string())),
    }
}

/// Reads the files on a blocking thread: loading all authorities of a system takes longer than a decision.
async fn tls_config(files: TlsFiles) -> Result<ClientConfig, Trouble> {
    match spawn_blocking(move || files.read()).await {
        Ok(Ok(config)) => Ok(config),
        Ok(Err(error)) => Err(Trouble::new(TroubleKind::Tls, tidy(&error.to_string()))),
        Err(error) => Err(Trouble::new(TroubleKind::Unexpected, tidy(&error.to_string()))),
    }
}

/// Tries the addresses of a name in order, each [`NEXT_ADDRESS_AFTER`] the previous one, so that an address
/// that does not reply costs little time.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut delay = Duration::ZERO;
    for address in lookup_host((host, port)).await?.take(ADDRESSES_MAX) {
        attempts.spawn(async move {
            sleep(delay).await;
            TcpStream::connect(address).await
        });
        delay += NEXT_ADDRESS_AFTER;
    }
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    while let Some(attempt) = attempts.join_next().await {
        match attempt.map_err(io::Error::other).and_then(|stream| stream) {
            Ok(stream) => return configure(stream),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

fn configure(stream: TcpStream) -> io::Result<TcpStream> {
    // Commands are small and latency matters: Nagle's algorithm is off.
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(super::settings::UNACKNOWLEDGED_MAX))?;
    Ok(stream)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.written {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;
    use crate::store::redis::url::Topology;

    #[tokio::test]
    async fn an_unsolicited_reply_answers_the_first_command() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let settings = Settings::new(url.parse().unwrap());
        let Topology::One(address) = settings.url.topology() else { panic!("one server") };
        let mut stream = dial(&settings, address).await.unwrap();
        listener.accept().unwrap().0.write_all(b"-ERR no\r\n").unwrap();

        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        let early = poll_fn(|cx| Poll::Ready(Pin::new(&mut stream).poll_read(cx, &mut buffer)));
        assert!(early.await.is_pending());
        poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, b"PING\r\n")).await.unwrap();
        poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut buffer)).await.unwrap();
        assert_eq!(buffer.filled(), b"-ERR no\r\n");
    }
}
