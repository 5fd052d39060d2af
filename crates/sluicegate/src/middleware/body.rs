//! Response body: the service's, or a short one of the layer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// Response body of [`RateLimit`](super::RateLimit): the service's, or the layer's own.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProjection]
    #[derive(Debug)]
    enum Source<B> {
        Service { #[pin] body: B },
        Layer { body: Option<Bytes> },
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn service(body: B) -> Self {
        Self { source: Source::Service { body } }
    }

    pub(super) fn layer(body: Bytes) -> Self {
        Self { source: Source::Layer { body: Some(body).filter(|body| !body.is_empty()) } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().source.project() {
            SourceProjection::Service { body } => body.poll_frame(cx),
            SourceProjection::Layer { body } => {
                Poll::Ready(body.take().map(|body| Ok(Frame::data(body))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Service { body } => body.is_end_stream(),
            Source::Layer { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Service { body } => body.size_hint(),
            Source::Layer { body } => SizeHint::with_exact(
                body.as_ref().map_or(0, Bytes::len).try_into().unwrap_or(u64::MAX),
            ),
        }
    }
}

impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::service(B::default())
    }
}
