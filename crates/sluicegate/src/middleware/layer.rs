//! `RateLimitLayer` and its settings.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use sluicegate_core::Micros;
use tower_layer::Layer;

use super::attributes::Attributes;
use super::denied::Denied;
use super::policy::{OnFailure, OnMissing, OnOversized, OnStoreError};
use super::service::RateLimit;
use crate::client_ip::ClientIp;
use crate::clock::{Clock, SystemClock};
use crate::headers::Headers;
use crate::limiter::Limiter;
use crate::store::Store;
use crate::store::memory::MemoryStore;

type Hook = Arc<dyn Fn(&Denied<'_>, Response<Bytes>) -> Response<Bytes> + Send + Sync>;
type Skip = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;
type Correct = Arc<dyn Fn(&http::response::Parts) -> Option<u64> + Send + Sync>;

/// Limits the requests of any `http` service by the rules of a [`Limiter`].
///
/// A request is charged before it reaches the service. A denied one is answered with 429, or with
/// `RESOURCE_EXHAUSTED` if it is a gRPC call, and never reaches the service. Responses to limited requests carry the
/// limit fields of [`Headers`].
///
/// Attributes of a request are its `method`, its `endpoint` ([`extract::endpoint`](super::extract::endpoint)) and
/// the `ip` of its client ([`client_ip`](Self::client_ip)); further ones are extracted by functions of its head.
/// Clones, and services made by one layer, share state.
///
/// ```
/// use sluicegate::middleware::{RateLimitLayer, extract};
/// use sluicegate::{Limiter, MemoryStore, Quota, Rule, RuleSet};
///
/// #[derive(Clone)]
/// struct Account {
///     name: String,
/// }
///
/// let rules = RuleSet::new(vec![
///     Rule::new(1, "ip:{ip}", Quota::per_second(100)?)?,
///     Rule::new(2, "user:{user_id}", Quota::per_minute(600)?)?,
/// ])?;
/// let layer = RateLimitLayer::new(Limiter::new(MemoryStore::new(), rules))
///     .user_id(extract::extension(|account: &Account| Some(account.name.as_str().into())))
///     .cost(|request| if request.uri.path() == "/export" { 20 } else { 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Delays
///
/// A request queued by a `leaky_bucket` rule waits for its delay before the service is called.
/// The rule's `max_wait` bounds the delay.
///
/// # Cancel safety
///
/// Dropping the response future of a charged request keeps the charge.
pub struct RateLimitLayer<S: Store = MemoryStore> {
    limiter: Limiter<S>,
    settings: Arc<Settings>,
}

/// Settings that a layer, its clones and its services share.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) attributes: Attributes,
    pub(super) skip: Option<Skip>,
    pub(super) correct: Option<Correct>,
    pub(super) headers: Headers,
    pub(super) on_denied: Option<Hook>,
    pub(super) on_store_error: OnStoreError,
    pub(super) on_failure: OnFailure,
    pub(super) is_shadow: bool,
    clock: SystemClock,
}

impl<S: Store> RateLimitLayer<S> {
    /// A layer over this limiter, with the default settings.
    #[must_use]
    pub fn new(limiter: Limiter<S>) -> Self {
        let settings = Settings {
            attributes: Attributes::incoming(),
            skip: None,
            correct: None,
            headers: Headers::default(),
            on_denied: None,
            on_store_error: OnStoreError::default(),
            on_failure: OnFailure::default(),
            is_shadow: false,
            clock: SystemClock::new(),
        };
        Self { limiter, settings: Arc::new(settings) }
    }

    /// Sets how `ip` is found behind proxies. By default it is the socket's peer, and header fields are ignored.
    #[must_use]
    pub fn client_ip(mut self, client_ip: ClientIp) -> Self {
        if let Some(client) = &mut self.settings().attributes.client {
            client.ip = client_ip;
        }
        self
    }

    /// Sets how the address of the socket's peer is found; by default by [`extract::peer`](super::extract::peer).
    #[must_use]
    pub fn peer<F>(mut self, peer: F) -> Self
    where
        F: Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static,
    {
        if let Some(client) = &mut self.settings().attributes.client {
            client.peer = Arc::new(peer);
        }
        self
    }

    /// Sets the extractor of `user_id`. Take it from an authentication layer, not from an unverified field.
    #[must_use]
    pub fn user_id<F>(self, user_id: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        self.attribute("user_id", user_id)
    }

    /// Sets the extractor of `plan`. A request without a plan gets the rules for `default`.
    #[must_use]
    pub fn plan<F>(self, plan: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        self.attribute("plan", plan)
    }

    /// Sets the extractor of `endpoint`; by default [`extract::endpoint`](super::extract::endpoint).
    #[must_use]
    pub fn endpoint<F>(self, endpoint: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        self.attribute("endpoint", endpoint)
    }

    /// Sets the extractor of any attribute that rules name, including `ip`. An empty value counts as missing.
    #[must_use]
    pub fn attribute<F>(mut self, name: &str, value: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        self.settings().attributes.set(name, Arc::new(value));
        self
    }

