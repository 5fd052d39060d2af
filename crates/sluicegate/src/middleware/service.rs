//! The service: asks before it calls the one that it guards.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use tokio::time::sleep;
use tower_service::Service;

use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::judge::{Judgement, Passed, at_once, judge};
use super::layer::Settings;
use crate::limiter::Limiter;
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// A service whose requests are limited: made by a [`RateLimitLayer`](super::RateLimitLayer).
///
/// It is ready when the service that it guards is, and calls the very clone that said so, once.
#[derive(Debug)]
pub struct RateLimit<I, S: Store = MemoryStore> {
    inner: I,
    limiter: Limiter<S>,
    settings: Arc<Settings>,
}

impl<I, S: Store> RateLimit<I, S> {
    pub(super) fn new(inner: I, limiter: Limiter<S>, settings: Arc<Settings>) -> Self {
        Self { inner, limiter, settings }
    }

    /// The service that it guards.
    pub fn get_ref(&self) -> &I {
        &self.inner
    }

    /// The service that it guards.
    pub fn get_mut(&mut self) -> &mut I {
        &mut self.inner
    }

    /// The service that it guards.
    pub fn into_inner(self) -> I {
        self.inner
    }
}

impl<I: Clone, S: Store> Clone for RateLimit<I, S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.limiter.clone(), Arc::clone(&self.settings))
    }
}

impl<I, S, B, RB> Service<Request<B>> for RateLimit<I, S>
where
    I: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Error: Send + 'static,
    S: Store,
    B: Send + 'static,
    RB: Send + 'static,
{
    type Response = Response<ResponseBody<RB>>;
    type Error = I::Error;
    type Future = ResponseFuture<I::Future, S, RB, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        if self.settings.is_skipped(&parts) {
            return ResponseFuture::running(
                self.inner.call(Request::from_parts(parts, body)),
                None,
            );
        }
        if self.limiter.store().is_local() {
            // Nothing is waited for, and so nothing is boxed and the service is called right here.
            match at_once(judge(&self.limiter, &self.settings, &parts)) {
                Some(Judgement::Refused(answer)) => return ResponseFuture::refused(answer),
                Some(Judgement::Passed(passed)) if passed.delay.is_zero() => {
                    let future = self.inner.call(Request::from_parts(parts, body));
                    return ResponseFuture::running(future, Some(passed));
                }
                Some(Judgement::Passed(passed)) => {
                    let inner = self.take_ready();
                    return ResponseFuture::boxed(delayed(inner, passed, parts, body));
                }
                None => {}
            }
        }
        let (inner, limiter) = (self.take_ready(), self.limiter.clone());
        let settings = Arc::clone(&self.settings);
        ResponseFuture::boxed(async move {
            match judge(&limiter, &settings, &parts).await {
                Judgement::Refused(answer) => Ok(answer.map(ResponseBody::layer)),
                Judgement::Passed(passed) => delayed(inner, passed, parts, body).await,
            }
        })
    }
}

impl<I: Clone, S: Store> RateLimit<I, S> {
    /// The service that was found ready, not a clone of it that was not.
    fn take_ready(&mut self) -> I {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

/// Waits out the request's delay, calls the service, and corrects the charge.
async fn delayed<I, S, B, RB>(
    mut inner: I,
    passed: Passed<S>,
    parts: Parts,
    body: B,
) -> Result<Response<ResponseBody<RB>>, I::Error>
where
    I: Service<Request<B>, Response = Response<RB>>,
    S: Store,
{
    if !passed.delay.is_zero() {
        sleep(passed.delay).await;
    }
    let result = inner.call(Request::from_parts(parts, body)).await;
    passed.correct(result).await
}
