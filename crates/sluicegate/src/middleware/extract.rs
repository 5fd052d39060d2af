//! Extractors of attributes from the head of a request.
//!
//! An extractor is any `Fn(&Parts) -> Option<Cow<str>>`; this module has the common ones.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderName;
use http::request::Parts;

/// Address of the connection's peer, as an extension of a request. Servers without another way to pass it
/// on insert it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

/// Extracts the value of a header field, of the first line if there are several. The client writes it: use it
/// for identities only behind a proxy or layer that has verified them.
///
/// ```
/// use http::HeaderName;
/// use sluicegate::middleware::{RateLimitLayer, extract};
/// # use sluicegate::{Limiter, MemoryStore, RuleSet};
/// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
///
/// let tenant = extract::header(HeaderName::from_static("x-tenant"));
/// let layer = RateLimitLayer::new(limiter).attribute("tenant", tenant);
/// ```
pub fn header(
    name: HeaderName,
) -> impl for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static {
    move |parts| Some(String::from_utf8_lossy(parts.headers.get(&name)?.as_bytes()))
}

/// Extracts a value from an extension that an earlier layer has set, such as the authenticated user.
///
/// ```
/// use sluicegate::middleware::{RateLimitLayer, extract};
/// # use sluicegate::{Limiter, MemoryStore, RuleSet};
/// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
///
/// #[derive(Clone)]
/// struct Account {
///     id: u64,
///     plan: &'static str,
/// }
///
/// let layer = RateLimitLayer::new(limiter)
///     .user_id(extract::extension(|account: &Account| Some(account.id.to_string().into())))
///     .plan(extract::extension(|account: &Account| Some(account.plan.into())));
/// ```
pub fn extension<T, F>(
    of: F,
) -> impl for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync + 'static
where
    T: Send + Sync + 'static,
    F: for<'a> Fn(&'a T) -> Option<Cow<'a, str>> + Send + Sync + 'static,
{
    move |parts| of(parts.extensions.get()?)
}

/// The path of the request, without its query.
#[must_use]
pub fn path(parts: &Parts) -> Option<Cow<'_, str>> {
    Some(parts.uri.path().into())
}

/// The template of axum's route, such as `/users/{id}`; `None` if no route matched.
#[cfg(feature = "axum")]
#[must_use]
pub fn matched_path(parts: &Parts) -> Option<Cow<'_, str>> {
    Some(parts.extensions.get::<axum::extract::MatchedPath>()?.as_str().into())
}

/// Default extractor of `endpoint`: the template of axum's route (feature `axum`) if one matched, else the [path].
#[must_use]
pub fn endpoint(parts: &Parts) -> Option<Cow<'_, str>> {
    #[cfg(feature = "axum")]
    if let Some(matched) = matched_path(parts) {
        return Some(matched);
    }
    path(parts)
}

/// The host of a request in lower case: of its URI, else of its `Host` field.
#[must_use]
pub fn host(parts: &Parts) -> Option<Cow<'_, str>> {
    let named = || parts.headers.get(http::header::HOST)?.to_str().ok();
    let host = parts.uri.host().or_else(named)?;
    let is_lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower { host.into() } else { host.to_ascii_lowercase().into() })
}

/// Default source of the peer's address: the request's extension [`Peer`], else axum's
/// `ConnectInfo<SocketAddr>` (feature `axum`).
#[must_use]
pub fn peer(parts: &Parts) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    let connected = || {
        let info = parts.extensions.get::<axum::extract::ConnectInfo<std::net::SocketAddr>>()?;
        Some(info.0.ip())
    };
    #[cfg(not(feature = "axum"))]
    let connected = || None;
    parts.extensions.get::<Peer>().map(|peer| peer.0).or_else(connected)
}
