//! The twin for clients: somebody else's limit is kept by waiting, not by refusing.

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http::request::Parts;
use sluicegate_core::Quota;
use thiserror::Error;
use tokio::time::sleep;
use tower_layer::Layer;
use tower_service::Service;

use super::attributes::Attributes;
use super::extract;
use crate::limiter::Limiter;
use crate::rules::RuleSet;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::wait::WaitError;

/// Paces the requests of a client by the rules of a [`Limiter`]: one that is not allowed yet waits, but not longer than
/// it may.
///
/// What is known of a request: its `host` (in lower case), its `endpoint` (the path), its `method`, and what
/// [`attribute`](Self::attribute) adds. Clones, and services made by one layer, share everything; over Redis, so do
/// processes.
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate::middleware::OutgoingLayer;
/// use sluicegate::Quota;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// // For every host: ten a second, of which one may have to wait for two seconds.
/// let layer = OutgoingLayer::per_host(Quota::per_second(10)?, Duration::from_secs(2));
/// # let client = service_fn(|_: Request<()>| async { Ok::<_, std::io::Error>(Response::new(())) });
/// let mut client = layer.layer(client);
/// let request = Request::get("https://api.example/v1/users").body(())?;
/// let response = client.ready().await?.call(request).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A request that cannot be sent in time fails at once, with how long it would have taken. The delay of `leaky_bucket`
/// rules is waited for too, as part of the same time.
///
/// # Cancel safety
///
/// Dropping the future of a request that waits for tokens spends nothing; one that stands in the queue of a
/// `leaky_bucket` keeps its place there.
pub struct OutgoingLayer<S: Store = MemoryStore> {
    pace: Arc<Pace<S>>,
}

/// What one layer, its clones and its services share.
struct Pace<S: Store> {
    limiter: Limiter<S>,
    /// What every host has, instead of rules.
    per_host: Option<Quota>,
    attributes: Attributes,
    within: Duration,
}

/// A client whose requests are paced: made by an [`OutgoingLayer`].
///
/// It is ready when the client is. A request that waits holds on to that: put limits of concurrency inside of it, where
/// they count only what was sent.
#[derive(Debug)]
pub struct Outgoing<I, S: Store = MemoryStore> {
    inner: I,
    pace: Arc<Pace<S>>,
}

/// Why a request was not sent, or what became of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutgoingError<E> {
    /// It could not be sent in time: not before this long.
    #[error("not before {} ms, which is too late", retry_after.as_micros().div_ceil(1000))]
    TooLate {
        /// How long it would have taken at least.
        retry_after: Duration,
    },
    /// It costs more than the limit ever allows.
    #[error("it costs more than the limit ever allows")]
    Never,
    /// The limiter's store has no answer.
    #[error("the store has no answer")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It was sent, and failed.
    #[error(transparent)]
    Client(E),
}

/// The future of an [`Outgoing`] request.
pub struct OutgoingFuture<R, E> {
    future: Pin<Box<dyn Future<Output = Result<R, OutgoingError<E>>> + Send>>,
}

impl OutgoingLayer {
    /// A quota for every host, in this process.
    #[must_use]
    pub fn per_host(quota: Quota, within: Duration) -> Self {
        let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
        let attributes = Attributes::outgoing();
        Self { pace: Arc::new(Pace { limiter, per_host: Some(quota), attributes, within }) }
    }
}

impl<S: Store> OutgoingLayer<S> {
    /// A layer that asks this limiter, and lets no request wait for longer than `within`.
    #[must_use]
    pub fn new(limiter: Limiter<S>, within: Duration) -> Self {
        let attributes = Attributes::outgoing();
        Self { pace: Arc::new(Pace { limiter, per_host: None, attributes, within }) }
    }

    /// Anything else that rules know by name: whose key a request is sent with, say.
    #[must_use]
    pub fn attribute<F>(mut self, name: &str, value: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.pace).attributes.set(name, Arc::new(value));
        self
    }

    /// How many tokens a request takes from every bucket; without this, one.
    #[must_use]
    pub fn cost<F>(mut self, cost: F) -> Self
    where
        F: Fn(&Parts) -> u64 + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.pace).attributes.cost = Some(Arc::new(cost));
        self
    }
}

impl<S: Store> Pace<S> {
    /// Waits until the request may be sent.
    async fn wait<E>(&self, parts: &Parts) -> Result<(), OutgoingError<E>> {
        // Nothing of a request of one's own is refused.
        let Ok(gathered) = self.attributes.gather(parts) else { return Ok(()) };
        let request = gathered.request();
        let delay = match &self.per_host {
            None => self.limiter.until_allowed(&request, self.within).await?.delay(),
            Some(quota) => {
                let (host, cost) = (extract::host(parts).unwrap_or_default(), request.get_cost());
                self.limiter.until_granted(&host, quota, cost, self.within).await?.delay()
            }
        };
        if !delay.is_zero() {
            sleep(delay).await;
        }
        Ok(())
    }
}

impl<I, S, B> Service<Request<B>> for Outgoing<I, S>
where
    I: Service<Request<B>> + Clone + Send + 'static,
    I::Future: Send + 'static,
    I::Response: 'static,
    I::Error: 'static,
    S: Store,
    B: Send + 'static,
{
    type Response = I::Response;
    type Error = OutgoingError<I::Error>;
    type Future = OutgoingFuture<I::Response, I::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(OutgoingError::Client)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The client that was found ready, not a clone of it that was not.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let pace = Arc::clone(&self.pace);
        let future = Box::pin(async move {
            let (parts, body) = request.into_parts();
            pace.wait(&parts).await?;
            let sent = ready.call(Request::from_parts(parts, body));
            sent.await.map_err(OutgoingError::Client)
        });
        OutgoingFuture { future }
    }
}

impl<R, E> Future for OutgoingFuture<R, E> {
    type Output = Result<R, OutgoingError<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}

impl<E, T: std::error::Error + Send + Sync + 'static> From<WaitError<T>> for OutgoingError<E> {
    fn from(error: WaitError<T>) -> Self {
        match error {
            WaitError::TooLate { retry_after } => Self::TooLate { retry_after },
            WaitError::Never => Self::Never,
            WaitError::Store(trouble) => Self::Store(Box::new(trouble)),
        }
    }
}

impl<I, S: Store> Layer<I> for OutgoingLayer<S> {
    type Service = Outgoing<I, S>;

    fn layer(&self, inner: I) -> Outgoing<I, S> {
        Outgoing { inner, pace: Arc::clone(&self.pace) }
    }
}

impl<S: Store> Clone for OutgoingLayer<S> {
    fn clone(&self) -> Self {
        Self { pace: Arc::clone(&self.pace) }
    }
}

impl<I: Clone, S: Store> Clone for Outgoing<I, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), pace: Arc::clone(&self.pace) }
    }
}

impl<S: Store> Clone for Pace<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            per_host: self.per_host,
            attributes: self.attributes.clone(),
            within: self.within,
        }
    }
}

impl<S: Store> fmt::Debug for OutgoingLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingLayer").field("pace", &self.pace).finish()
    }
}

impl<S: Store> fmt::Debug for Pace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("limiter", &self.limiter)
            .field("per_host", &self.per_host)
            .field("attributes", &self.attributes)
            .field("within", &self.within)
            .finish()
    }
}

impl<R, E> fmt::Debug for OutgoingFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingFuture").finish_non_exhaustive()
    }
}
