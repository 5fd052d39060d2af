//! Authorisation of the administration: the extractors [`Reader`] and [`Admin`] restrict a handler to a role.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, StatusCode};
use tracing::warn;

use super::problem::{Problem, whole_seconds};
use crate::app::App;
use crate::auth::connection::{ConnectionInfo, Source};
use crate::auth::guard::{ForeignSite, Refusal, bearer};
use crate::auth::tokens;
use crate::config::Door;
use crate::data::{Author, REASON_BYTES_MAX, Role};
use crate::log_limit::LogLimit;

/// Limits on lines about rejected requests, by cause.
static REJECTED_LINES: LogLimit = LogLimit::new();
static FORWARDED_LINES: LogLimit = LogLimit::new();
static FOREIGN_SITE_LINES: LogLimit = LogLimit::new();

/// Extractor for clients with the role `read` or `admin`, with their name.
#[derive(Debug)]
pub(crate) struct Reader(pub(crate) String);

/// Extractor for clients with the role `admin`, as authors of the changes that they make.
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) Author);

/// Identity of the operator of this process, who needs no token; changes are recorded under its name. Only this process can put
/// it on a request: nothing that a client sends becomes an extension.
#[derive(Clone, Debug)]
pub(crate) struct Operator(pub(crate) String);

/// Header with the reason for a change, for the history.
pub(crate) const REASON_HEADER: HeaderName = HeaderName::from_static("x-sluicegate-reason");

impl FromRequestParts<Arc<App>> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        app.require(parts, Role::Read).map(Self)
    }
}

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let name = app.require(parts, Role::Admin)?;
        let reason = reason(&parts.headers)?;
        Ok(Self(Author { name, address: peer(parts), reason }))
    }
}

impl From<ForeignSite> for Problem {
    fn from(sign: ForeignSite) -> Self {
        match sign {
            ForeignSite::SeveralHosts => {
                Self::new(StatusCode::BAD_REQUEST, "more than one Host field: send exactly one")
            }
            ForeignSite::Host => Self::new(
                StatusCode::FORBIDDEN,
                "the Host is not a name or address of this machine",
            ),
            ForeignSite::Origin => Self::new(
                StatusCode::FORBIDDEN,
                "requests from pages of other sites are not allowed",
            ),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed: send `authorization: Bearer <token>`",
            ),
            Refusal::Forwarded => Self::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed: the request came through a proxy (it has a `Forwarded`, `X-Forwarded-*`, `X-Real-IP` \
                 or `Via` field), and only this machine may administer without one. Create one with `sluicegate tokens create`, or set admin.token",
            ),
            Refusal::Wrong => Self::new(StatusCode::UNAUTHORIZED, "this token is not known"),
            Refusal::Role => {
                Self::new(StatusCode::FORBIDDEN, "this needs a token whose role is admin")
            }
            Refusal::Caller => Self::new(
                StatusCode::FORBIDDEN,
                "this is the token of a caller: the administration needs one of `sluicegate tokens create`",
            ),
            Refusal::TooMany(wait) => {
                let seconds = whole_seconds(wait);
                let detail =
                    format!("too many wrong tokens from this address: try again in {seconds} s");
                Self::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
            }
            Refusal::Unknown => {
                let detail = "the tokens are not loaded yet: wait until the database answers, then try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
        }
    }
}

impl App {
    /// Requires this role and returns the name of the token's owner for the records. Refusals are counted and logged.
    pub(crate) fn require(&self, parts: &Parts, role: Role) -> Result<String, Problem> {
        if let Some(Operator(name)) = parts.extensions.get() {
            return Ok(name.clone());
        }
        self.authorize(parts, role).map_err(|refusal| self.refuse(refusal, parts))
    }

    fn authorize(&self, parts: &Parts, role: Role) -> Result<String, Refusal> {
        let source = source(parts);
        // Clients may send their token with every request: it is not a guess.
        if !self.guard.is_open_to(source.is_local)
            && let Some(token) = bearer(&parts.headers)
            && self.admission.callers.by_hash(&tokens::hash(token)).is_some()
        {
            return Err(Refusal::Caller);
        }
        self.guard.require(&parts.headers, source, role)
    }

    /// True if the client may see the details that an otherwise public answer reserves for readers.
    pub(crate) fn is_reader(&self, parts: &Parts) -> bool {
        match self.authorize(parts, Role::Read) {
            Ok(_) => true,
            // Without a token there is no attempt to count or log.
            Err(Refusal::Missing | Refusal::Forwarded | Refusal::Caller) => false,
            // The details may explain why the database is not reached.
            Err(Refusal::Unknown) => self.guard.is_open_to(source(parts).is_local),
            Err(refusal) => {
                self.refuse(refusal, parts);
                false
            }
        }
    }