    /// Sets the cost of a request, in tokens of every bucket; one by default. Zero is a peek, which always passes.
    #[must_use]
    pub fn cost<F>(mut self, cost: F) -> Self
    where
        F: Fn(&Parts) -> u64 + Send + Sync + 'static,
    {
        self.settings().attributes.cost = Some(Arc::new(cost));
        self
    }

    /// Corrects the charge to the cost that the response shows; `None` leaves it. An excess is refunded,
    /// a shortfall is taken as far as tokens are left ([`Reservation::settle`](crate::Reservation::settle)), and the
    /// header fields show the corrected state. The response waits for the correction; if the store fails, it is sent
    /// all the same and the charge stays.
    ///
    /// ```
    /// use http::StatusCode;
    /// # use sluicegate::middleware::RateLimitLayer;
    /// # use sluicegate::{Limiter, MemoryStore, RuleSet};
    /// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
    /// // Charge ten, then correct to the handler's figure, or to zero if the handler failed.
    /// let layer = RateLimitLayer::new(limiter).cost(|_| 10).correct(|answer| {
    ///     match answer.status {
    ///         StatusCode::INTERNAL_SERVER_ERROR => Some(0),
    ///         _ => answer.headers.get("x-cost")?.to_str().ok()?.parse().ok(),
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn correct<F>(mut self, correct: F) -> Self
    where
        F: Fn(&http::response::Parts) -> Option<u64> + Send + Sync + 'static,
    {
        self.settings().correct = Some(Arc::new(correct));
        self
    }

    /// Exempts requests from all limits: health checks, for example, or preflight requests of browsers.
    #[must_use]
    pub fn skip<F>(mut self, skip: F) -> Self
    where
        F: Fn(&Parts) -> bool + Send + Sync + 'static,
    {
        self.settings().skip = Some(Arc::new(skip));
        self
    }

    /// Sets the header fields of responses.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.settings().headers = headers;
        self
    }

    /// Sets a hook that is called with every rejected request and its response, and returns the response to send.
    /// In [shadow](Self::shadow) mode it is called too, and the response it returns is discarded.
    ///
    /// ```
    /// use bytes::Bytes;
    /// # use sluicegate::middleware::RateLimitLayer;
    /// # use sluicegate::{Limiter, MemoryStore, RuleSet};
    /// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
    /// let layer = RateLimitLayer::new(limiter).on_denied(|denied, answer| {
    ///     let path = denied.request().uri.path();
    ///     let text = format!("{path} is busy, sorry");
    ///     answer.map(|_| Bytes::from(text)) // with all its header fields
    /// });
    /// ```
    #[must_use]
    pub fn on_denied<F>(mut self, hook: F) -> Self
    where
        F: Fn(&Denied<'_>, Response<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
    {
        self.settings().on_denied = Some(Arc::new(hook));
        self
    }

    /// Sets the policy for requests without this attribute: [`OnMissing::Skip`] by default, except for `ip`.
    /// An unknown address becomes `unknown`, so that a server which does not provide its peers' addresses
    /// limits them all together instead of not at all.
    #[must_use]
    pub fn on_missing(mut self, name: &str, on_missing: OnMissing) -> Self {
        self.settings().attributes.set_on_missing(name, on_missing);
        self
    }

    /// Sets the policy for requests with an attribute that is too long.
    #[must_use]
    pub fn on_oversized(mut self, on_oversized: OnOversized) -> Self {
        self.settings().attributes.on_oversized = on_oversized;
        self
    }

    /// Sets the policy for requests that the store returns an error for.
    #[must_use]
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.settings().on_store_error = on_store_error;
        self
    }

    /// Sets the policy for the charge when the service fails.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings().on_failure = on_failure;
        self
    }

    /// Switches to shadow mode: requests are charged, but all of them pass without delay, and responses carry no limit
    /// fields. Requests that would have been denied are reported to [`on_denied`](Self::on_denied).
    #[must_use]
    pub fn shadow(mut self) -> Self {
        self.settings().is_shadow = true;
        self
    }

    fn settings(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }
}

impl Settings {
    pub(super) fn is_skipped(&self, parts: &Parts) -> bool {
        self.skip.as_ref().is_some_and(|skip| skip(parts))
    }

    /// May the charge of an admitted request still change?
    pub(super) fn may_correct(&self) -> bool {
        self.correct.is_some() || self.on_failure == OnFailure::Refund
    }

    /// The current time, for fields that contain it.
    pub(super) fn now(&self) -> Micros {
        self.clock.now()
    }
}

impl<I, S: Store> Layer<I> for RateLimitLayer<S> {
    type Service = RateLimit<I, S>;

    fn layer(&self, inner: I) -> RateLimit<I, S> {
        RateLimit::new(inner, self.limiter.clone(), Arc::clone(&self.settings))
    }
}

impl<S: Store> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<S: Store> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("limiter", &self.limiter)
            .field("settings", &self.settings)
            .finish()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("attributes", &self.attributes)
            .field("headers", &self.headers)
            .field("on_store_error", &self.on_store_error)
            .field("on_failure", &self.on_failure)
            .field("is_shadow", &self.is_shadow)
            .finish_non_exhaustive()
    }
}
