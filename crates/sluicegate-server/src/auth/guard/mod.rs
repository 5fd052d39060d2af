//! Who may ask: no page of another site, and for the administration nobody without a token.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::http::{HeaderMap, HeaderName, Uri, header};
use sluicegate::QuotaError;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use tracing::warn;

use crate::auth::failures::Failures;
use crate::auth::tokens;
use crate::config::{Config, Door};
use crate::data::{Role, StoredToken, TOKENS_MAX};

/// Where a browser says that a request is from, and what it is for.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Path of the page, which links of other sites may lead to.
pub(crate) const PAGE_PATH: &str = "/";

/// Checks that come before a request is handled.
pub struct Guard {
    /// The hash of the token in the settings, which is known without a database.
    bootstrap: Option<[u8; 32]>,
    /// The tokens of the database; none while it is not known which there are.
    stored: ArcSwapOption<Vec<StoredToken>>,
    failures: Failures,
    /// Only this machine can connect. Where there is no token at all, it needs none; and only its own names
    /// are right: anything else in `Host` means that somebody's page has made a browser here believe that
    /// its site is this machine (DNS rebinding).
    is_loopback: bool,
}

/// Whose token it is.
#[derive(Clone, Copy, Debug)]
enum Whose<'a> {
    /// It is the one in the settings.
    Bootstrap,
    Stored(&'a StoredToken),
    Nobody,
}

/// What somebody has shown who was let in, to be looked at again.
pub(crate) struct Pass(Option<[u8; 32]>);

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

/// Why somebody may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token came with the request.
    Missing,
    /// One came that nobody has.
    Wrong,
    /// The token is good, but not for this.
    Role,
    /// Too many wrong ones came from this address: for so long, neither a wrong one nor the one in the settings
    /// is told from the other.
    TooMany(Duration),
    /// It is not known whether a token is needed, or whose this one is: the database has not been reached yet.
    Unknown,
}

impl Guard {
    /// A guard with the settings' token, if there is one.
    ///
    /// # Errors
    ///
    /// If `failures_per_minute` cannot be counted, which the bounds of that setting rule out.
    pub fn new(config: &Config) -> Result<Self, QuotaError> {
        let none = config.database.url.is_none().then(Arc::default);
        Ok(Self {
            bootstrap: config.admin.token.as_ref().map(|token| tokens::hash(token.expose())),
            stored: ArcSwapOption::new(none),
            failures: Failures::new(config.admin.failures_per_minute)?,
            // Nobody asks over HTTP if nobody listens for it.
            is_loopback: config
                .listen
                .http
                .is_none_or(|address| config.listen.is_local(Door::Http, address)),
        })
    }

    /// From here on these are the tokens of the database, and no others.
    pub fn set_tokens(&self, mut tokens: Vec<StoredToken>) {
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

    /// Whether this machine needs no token, as far as is known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let has_stored = self.stored.load().as_ref().is_some_and(|stored| !stored.is_empty());
        self.is_loopback && self.bootstrap.is_none() && !has_stored
    }

    /// By which name somebody who may do what this role may is known, or why they may not.
    pub(crate) fn require(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
        role: Role,
    ) -> Result<String, Refusal> {
        let stored = self.stored.load();
        let token = bearer(headers);
        if self.is_loopback && self.bootstrap.is_none() {
            match (stored.as_ref(), token) {
                (Some(stored), _) if stored.is_empty() => return Ok("local".into()),
                // There may be some: nobody has been able to ask.
                (None, None) => return Err(Refusal::Unknown),
                _ => {}
            }
        }
        let token = token.ok_or(Refusal::Missing)?;
        let is_known = stored.is_some();
        let stored = stored.as_ref().map_or(&[][..], |stored| stored.as_slice());
        let peer = peer.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let hash = tokens::hash(token);
        let whose = self.recognise(&hash, stored);
        // Nobody guesses one of those: whoever has one is let in, whatever others do behind the same address.
        if let Whose::Stored(token) = whose {
            let name = || format!("token:{}", token.name);
            return (token.role >= role).then(name).ok_or(Refusal::Role);
        }
        // The one in the settings was chosen by somebody, and may be guessed: it is no key to this lock, or else
        // guessing would go on behind it.
        if let Some(wait) = self.failures.wait(peer) {
            return Err(Refusal::TooMany(wait));
        }
        if let Whose::Bootstrap = whose {
            return Ok("admin".into());
        }
        Err(match self.failures.note(peer, hash) {
            Some(wait) => Refusal::TooMany(wait),
            None if is_known => Refusal::Wrong,
            None => Refusal::Unknown,
        })
    }

    /// Whether somebody who was let in would be still. It is nobody's guess, and counts as none.
    pub(crate) fn still_lets_in(&self, Pass(hash): &Pass, role: Role) -> bool {
        let stored = self.stored.load();
        let stored = stored.as_ref().map(|stored| stored.as_slice());
        if self.is_loopback && self.bootstrap.is_none() && stored.is_some_and(<[_]>::is_empty) {
            return true;
        }
        let Some(hash) = hash else { return false };
        match self.recognise(hash, stored.unwrap_or_default()) {
            Whose::Bootstrap => true,
            Whose::Stored(token) => token.role >= role,
            Whose::Nobody => false,
        }
    }

    /// Whose token has this hash. Takes as long for any token.
    fn recognise<'a>(&self, hash: &[u8; 32], stored: &'a [StoredToken]) -> Whose<'a> {
        const NOBODY: u32 = u32::MAX;
        let mut found = NOBODY;
        for (position, token) in (0..NOBODY).zip(stored) {
            found.conditional_assign(&position, hash.ct_eq(&token.hash));
        }
        let is_bootstrap = self.bootstrap.is_some_and(|bootstrap| hash.ct_eq(&bootstrap).into());
        if is_bootstrap {
            return Whose::Bootstrap;
        }
        let token = usize::try_from(found).ok().and_then(|found| stored.get(found));
        token.map_or(Whose::Nobody, Whose::Stored)
    }

    /// Whether to write to the log about this address.
    pub(crate) fn is_worth_a_line(&self, peer: IpAddr) -> bool {
        self.failures.is_worth_a_line(peer)
    }

    /// Refuses requests that a page of another site makes a browser send.
    pub(crate) fn require_own_site(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), ForeignSite> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = uri.authority().map(axum::http::uri::Authority::as_str);
        let host = host.or_else(|| text(header::HOST));
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(ForeignSite::SeveralHosts);
        }
        if self.is_loopback && host.is_some_and(|host| !is_own_name(host)) {
            return Err(ForeignSite::Host);
        }
        if let Some(origin) = text(header::ORIGIN) {
            let origin_host = origin.split_once("://").map(|(_, host)| host);
            if origin_host.is_none() || origin_host != host {
                return Err(ForeignSite::Origin);
            }
        }
        let is_cross_site = text(SEC_FETCH_SITE) == Some("cross-site");
        // Following a link to the page changes nothing.
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
            .field("is_loopback", &self.is_loopback)
            .finish()
    }
}

impl Pass {
    /// What this request shows.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self(bearer(headers).map(tokens::hash))
    }
}

/// The token that a request shows, if it shows one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    // Of two, somebody on the way may have looked at the other one.
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let value = value.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Refusal {
    /// Its label in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Role => "role",
            Self::TooMany(_) => "too_many",
            Self::Unknown => "unknown",
        }
    }
}

/// Is this a name that only this machine has? An address is: a page can only lie about names.
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
