//! Client-side pacing: requests wait for another service's limit instead of being rejected by it.

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

/// Paces the requests of a client by the rules of a [`Limiter`]: a request that is not allowed yet waits, up to a
/// maximum.
///
/// Attributes of a request are its `host` (in lower case), its `endpoint` (the path), its `method`, and those that
/// [`attribute`](Self::attribute) adds. Clones, and services made by one layer, share state; over Redis, so do
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
/// // Ten requests a second to each host; a request waits for at most two seconds.
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
/// A request that cannot be sent in time fails at once, with the time it would have taken. The delay of `leaky_bucket`
/// rules counts towards the same maximum.
///
/// # Cancel safety
///
/// Dropping the future of a request that waits for tokens spends nothing; one that is queued by a
/// `leaky_bucket` keeps its place in the queue.
pub struct OutgoingLayer<S: Store = MemoryStore> {
    pace: Arc<Pace<S>>,
}

/// Settings that a layer, its clones and its services share.
struct Pace<S: Store> {
    limiter: Limiter<S>,
    /// Quota of each host; `None`: the limiter's rules apply.
    per_host: Option<Quota>,
    attributes: Attributes,
    within: Duration,
}

/// A paced client, made by an [`OutgoingLayer`].
///
/// Ready when the inner client is. A waiting request keeps that readiness: put concurrency limits inside this service,
/// where they count only requests that were sent.
#[derive(Debug)]
pub struct Outgoing<I, S: Store = MemoryStore> {
    inner: I,
    pace: Arc<Pace<S>>,
}

/// Error of an [`Outgoing`] request: it was not sent, or sending it failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutgoingError<E> {
    /// The request could not be sent within the maximum wait.
    #[error("longer than the maximum wait: retry in {} ms", retry_after.as_micros().div_ceil(1000))]
    TooLate {
        /// Time after which a retry may succeed, at the earliest.
        retry_after: Duration,
    },
    /// The request costs more than the limit ever allows.
    #[error("the request costs more than the limit ever allows")]
    Never,
    /// The limiter's store failed.
    #[error("the store failed")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request was sent, and the client failed.
    #[error(transparent)]
    Client(E),
}

/// Response future of [`Outgoing`].
pub struct OutgoingFuture<R, E> {
    future: Pin<Box<dyn Future<Output = Result<R, OutgoingError<E>>> + Send>>,
}

impl OutgoingLayer {
    /// A layer with one quota per host, counted in this process. A request waits for at most `within`.
    #[must_use]
    pub fn per_host(quota: Quota, within: Duration) -> Self {
        let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
        let attributes = Attributes::outgoing();
        Self { pace: Arc::new(Pace { limiter, per_host: Some(quota), attributes, within }) }
    }
}

impl<S: Store> OutgoingLayer<S> {
    /// A layer over this limiter. A request waits for at most `within`.
    #[must_use]
    pub fn new(limiter: Limiter<S>, within: Duration) -> Self {
        let attributes = Attributes::outgoing();
        Self { pace: Arc::new(Pace { limiter, per_host: None, attributes, within }) }
    }

    /// Sets the extractor of any attribute that rules name, such as the API key that a request is sent with.
    #[must_use]
    pub fn attribute<F>(mut self, name: &str, value: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.pace).attributes.set(name, Arc::new(value));
        self
    }

    /// Sets the cost of a request, in tokens of every bucket; one by default.
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
        // The policies of outgoing attributes refuse nothing: this does not fail.
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
        // Takes the clone whose readiness was polled, and leaves a new one, which has to be polled again.
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
