//! Admission to the data doors: the identity that a request is answered for, or the reason for refusing it.
//!
//! ```text
//!   credentials of the request      a caller's token                     that caller
//!                                   a token of the administration       every right, if its role is admin
//!                                   any other                            refused, counted by address
//!   else the client certificate     with the name of a caller            that caller
//!   else                            an open listener                     anonymous
//!                                   any other                            refused
//! ```
//!
//! `X-Sluicegate-Token` has tokens of callers only.
//!
//! A listener is open if `listen.anonymous` is set, or if no caller exists and it is local or requires client
//! certificates. While no caller exists, an open listener ignores credentials.

mod verified;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use sluicegate::QuotaError;

pub(crate) use self::verified::VerifiedCaller;
use crate::auth::callers::{Caller, Callers};
use crate::auth::connection::{ConnectionInfo, ListenerTraits};
use crate::auth::failures::Failures;
use crate::auth::guard::{self, Guard};
use crate::auth::tokens;
use crate::config::{Config, Door};
use crate::data::{Right, Role};

/// Header with a caller's token on `/v1/authorize`, where `Authorization` belongs to the client of the proxy.
pub(crate) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-sluicegate-token");

/// Decides about the requests of the data doors.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The callers in force.
    pub(crate) callers: Arc<Callers>,
    guard: Arc<Guard>,
    /// Wrong tokens of the data doors. Apart from those of the administration: the clients of a proxy send tokens from
    /// its address, and must not lock its operator out.
    failures: Failures,
    /// True if every listener is open (`listen.anonymous`).
    is_anonymous_allowed: bool,
}

/// Identity that a request is answered for.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// No credentials, on an open listener; or the password of the Redis protocol.
    Anonymous,
    /// The owner of a token of the administration whose role is `admin`, by its recorded name.
    Administrator(Arc<str>),
    Caller(Arc<Caller>),
}

/// Header field with the credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialField {
    /// `Authorization: Bearer <token>`.
    Authorization,
    /// `X-Sluicegate-Token: <token>`.
    Token,
}

/// Credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials<'a> {
    Absent,
    Token(&'a str),
    /// A value that is not text.
    Ambiguous,
}

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request has no credentials, and the listener is not open.
    Missing,
    /// The token is unknown, has expired or was revoked.
    Wrong,
    /// The field with the credentials is there several times, of which a proxy may have checked another one; or it is not
    /// text.
    Ambiguous,
    /// The token is one of the administration, whose role is not `admin`.
    Role,
    /// The caller, or a request without one, lacks this right.
    Right(Right),
    /// Too many wrong tokens from this address, for this long.
    TooMany(Duration),
}

impl Admission {
    /// Admission with these settings.
    ///
    /// # Errors
    ///
    /// If `failures_per_minute` cannot be counted, which the bounds of that setting rule out.
    pub(crate) fn new(
        callers: Arc<Callers>,
        guard: Arc<Guard>,
        config: &Config,
    ) -> Result<Self, QuotaError> {
        Ok(Self {
            callers,
            guard,
            failures: Failures::new(config.admin.failures_per_minute)?,
            is_anonymous_allowed: config.listen.is_anonymous_allowed,
        })
    }

    /// True if this listener answers requests without credentials.
    #[inline]
    pub(crate) fn is_open(&self, listener: ListenerTraits) -> bool {
        self.is_anonymous_allowed
            || ((listener.is_local || listener.requires_certificates) && self.callers.is_empty())
    }

