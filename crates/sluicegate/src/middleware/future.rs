//! Response future of `RateLimit`.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;

use super::admission::Grant;
use super::body::ResponseBody;
use crate::store::Store;

type Boxed<RB, E> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody<RB>>, E>> + Send>>;

pin_project! {
    /// Response future of [`RateLimit`](super::RateLimit). Over a store in this process nothing is boxed, unless there
    /// is a delay or a correction.
    pub struct ResponseFuture<F, S: Store, RB, E> {
        #[pin]
        state: State<F, S, RB, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, S: Store, RB, E> {
        /// The layer answers; the service is not called. `None` once it has answered.
        Rejected { response: Option<Response<Bytes>> },
        /// The service was called. No grant: the request is not limited.
        Running { #[pin] future: F, grant: Option<Grant<S>> },
        /// Waits for the store or a delay besides the service.
        Boxed { future: Boxed<RB, E> },
    }
}

impl<F, S: Store, RB, E> ResponseFuture<F, S, RB, E> {
    pub(super) fn rejected(response: Response<Bytes>) -> Self {
        Self { state: State::Rejected { response: Some(response) } }
    }

    /// Response of the service; `grant` is `None` for a request that is not limited.
    pub(super) fn running(future: F, grant: Option<Grant<S>>) -> Self {
        Self { state: State::Running { future, grant } }
    }

    pub(super) fn boxed(
        future: impl Future<Output = Result<Response<ResponseBody<RB>>, E>> + Send + 'static,
    ) -> Self {
        Self { state: State::Boxed { future: Box::pin(future) } }
    }
}

impl<F, S, RB, E> Future for ResponseFuture<F, S, RB, E>
where
    F: Future<Output = Result<Response<RB>, E>>,
    S: Store,
    RB: Send + 'static,
    E: Send + 'static,
{
    type Output = Result<Response<ResponseBody<RB>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let correcting = match state.as_mut().project() {
                // ## Rejected => done
                StateProjection::Rejected { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response.map(ResponseBody::layer))),
                    // Polled after completion, against the contract of `Future`: pending instead of a panic.
                    None => return Poll::Pending,
                },
                // ## Running => (done | Boxed)
                StateProjection::Running { future, grant } => {
                    let result = ready!(future.poll(cx));
                    match grant.take() {
                        None => return Poll::Ready(result.map(|r| r.map(ResponseBody::service))),
                        Some(grant) if grant.is_final() => {
                            return Poll::Ready(result.map(|response| grant.finish(response)));
                        }
                        Some(grant) => Box::pin(grant.correct(result)),
                    }
                }
                // ## Boxed => done
                StateProjection::Boxed { future } => return future.as_mut().poll(cx),
            };
            state.set(State::Boxed { future: correcting });
        }
    }
}

impl<F, S: Store, RB, E> fmt::Debug for ResponseFuture<F, S, RB, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
