//! The service: charges a request, then calls the inner service.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use tokio::time::sleep;
use tower_service::Service;

use super::admission::{Admission, Grant, admit, admit_in_process};
use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::layer::Settings;
use crate::limiter::Limiter;
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// A rate-limited service, made by a [`RateLimitLayer`](super::RateLimitLayer).
///
/// Ready when the inner service is. Each request calls the clone whose readiness was polled, once.
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

    /// The inner service.
    pub fn get_ref(&self) -> &I {
        &self.inner
    }

    /// The inner service, mutably.
    pub fn get_mut(&mut self) -> &mut I {
        &mut self.inner
    }

    /// Returns the inner service.
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
        if let Some(limiter) = self.limiter.in_process() {
            // Fast path: nothing is waited for, so nothing is boxed, and the service is called here.
            return match admit_in_process(&limiter, &self.settings, &parts) {
                Admission::Rejected(response) => ResponseFuture::rejected(response),
                Admission::Granted(grant) if grant.delay.is_zero() => {
                    let future = self.inner.call(Request::from_parts(parts, body));
                    ResponseFuture::running(future, Some(grant))
                }
                Admission::Granted(grant) => {
                    let inner = self.take_ready();
                    ResponseFuture::boxed(delayed(inner, grant, parts, body))
                }
            };
        }
        let (inner, limiter) = (self.take_ready(), self.limiter.clone());
        let settings = Arc::clone(&self.settings);
        ResponseFuture::boxed(async move {
            match admit(&limiter, &settings, &parts).await {
                Admission::Rejected(response) => Ok(response.map(ResponseBody::layer)),
                Admission::Granted(grant) => delayed(inner, grant, parts, body).await,
            }
        })
    }
}

impl<I: Clone, S: Store> RateLimit<I, S> {
    /// Takes the clone whose readiness was polled, and leaves a new one, which has to be polled again.
    fn take_ready(&mut self) -> I {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

/// Waits for the request's delay, calls the service, and corrects the charge.
async fn delayed<I, S, B, RB>(
    mut inner: I,
    grant: Grant<S>,
    parts: Parts,
    body: B,
) -> Result<Response<ResponseBody<RB>>, I::Error>
where
    I: Service<Request<B>, Response = Response<RB>>,
    S: Store,
{
    if !grant.delay.is_zero() {
        sleep(grant.delay).await;
    }
    let result = inner.call(Request::from_parts(parts, body)).await;
    grant.correct(result).await
}
