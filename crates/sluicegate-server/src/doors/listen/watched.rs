//! A stream that notes what it does.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use bytes::Buf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::activity::Activity;
use crate::doors::stream::Stream;

/// How an HTTP/2 connection begins, and no other.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that notes what it does, and can be given back what was read of it.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    /// What is to be read before the stream.
    unread: Bytes,
    /// Some of what was written has not gone yet.
    is_flushing: bool,
}

impl<S: Stream> Watched<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, unread: Bytes::new(), is_flushing: false }
    }

    /// These will be read again: they are the beginning of a header.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.activity.received();
        }
        // A copy, mostly of nothing: the bytes themselves may hold on to a whole buffer.
        self.unread = Bytes::copy_from_slice(bytes);
    }

    /// Waits until there is something to read, if only that the peer has closed.
    ///
    /// # Cancel safety
    ///
    /// Nothing is read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        if !self.unread.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.stream.poll_readable(cx)).await
    }

    /// Whether this is HTTP/2. Reads as much as it takes to tell, and puts it back.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool> {
        let mut first = [0; HTTP2_PREFACE.len()];
        let mut length = 0;
        loop {
            let read = self.read(&mut first[length..]).await?;
            length += read;
            let is_like_it = HTTP2_PREFACE.starts_with(&first[..length]);
            if read == 0 || !is_like_it || length == first.len() {
                self.put_back(&first[..length]);
                return Ok(is_like_it && length == first.len());
            }
        }
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        self.activity.stuck(written.is_pending());
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.sent();
        }
    }
}

impl<S: Stream> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.has_remaining() {
            let length = self.unread.remaining().min(buf.remaining());
            buf.put_slice(&self.unread.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.received();
        }
        read
    }
}

impl<S: Stream> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // A socket has nothing to flush; TLS has what the socket did not take.
        if flushed.is_pending() != self.is_flushing {
            self.is_flushing = flushed.is_pending();
            self.activity.stuck(self.is_flushing);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