    /// Identity of a request over HTTP or gRPC that needs this right.
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
        // No credentials are needed, so they are not looked at.
        if Asker::Anonymous.may(right)
            && self.callers.is_empty()
            && self.is_open(connection.listener)
        {
            return Ok(Asker::Anonymous);
        }
        let asker = self.identify(connection, field, headers)?;
        if asker.may(right) { Ok(asker) } else { Err(asker.refused(right)) }
    }

    fn identify(
        &self,
        connection: &ConnectionInfo,
        field: CredentialField,
        headers: &HeaderMap,
    ) -> Result<Asker, Refused> {
        let value = field.value(headers).ok_or(Refused::Ambiguous)?;
        // Read before the lookup: a change in between makes the result outdated, not wrong.
        let epoch = self.callers.epoch();
        let bytes = value.map(HeaderValue::as_bytes);
        if let Some(caller) = connection.verified.get(epoch, field, bytes) {
            return Ok(Asker::used(caller));
        }
        let token = match field.credentials(value) {
            Credentials::Absent => None,
            Credentials::Token(token) => Some(token),
            Credentials::Ambiguous => return Err(Refused::Ambiguous),
        };
        let caller = match token {
            Some(token) => {
                let hash = tokens::hash(token);
                match self.callers.by_hash(&hash) {
                    Some(caller) => Some(caller),
                    None => return self.not_a_caller(field, hash, connection.peer.ip()),
                }
            }
            None => self.callers.by_certificate(&connection.certificate_names),
        };
        if let Some(caller) = caller {
            connection.verified.set(epoch, field, bytes, &caller);
            return Ok(Asker::used(caller));
        }
        if self.is_open(connection.listener) { Ok(Asker::Anonymous) } else { Err(Refused::Missing) }
    }

    /// Owner of a token that no caller has: an administrator, if the field may have such tokens.
    #[cold]
    fn not_a_caller(
        &self,
        field: CredentialField,
        hash: [u8; 32],
        peer: IpAddr,
    ) -> Result<Asker, Refused> {
        if field == CredentialField::Token {
            let wait = self.failures.wait(peer).or_else(|| self.failures.note(peer, hash));
            return Err(wait.map_or(Refused::Wrong, Refused::TooMany));
        }
        match self.guard.owner(hash, peer, &self.failures) {
            Ok((Role::Admin, name)) => Ok(Asker::Administrator(name.into())),
            Ok((Role::Read, _)) => Err(Refused::Role),
            Err(guard::Refusal::TooMany(wait)) => Err(Refused::TooMany(wait)),
            Err(_) => Err(Refused::Wrong),
        }
    }
}

impl Asker {
    /// A caller, whose use is recorded.
    #[inline]
    fn used(caller: Arc<Caller>) -> Self {
        caller.note_use();
        Self::Caller(caller)
    }

    /// True if it has this right. Requests without a caller never refund.
    #[inline]
    pub(crate) fn may(&self, right: Right) -> bool {
        match self {
            Self::Anonymous => right != Right::Refund,
            Self::Administrator(_) => true,
            Self::Caller(caller) => caller.may(right),
        }
    }

    /// Reason for refusing an operation that needs this right.
    pub(crate) fn refused(&self, right: Right) -> Refused {
        match self {
            Self::Anonymous => Refused::Missing,
            Self::Administrator(_) | Self::Caller(_) => Refused::Right(right),
        }
    }

    /// Its caller; `None` without one.
    #[inline]
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Caller(caller) => Some(caller),
            Self::Anonymous | Self::Administrator(_) => None,
        }
    }

    /// Namespace of its keys and requests; `None` for the common one.
    #[inline]
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.caller().and_then(|caller| caller.namespace.as_deref())
    }
}

impl CredentialField {
    /// Value of the field, if there is one; `None` if there are several.
    #[inline]
    fn value(self, headers: &HeaderMap) -> Option<Option<&HeaderValue>> {
        let name = match self {
            Self::Authorization => header::AUTHORIZATION,
            Self::Token => TOKEN_HEADER,
        };
        let mut values = headers.get_all(name).iter();
        let value = values.next();
        values.next().is_none().then_some(value)
    }

    /// Credentials in a value of the field. An `Authorization` of another scheme is none.
    fn credentials(self, value: Option<&HeaderValue>) -> Credentials<'_> {
        let Some(value) = value else { return Credentials::Absent };
        let Ok(text) = value.to_str() else { return Credentials::Ambiguous };
        let token = match self {
            // A proxy sends an empty field for a variable that is not set.
            Self::Token => Some(text.trim()).filter(|token| !token.is_empty()),
            Self::Authorization => guard::bearer_token(text),
        };
        token.map_or(Credentials::Absent, Credentials::Token)
    }
}

impl Refused {
    /// Label in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong | Self::Ambiguous => "wrong",
            Self::Role | Self::Right(_) => "right",
            Self::TooMany(_) => "too_many",
        }
    }
}

/// Label of a door in the metrics. The administration's listener answers checks over HTTP, too.
pub(crate) const fn door_label(door: Door) -> &'static str {
    match door {
        Door::Http | Door::Admin => "http",
        Door::Grpc => "grpc",
        Door::Resp => "resp",
    }
}

#[cfg(test)]
mod tests;