    /// Counts and logs a request that a page of another site made a browser send.
    pub(crate) fn note_foreign_site(&self, peer: IpAddr) {
        self.metrics.foreign_site_refused();
        if let Some(suppressed) = self.guard.admit_line(peer, &FOREIGN_SITE_LINES) {
            warn!(%peer, suppressed, "request from a page of another site rejected");
        }
    }

    /// Counts and logs a refusal. The token is never logged: a wrong one may be a valid one with a typing error.
    fn refuse(&self, refusal: Refusal, parts: &Parts) -> Problem {
        self.metrics.refused(refusal.name());
        let (message, limit) = match refusal {
            Refusal::Wrong | Refusal::TooMany(_) => ("token rejected", &REJECTED_LINES),
            Refusal::Forwarded => {
                ("administration through a proxy without a token rejected", &FORWARDED_LINES)
            }
            Refusal::Missing | Refusal::Role | Refusal::Caller | Refusal::Unknown => {
                return refusal.into();
            }
        };
        let Some(peer) = peer(parts) else { return refusal.into() };
        if let Refusal::Wrong | Refusal::TooMany(_) = refusal {
            let connection: Option<&Arc<ConnectionInfo>> = parts.extensions.get();
            let door = connection.map_or(Door::Http, |connection| connection.listener.door);
            self.history.sign_in_failed(door, peer, None);
        }
        if let Some(suppressed) = self.guard.admit_line(peer, limit) {
            warn!(%peer, reason = refusal.name(), suppressed, message);
        }
        refusal.into()
    }
}

/// Reason of a request for its change; empty if it gives none.
fn reason(headers: &HeaderMap) -> Result<String, Problem> {
    let mut values = headers.get_all(REASON_HEADER).iter();
    let Some(value) = values.next() else { return Ok(String::new()) };
    let wrong = |reason| Problem::field("X-Sluicegate-Reason", reason);
    if values.next().is_some() {
        return Err(wrong("is duplicated".to_owned()));
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong("is not UTF-8".into()))?;
    check_reason(text).map_err(wrong)?;
    Ok(text.into())
}

/// Rejects a reason that the history cannot hold.
pub(crate) fn check_reason(reason: &str) -> Result<(), String> {
    if reason.len() > REASON_BYTES_MAX {
        return Err(format!("has more than {REASON_BYTES_MAX} bytes"));
    }
    if reason.contains(char::is_control) {
        return Err("must not contain control characters".into());
    }
    Ok(())
}

/// Client of a request.
pub(crate) fn source(parts: &Parts) -> Source {
    connection(&parts.extensions).map_or(Source::UNKNOWN, |connection| connection.source())
}

/// Address of the connection's peer.
pub(crate) fn peer(parts: &Parts) -> Option<IpAddr> {
    peer_in(&parts.extensions)
}

/// Address of the connection's peer in the extensions of a request.
pub(crate) fn peer_in(extensions: &Extensions) -> Option<IpAddr> {
    connection(extensions).map(|connection| connection.peer.ip())
}

/// Connection that a request came through; `None` for one that this process made itself.
pub(crate) fn connection(extensions: &Extensions) -> Option<&Arc<ConnectionInfo>> {
    extensions.get()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn given(value: &[u8]) -> Result<String, Problem> {
        reason(&HeaderMap::from_iter([(REASON_HEADER, HeaderValue::from_bytes(value).unwrap())]))
    }

    #[test]
    fn a_reason_is_short_text_in_one_field() {
        assert_eq!(reason(&HeaderMap::new()), Ok(String::new()));
        assert_eq!(given("café, incident 7".as_bytes()), Ok("café, incident 7".into()));
        let longest = "é".repeat(REASON_BYTES_MAX / 2);
        assert_eq!(given(longest.as_bytes()), Ok(longest.clone()));
        let too_long = longest + "x";
        for wrong in [too_long.as_bytes(), b"a\tb", "a\u{85}b".as_bytes(), b"\xff"] {
            let problem = serde_json::to_value(given(wrong).unwrap_err()).unwrap();
            assert_eq!(problem["status"], 400);
            assert_eq!(problem["field"], "X-Sluicegate-Reason");
        }
        let mut twice = HeaderMap::new();
        twice.append(REASON_HEADER, HeaderValue::from_static("a"));
        twice.append(REASON_HEADER, HeaderValue::from_static("b"));
        assert!(reason(&twice).is_err());
    }
}
