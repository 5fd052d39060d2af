//! The answer, as long as it is not there.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;

use super::body::ResponseBody;
use super::judge::Passed;
use crate::store::Store;

type Boxed<RB, E> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody<RB>>, E>> + Send>>;

pin_project! {
    /// The future of a [`RateLimit`](super::RateLimit). Over a store in this process nothing is boxed, unless there is a
    /// delay or a correction.
    pub struct ResponseFuture<F, S: Store, RB, E> {
        #[pin]
        state: State<F, S, RB, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, S: Store, RB, E> {
        /// The request does not reach the service.
        Refused { answer: Option<Response<Bytes>> },
        /// The service is at it.
        Running { #[pin] future: F, passed: Option<Passed<S>> },
        /// There is something to wait for besides the service.
        Boxed { future: Boxed<RB, E> },
    }
}

impl<F, S: Store, RB, E> ResponseFuture<F, S, RB, E> {
    pub(super) fn refused(answer: Response<Bytes>) -> Self {
        Self { state: State::Refused { answer: Some(answer) } }
    }

    /// A request that passed; `None` if it is not limited.
    pub(super) fn running(future: F, passed: Option<Passed<S>>) -> Self {
        Self { state: State::Running { future, passed } }
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
                // ## Refused => done
                StateProjection::Refused { answer } => match answer.take() {
                    Some(answer) => return Poll::Ready(Ok(answer.map(ResponseBody::layer))),
                    // It was polled after it was done.
                    None => return Poll::Pending,
                },
                // ## Running => (done | Boxed)
                StateProjection::Running { future, passed } => {
                    let result = ready!(future.poll(cx));
                    match passed.take() {
                        None => return Poll::Ready(result.map(|a| a.map(ResponseBody::service))),
                        Some(passed) if passed.is_final() => {
                            return Poll::Ready(result.map(|answer| passed.tell(answer)));
                        }
                        Some(passed) => Box::pin(passed.correct(result)),
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
