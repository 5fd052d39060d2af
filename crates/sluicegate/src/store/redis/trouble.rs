//! What can be wrong with Redis, told apart by what is to be done about it.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// What kind of trouble a store has. Its name is a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TroubleKind {
    /// There is no connection, or it broke; what was on its way may have been charged.
    Connection,
    /// No answer within the budget; it may have been charged.
    Timeout,
    /// The breaker is open: it was not tried.
    Open,
    /// Too many checks wait already: it was not tried.
    Overloaded,
    /// The server is reading its data from disk.
    Loading,
    /// The server is a replica, or cannot reach its replicas: it takes no writes.
    ReadOnly,
    /// The server has no memory left, and must not forget anything.
    OutOfMemory,
    /// The credentials are wrong, or do not allow what is needed.
    Auth,
    /// No encrypted connection: a certificate that is not trusted, has expired or is another host's, or files
    /// of ours that cannot be used.
    Tls,
    /// The server runs somebody's slow script.
    Busy,
    /// A cluster that cannot serve these keys now.
    ClusterDown,
    /// An answer that was not expected.
    Unexpected,
}

/// Store trouble: the kind, and what the server or the system said.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}: {detail}")]
pub struct Trouble {
    kind: TroubleKind,
    detail: Arc<str>,
}

impl Trouble {
    pub(crate) fn new(kind: TroubleKind, detail: impl Into<Arc<str>>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> TroubleKind {
        self.kind
    }

    /// What the server or the system said.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl TroubleKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Connection,
        Self::Timeout,
        Self::Open,
        Self::Overloaded,
        Self::Loading,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Auth,
        Self::Tls,
        Self::Busy,
        Self::ClusterDown,
        Self::Unexpected,
    ];

    /// Its name in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Open => "open",
            Self::Overloaded => "overloaded",
            Self::Loading => "loading",
            Self::ReadOnly => "readonly",
            Self::OutOfMemory => "oom",
            Self::Auth => "auth",
            Self::Tls => "tls",
            Self::Busy => "busy",
            Self::ClusterDown => "clusterdown",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for TroubleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
