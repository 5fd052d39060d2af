//! Guard of the service: rejects requests of other sites' pages, and administration without a token.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::http::{HeaderMap, HeaderName, Uri, header};
use sluicegate::QuotaError;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use tracing::warn;

use crate::auth::connection::Source;
use crate::auth::failures::Failures;
use crate::auth::tokens;
use crate::config::Config;
use crate::data::{Role, StoredToken, TOKENS_MAX};
use crate::log_limit::LogLimit;

/// Fields in which a browser states the origin and the destination of a request.
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Fields, besides `Forwarded` and `Via`, in which a proxy states its client. The second is a prefix of names.
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_FORWARDED: &str = "x-forwarded";

/// Name of clients that need no token: those on this machine, while no token exists.
pub(crate) const LOCAL: &str = "local";

/// Path of the page, which other sites may link to.
pub(crate) const PAGE_PATH: &str = "/";

/// Checks of origin and token before a request is handled.
pub(crate) struct Guard {
    /// Hash of the token in the settings, which works without a database.
    bootstrap: Option<[u8; 32]>,
    /// Tokens of the database; `None` until they are loaded.
    stored: ArcSwapOption<Vec<StoredToken>>,
    failures: Failures,
    /// True if requests over local listeners need no token while none exists.
    is_local_open: bool,
    /// True if only this machine can reach the listener of the administration.
    is_admin_local: bool,
}

/// Owner of a token.
#[derive(Clone, Copy, Debug)]
enum Owner<'a> {
    /// The token in the settings.
    Bootstrap,
    Stored(&'a StoredToken),
    Unknown,
}

/// Credentials of an authorised request, for checking them again.
pub(crate) struct Pass {
    /// Hash of its token, if it had one.
    token: Option<[u8; 32]>,
    is_forwarded: bool,
    /// Its listener is local.
    is_local: bool,
}

/// Sign of a request that a page of another site made a browser send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignSite {
    /// More than one `Host` field.
    SeveralHosts,
    /// A `Host` that does not name this machine.
    Host,
    /// An `Origin` of another site, or a cross-site fetch.
    Origin,
}

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request has no token.
    Missing,
    /// The request has no token, and would need none if it had not come through a proxy.
    Forwarded,
    /// The token is unknown.
    Wrong,
    /// The token's role does not suffice.
    Role,
    /// The token is one of a caller, which administers nothing.
    Caller,
    /// Too many wrong tokens from this address. For this long every guessable token, including a right one, gets this
    /// answer.
    TooMany(Duration),
    /// The tokens are not loaded: the database has not been reached yet.
    Unknown,
}

impl Guard {
    /// Creates a guard with the token of the settings, if there is one.
    ///
    /// # Errors
    ///
    /// If `failures_per_minute` cannot be counted, which the bounds of that setting rule out.
    pub(crate) fn new(config: &Config) -> Result<Self, QuotaError> {
        let none = config.database.url.is_none().then(Arc::default);
        Ok(Self {
            bootstrap: config.admin.token.as_ref().map(|token| tokens::hash(token.expose())),
            stored: ArcSwapOption::new(none),
            failures: Failures::new(config.admin.failures_per_minute)?,
            is_local_open: config.admin.is_local_open,
            is_admin_local: config.listen.is_local(config.listen.admin_door()),
        })
    }

    /// Replaces the tokens of the database.
    pub(crate) fn set_tokens(&self, mut tokens: Vec<StoredToken>) {
        if tokens.len() > TOKENS_MAX {
            warn!(
                tokens = tokens.len(),
                max = TOKENS_MAX,
                "too many tokens: the newest are ignored"
            );
            tokens.sort_by_key(|token| token.token_id);
            tokens.truncate(TOKENS_MAX);
        }
        self.stored.store(Some(Arc::new(tokens)));
    }

