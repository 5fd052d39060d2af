//! A stream that records its activity.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use bytes::Buf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::frames::Frames;
use crate::doors::stream::Stream;

/// First bytes of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that records its [`Activity`], and to which bytes can be returned.
#[derive(Debug)]
pub(super) struct TrackedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Returned bytes, read before the stream.
    unread: Bytes,
    /// A flush is pending.
    is_flushing: bool,
    /// Frames of an HTTP/2 connection, received and sent.
    frames: Option<Box<(Frames, Frames)>>,
}

impl<S: Stream> TrackedStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, unread: Bytes::new(), is_flushing: false, frames: None }
    }

    /// Counts only frames of HTTP/2 that carry something as progress from now on. No byte must have been used.
    pub(super) fn follow_frames(&mut self) {
        self.frames = Some(Box::new((Frames::received(), Frames::sent())));
    }

    /// Returns bytes to be read again: they are the beginning of a header.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.activity.received();
        }
        // A copy, mostly empty: the slice may keep a whole buffer alive.
        self.unread = Bytes::copy_from_slice(bytes);
    }

    /// Waits for readable bytes or the end of the stream.
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

    /// Detects HTTP/2. Reads as many bytes as needed, and returns them to the stream.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool> {
        let mut first = [0; HTTP2_PREFACE.len()];
        let mut length = 0;
        loop {
            let read = self.read(&mut first[length..]).await?;
            length += read;
            let is_prefix = HTTP2_PREFACE.starts_with(&first[..length]);
            if read == 0 || !is_prefix || length == first.len() {
                self.put_back(&first[..length]);
                return Ok(is_prefix && length == first.len());
            }
        }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        let has_moved = match &mut self.frames {
            Some(frames) => frames.0.follow(bytes),
            None => !bytes.is_empty(),
        };
        if has_moved {
            self.activity.received();
        }
    }

    /// Records a write of as many of these bytes.
    fn note_write(&mut self, written: &Poll<io::Result<usize>>, bytes: &[io::IoSlice<'_>]) {
        self.activity.stuck(written.is_pending());
        let Poll::Ready(Ok(mut length @ 1..)) = *written else { return };
        let has_moved = match &mut self.frames {
            None => true,
            Some(frames) => bytes.iter().fold(false, |has_moved, bytes| {
                let part = &bytes[..length.min(bytes.len())];
                length -= part.len();
                frames.1.follow(part) | has_moved
            }),
        };
        if has_moved {
            self.activity.sent();
        }
    }
}

impl<S: Stream> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.has_remaining() {
            let length = self.unread.remaining().min(buf.remaining());
            let bytes = self.unread.split_to(length);
            buf.put_slice(&bytes);
            // They count as received already.
            if let Some(frames) = &mut self.frames {
                frames.0.follow(&bytes);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.note_read(&buf.filled()[before..]);
        read
    }
}

impl<S: Stream> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_write(&written, &[io::IoSlice::new(bytes)]);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.note_write(&written, bytes);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // A socket has nothing to flush; TLS has bytes that the socket did not accept.
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
