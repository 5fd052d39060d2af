//! The body of an answer: the service's, or a short one of ours.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer: the service's, or the layer's own.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        of: Of<B>,
    }
}

pin_project! {
    #[project = OfProjection]
    #[derive(Debug)]
    enum Of<B> {
        Service { #[pin] body: B },
        Layer { body: Option<Bytes> },
    }
}

impl<B> ResponseBody<B> {
    /// The service's.
    pub(super) fn service(body: B) -> Self {
        Self { of: Of::Service { body } }
    }

    /// The layer's.
    pub(super) fn layer(body: Bytes) -> Self {
        Self { of: Of::Layer { body: Some(body).filter(|body| !body.is_empty()) } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().of.project() {
            OfProjection::Service { body } => body.poll_frame(cx),
            OfProjection::Layer { body } => {
                Poll::Ready(body.take().map(|body| Ok(Frame::data(body))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.of {
            Of::Service { body } => body.is_end_stream(),
            Of::Layer { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.of {
            Of::Service { body } => body.size_hint(),
            Of::Layer { body } => SizeHint::with_exact(
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
