//! What a connection is made of: a socket, or TLS over one.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A stream of bytes that can be waited for without a buffer to read them into.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Whether there is something to read, if only that the peer has closed. Reads nothing.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Stream for TcpStream {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }
}

impl Stream for TlsStream<TcpStream> {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (socket, session) = self.get_ref();
        // What is decrypted already is not in the socket any more.
        if session.wants_read() { socket.poll_read_ready(cx) } else { Poll::Ready(Ok(())) }
    }
}
