//! Errors of Redis, by kind.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Kind of a store error. Its name is a label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TroubleKind {
    /// No connection, or a lost one; pending calls may have been charged.
    Connection,
    /// No reply within the budget; the call may have been charged.
    Timeout,
    /// The breaker is open: nothing was sent.
    Open,
    /// The queue is full: nothing was sent.
    Overloaded,
    /// The server is loading its data from disk.
    Loading,
    /// The server takes no writes: it is a replica, or cannot reach its replicas.
    ReadOnly,
    /// The server has no memory left, and must not evict.
    OutOfMemory,
    /// The credentials are wrong, or lack a permission.
    Auth,
    /// TLS failed: a certificate is not trusted, has expired or is that of another host, or a file of ours
    /// cannot be used.
    Tls,
    /// The server is running a slow script.
    Busy,
    /// The cluster cannot serve these keys now.
    ClusterDown,
    /// An unexpected reply.
    Unexpected,
}

/// Store error: the kind, and the text of the server or the system.
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

    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> TroubleKind {
        self.kind
    }

    /// Text of the server or the system.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl TroubleKind {
    /// All kinds.
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

    /// Name in metrics and messages.
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
