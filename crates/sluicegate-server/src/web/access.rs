//! Who administers: handlers that take a [`Reader`] or an [`Admin`] are for them only.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use tracing::warn;

use super::problem::{Problem, whole_seconds};
use crate::app::App;
use crate::auth::guard::{ForeignSite, Refusal};
use crate::data::Role;

/// Somebody who may look.
#[derive(Debug)]
pub(crate) struct Reader;

/// Somebody who may look and change, by the name that changes are recorded under.
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) String);

impl FromRequestParts<Arc<App>> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        app.require(parts, Role::Read).map(|_| Self)
    }
}

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        app.require(parts, Role::Admin).map(Self)
    }
}

impl From<ForeignSite> for Problem {
    fn from(sign: ForeignSite) -> Self {
        match sign {
            ForeignSite::SeveralHosts => {
                Self::new(StatusCode::BAD_REQUEST, "there is more than one Host")
            }
            ForeignSite::Host => {
                Self::new(StatusCode::FORBIDDEN, "this Host is not a name of this machine")
            }
            ForeignSite::Origin => {
                Self::new(StatusCode::FORBIDDEN, "pages of other sites may not ask here")
            }
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
            Refusal::Wrong => Self::new(StatusCode::UNAUTHORIZED, "this token is not known"),
            Refusal::Role => {
                Self::new(StatusCode::FORBIDDEN, "this needs a token whose role is admin")
            }
            Refusal::TooMany(wait) => {
                let seconds = whole_seconds(wait);
                let detail = format!(
                    "too many wrong tokens came from this address: try again in {seconds} s"
                );
                Self::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
            }
            Refusal::Unknown => {
                let detail =
                    "whether a token is needed is not known until the database answers: try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
        }
    }
}

impl App {
    /// By which name somebody who may do what this role may is known.
    pub(crate) fn require(&self, parts: &Parts, role: Role) -> Result<String, Problem> {
        let asked = self.guard.require(&parts.headers, peer(parts), role);
        asked.map_err(|refusal| self.refuse(refusal, parts))
    }

    /// Whether to show what is for readers only to whoever need not be one.
    pub(crate) fn is_reader(&self, parts: &Parts) -> bool {
        match self.guard.require(&parts.headers, peer(parts), Role::Read) {
            Ok(_) => true,
            // Nobody has tried to be one.
            Err(Refusal::Missing) => false,
            // Why the database is not reached may be just what is to be seen.
            Err(Refusal::Unknown) => self.guard.is_open(),
            Err(refusal) => {
                self.refuse(refusal, parts);
                false
            }
        }
    }

    /// Counts and logs what the guard refuses. Never the token: a wrong one may be a right one with a slip
    /// in it.
    fn refuse(&self, refusal: Refusal, parts: &Parts) -> Problem {
        self.metrics.refused(refusal.name());
        let is_guess = matches!(refusal, Refusal::Wrong | Refusal::TooMany(_));
        let guesser = peer(parts).filter(|_| is_guess);
        if let Some(peer) = guesser.filter(|peer| self.guard.is_worth_a_line(*peer)) {
            warn!(%peer, reason = refusal.name(), "a token was refused");
        }
        refusal.into()
    }
}

/// The other end of the connection.
pub(crate) fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}
