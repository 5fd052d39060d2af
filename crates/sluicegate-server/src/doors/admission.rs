//! Admission of requests at the data doors: counts and logs refusals, and turns them into the errors of a protocol.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode};
use tonic::Status;
use tracing::{info, warn};

use crate::app::App;
use crate::auth::admission::{Asker, CredentialField, Refused, door_label};
use crate::auth::connection::ConnectionInfo;
use crate::config::Door;
use crate::data::Right;
use crate::log_limit::LogLimit;
use crate::web::problem::{Problem, whole_seconds};

/// Limits on lines about refused requests, by cause.
static WRONG_LINES: LogLimit = LogLimit::new();
static MISSING_LINES: LogLimit = LogLimit::new();
static RIGHT_LINES: LogLimit = LogLimit::new();

impl App {
    /// Identity of a request over HTTP or gRPC that needs this right. Refusals are counted and logged.
    ///
    /// # Errors
    ///
    /// The reason for refusing it.
    #[inline]
    pub(crate) fn admit(
        &self,
        connection: &ConnectionInfo,
        headers: &HeaderMap,
        field: CredentialField,
        right: Right,
    ) -> Result<Asker, Refused> {
        let admitted = self.admission.admit(connection, headers, field, right);
        if let Err(refused) = &admitted {
            self.note_refused(connection.listener.door, connection.peer.ip(), *refused);
        }
        admitted
    }

    /// Counts and logs a refusal. Tokens are never logged: a wrong one may be a valid one with a typing error.
    #[cold]
    pub(crate) fn note_refused(&self, door: Door, peer: IpAddr, refused: Refused) {
        if let Refused::Wrong | Refused::Ambiguous | Refused::TooMany(_) = refused {
            self.history.sign_in_failed(door, peer, None);
        }
        let (door, reason) = (door_label(door), refused.name());
        self.metrics.callers.refused(door, reason);
        let limit = match refused {
            Refused::Wrong | Refused::Ambiguous | Refused::TooMany(_) => &WRONG_LINES,
            Refused::Missing => &MISSING_LINES,
            Refused::Role | Refused::Right(_) => &RIGHT_LINES,
        };
        let Some(suppressed) = self.guard.admit_line(peer, limit) else { return };
        match refused {
            Refused::Wrong | Refused::Ambiguous | Refused::TooMany(_) => {
                warn!(%peer, door, reason, suppressed, "token of a caller rejected");
            }
            Refused::Missing => {
                info!(%peer, door, reason, suppressed, "request without a caller rejected");
            }
            Refused::Role => {
                info!(%peer, door, reason, suppressed, "token without the role admin rejected");
            }
            Refused::Right(right) => {
                let right = right.name();
                info!(%peer, door, reason, right, suppressed, "caller without the right rejected");
            }
        }
    }
}

/// Error over HTTP.
pub(crate) fn problem(refused: Refused, field: CredentialField) -> Problem {
    let example = match field {
        CredentialField::Authorization => "authorization: Bearer <token>",
        CredentialField::Token => "x-sluicegate-token: <token>",
    };
    match refused {
        Refused::Missing => {
            let detail = format!(
                "a caller is needed: send `{example}`; `sluicegate callers create` creates a token"
            );
            Problem::new(StatusCode::UNAUTHORIZED, detail)
        }
        Refused::Wrong => Problem::new(StatusCode::UNAUTHORIZED, WRONG),
        Refused::Ambiguous => Problem::new(StatusCode::UNAUTHORIZED, AMBIGUOUS),
        Refused::Role => Problem::new(StatusCode::FORBIDDEN, ROLE),
        Refused::Right(right) => Problem::new(StatusCode::FORBIDDEN, lacks(right)),
        Refused::TooMany(wait) => {
            let detail = too_many(wait);
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
        }
    }
}

/// Error over gRPC.
pub(super) fn status(refused: Refused) -> Status {
    match refused {
        Refused::Missing => Status::unauthenticated(
            "a caller is needed: send the metadata `authorization: Bearer <token>`; \
             `sluicegate callers create` creates a token",
        ),
        Refused::Wrong => Status::unauthenticated(WRONG),
        Refused::Ambiguous => Status::unauthenticated(AMBIGUOUS),
        Refused::Role => Status::permission_denied(ROLE),
        Refused::Right(right) => Status::permission_denied(lacks(right)),
        Refused::TooMany(wait) => Status::resource_exhausted(too_many(wait)),
    }
}

const WRONG: &str =
    "this token is not known, has expired or was revoked: send the token of a caller";
const AMBIGUOUS: &str =
    "the field with the token is there several times, or is not text: send one token";
const ROLE: &str =
    "this is a token of the administration with the role read: send the token of a caller";

fn lacks(right: Right) -> String {
    let right = right.name();
    format!("this caller may not do this: it lacks the right {right}")
}

fn too_many(wait: std::time::Duration) -> String {
    let seconds = whole_seconds(wait);
    format!("too many wrong tokens from this address: try again in {seconds} s")
}
