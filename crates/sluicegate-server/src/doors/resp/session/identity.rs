//! Identity of a connection.

use std::sync::Arc;

use super::SharedConfig;
use crate::auth::callers::Caller;
use crate::auth::connection::ConnectionInfo;
use crate::auth::tokens;
use crate::data::Right;

/// User name of the password in the settings.
const DEFAULT_USER: &[u8] = b"default";

/// Identity that the commands of a connection are answered for.
#[derive(Debug)]
pub(super) enum Identity {
    /// None: it must authenticate first.
    Unknown,
    /// None, and the listener needs none.
    Anonymous,
    /// The password in the settings: as anonymous.
    Password,
    /// The caller that the client's certificate names.
    Certificate(Arc<Caller>),
    /// The caller whose token has this hash.
    Token(Arc<Caller>, Box<[u8; 32]>),
    /// A caller that was revoked or has expired: it must authenticate again.
    Revoked,
}

impl Identity {
    /// Identity of a connection that has not authenticated.
    pub(super) fn of(connection: &ConnectionInfo, shared_config: &SharedConfig) -> Self {
        let SharedConfig { admission, password, .. } = shared_config;
        if let Some(caller) = admission.callers.by_certificate(&connection.certificate_names) {
            return Self::Certificate(caller);
        }
        let is_open = password.is_none() && admission.is_open(connection.listener);
        if is_open { Self::Anonymous } else { Self::Unknown }
    }

    /// Identity with these credentials; `None` if they are wrong.
    pub(super) fn authenticate(
        connection: &ConnectionInfo,
        user: &[u8],
        password: &[u8],
        shared_config: &SharedConfig,
    ) -> Option<Self> {
        if user == DEFAULT_USER {
            return match &shared_config.password {
                Some(right) => right.is(password).then_some(Self::Password),
                // Without a password any is right, where none is needed.
                None => Some(Self::of(connection, shared_config)).filter(Self::is_trusted),
            };
        }
        let hash = tokens::hash(password);
        let caller = shared_config.admission.callers.by_name(user, &hash)?;
        Some(Self::Token(caller, Box::new(hash)))
    }

    /// Identity after the callers have changed.
    pub(super) fn renewed(
        &self,
        connection: &ConnectionInfo,
        shared_config: &SharedConfig,
    ) -> Self {
        match self {
            Self::Unknown | Self::Anonymous | Self::Certificate(_) => {
                Self::of(connection, shared_config)
            }
            Self::Password => Self::Password,
            Self::Token(caller, hash) => {
                let name = caller.name.as_bytes();
                match shared_config.admission.callers.by_name(name, hash) {
                    Some(caller) => Self::Token(caller, hash.clone()),
                    None => Self::Revoked,
                }
            }
            Self::Revoked => Self::Revoked,
        }
    }

    /// Returns whether it need not authenticate.
    #[inline]
    pub(super) fn is_trusted(&self) -> bool {
        !matches!(self, Self::Unknown | Self::Revoked)
    }

    /// Returns whether it has shown the credentials of this user.
    pub(super) fn is_of(&self, user: &[u8]) -> bool {
        match self {
            Self::Password => user == DEFAULT_USER,
            Self::Certificate(caller) | Self::Token(caller, _) => caller.name.as_bytes() == user,
            Self::Unknown | Self::Anonymous | Self::Revoked => false,
        }
    }

    /// Returns whether it has shown right credentials.
    pub(super) fn is_authenticated(&self) -> bool {
        matches!(self, Self::Password | Self::Certificate(_) | Self::Token(..))
    }

    /// Its caller; `None` without one.
    #[inline]
    pub(super) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            Self::Certificate(caller) | Self::Token(caller, _) => Some(caller),
            Self::Unknown | Self::Anonymous | Self::Password | Self::Revoked => None,
        }
    }

    /// Returns whether it has this right, and records the use of its caller. A connection without a caller never refunds.
    #[inline]
    pub(super) fn may(&self, right: Right) -> bool {
        match self.caller() {
            None => right != Right::Refund,
            Some(caller) => {
                caller.note_use();
                caller.may(right)
            }
        }
    }
}