    /// True if the administration needs no token, as far as is known: its listener is local, the settings allow it, and
    /// no token exists.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open_to(self.is_admin_local)
    }

    /// True if requests over a listener that is local, or is not, need no token, as far as is known.
    pub(crate) fn is_open_to(&self, is_local: bool) -> bool {
        let has_stored = self.stored.load().as_ref().is_some_and(|stored| !stored.is_empty());
        self.may_be_open(is_local) && !has_stored
    }

    /// True if requests over a listener that is local, or is not, need no token while the database has none.
    fn may_be_open(&self, is_local: bool) -> bool {
        is_local && self.is_local_open && self.bootstrap.is_none()
    }

    /// True if every request to the administration is refused: it needs a token, and none exists.
    #[must_use]
    pub(crate) fn is_closed(&self) -> bool {
        let has_none = self.stored.load().as_ref().is_some_and(|stored| stored.is_empty());
        let is_open = self.may_be_open(self.is_admin_local);
        !is_open && self.bootstrap.is_none() && has_none
    }

    /// Name of the caller if its token has this role, or the reason for refusing it. Wrong tokens are counted.
    pub(crate) fn require(
        &self,
        headers: &HeaderMap,
        source: Source,
        role: Role,
    ) -> Result<String, Refusal> {
        let stored = self.stored.load();
        let token = bearer(headers);
        if self.may_be_open(source.is_local) {
            match (stored.as_ref().map(|stored| stored.is_empty()), token) {
                (Some(true) | None, None) if is_forwarded(headers) => {
                    return Err(Refusal::Forwarded);
                }
                (Some(true), _) if !is_forwarded(headers) => return Ok(LOCAL.into()),
                // Not loaded yet: the database may have tokens.
                (None, None) => return Err(Refusal::Unknown),
                _ => {}
            }
        }
        let hash = tokens::hash(token.ok_or(Refusal::Missing)?);
        let (owned_role, name) = self.owner(hash, source.peer, &self.failures)?;
        (owned_role >= role).then_some(name).ok_or(Refusal::Role)
    }

    /// Role and name of the owner of a token's hash. Wrong tokens are counted in `failures`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Wrong`], [`Refusal::TooMany`] or [`Refusal::Unknown`].
    pub(crate) fn owner(
        &self,
        hash: [u8; 32],
        peer: IpAddr,
        failures: &Failures,
    ) -> Result<(Role, String), Refusal> {
        let stored = self.stored.load();
        let is_known = stored.is_some();
        let stored = stored.as_ref().map_or(&[][..], |stored| stored.as_slice());
        let owner = self.recognise(&hash, stored);
        // Generated tokens cannot be guessed: they work even while other clients behind this address are locked out.
        if let Owner::Stored(token) = owner {
            return Ok((token.role, format!("token:{}", token.name)));
        }
        // The token in the settings may be guessable, so it is locked out too: otherwise guessing could continue during
        // the lockout.
        if let Some(wait) = failures.wait(peer) {
            return Err(Refusal::TooMany(wait));
        }
        if let Owner::Bootstrap = owner {
            return Ok((Role::Admin, "admin".into()));
        }
        Err(match failures.note(peer, hash) {
            Some(wait) => Refusal::TooMany(wait),
            None if is_known => Refusal::Wrong,
            None => Refusal::Unknown,
        })
    }

    /// True if an authorised request would still be authorised. Not counted as a guess.
    pub(crate) fn still_authorizes(&self, pass: &Pass, role: Role) -> bool {
        let stored = self.stored.load();
        let stored = stored.as_ref().map(|stored| stored.as_slice());
        if self.may_be_open(pass.is_local)
            && !pass.is_forwarded
            && stored.is_some_and(<[_]>::is_empty)
        {
            return true;
        }
        let Some(hash) = &pass.token else { return false };
        match self.recognise(hash, stored.unwrap_or_default()) {
            Owner::Bootstrap => true,
            Owner::Stored(token) => token.role >= role,
            Owner::Unknown => false,
        }
    }

    /// Finds the owner of a token's hash, in constant time.
    fn recognise<'a>(&self, hash: &[u8; 32], stored: &'a [StoredToken]) -> Owner<'a> {
        const NONE: u32 = u32::MAX;
        let mut found = NONE;
        for (position, token) in (0..NONE).zip(stored) {
            found.conditional_assign(&position, hash.ct_eq(&token.hash));
        }
        let is_bootstrap = self.bootstrap.is_some_and(|bootstrap| hash.ct_eq(&bootstrap).into());
        if is_bootstrap {
            return Owner::Bootstrap;
        }
        let token = usize::try_from(found).ok().and_then(|found| stored.get(found));
        token.map_or(Owner::Unknown, Owner::Stored)
    }

    /// Number of lines of this cause left out since the last one, if a line about this address may be logged: one per
    /// cause, minute and address, and few per cause and minute over all addresses.
    pub(crate) fn admit_line(&self, peer: IpAddr, cause: &'static LogLimit) -> Option<u64> {
        self.failures.may_log(peer, cause).then(|| cause.admit()).flatten()
    }

    /// Rejects requests that a page of another site made a browser send. Over a local listener, `Host` must name this
    /// machine: any other name is a sign of DNS rebinding, by which a foreign page reaches the service through a browser
    /// here.
    pub(crate) fn require_own_site(
        uri: &Uri,
        headers: &HeaderMap,
        is_local: bool,
    ) -> Result<(), ForeignSite> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = uri.authority().map(axum::http::uri::Authority::as_str);
        let host = host.or_else(|| text(header::HOST));
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(ForeignSite::SeveralHosts);
        }
        if is_local && host.is_some_and(|host| !is_own_name(host)) {
            return Err(ForeignSite::Host);
        }
        if let Some(origin) = text(header::ORIGIN) {
            let origin_host = origin.split_once("://").map(|(_, host)| host);
            if origin_host.is_none() || origin_host != host {
                return Err(ForeignSite::Origin);
            }
        }
        let is_cross_site = text(SEC_FETCH_SITE) == Some("cross-site");
        // Following a link to the page is harmless.
        let is_visit = uri.path() == PAGE_PATH && text(SEC_FETCH_DEST) == Some("document");
        if is_cross_site && !is_visit {
            return Err(ForeignSite::Origin);
        }
        Ok(())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("has_bootstrap", &self.bootstrap.is_some())
            .field("stored", &self.stored)
            .field("failures", &self.failures)
            .field("is_local_open", &self.is_local_open)
            .field("is_admin_local", &self.is_admin_local)
            .finish()
    }
}

impl Pass {
    /// Pass for the credentials of this request.
    pub(crate) fn of(headers: &HeaderMap, source: Source) -> Self {
        Self {
            token: bearer(headers).map(tokens::hash),
            is_forwarded: is_forwarded(headers),
            is_local: source.is_local,
        }
    }
}

/// True if a proxy says that it passed the request on: its client may be on any machine. A proxy that adds none of these
/// fields cannot be told apart.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        *name == header::FORWARDED
            || *name == header::VIA
            || *name == X_REAL_IP
            || name.as_str().starts_with(X_FORWARDED)
    })
}

/// Bearer token of a request; `None` without one, or with several `Authorization` fields.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    // With two, a proxy may have checked the other one.
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    bearer_token(value.to_str().ok()?)
}

/// Token in an `Authorization` field; `None` for other schemes.
pub(crate) fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Refusal {
    /// Label in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Forwarded => "forwarded",
            Self::Wrong => "wrong",
            Self::Role => "role",
            Self::Caller => "caller",
            Self::TooMany(_) => "too_many",
            Self::Unknown => "unknown",
        }
    }
}

/// True for `localhost`, names under it, and addresses: DNS rebinding needs a name.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests;
