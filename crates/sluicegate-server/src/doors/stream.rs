//! Byte streams of connections: a socket, or TLS over one.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;

use super::socket::Socket;

/// A byte stream with readiness that needs no read buffer.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Polls for readable bytes or the end of the stream. Reads nothing.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Stream for Socket {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }
}

impl Stream for TlsStream<Socket> {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (socket, session) = self.get_ref();
        // Decrypted bytes are no longer in the socket.
        if session.wants_read() { socket.poll_read_ready(cx) } else { Poll::Ready(Ok(())) }
    }
}
