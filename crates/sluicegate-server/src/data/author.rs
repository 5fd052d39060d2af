//! Authors of changes.

use std::net::IpAddr;

/// Author of a change, as recorded with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Name: `token:NAME`, `admin`, `local`, or that of an operator on the command line.
    pub name: String,
    /// Address of the connection's peer; `None` if the change came through no connection.
    pub address: Option<IpAddr>,
    /// Reason given for the change; may be empty.
    pub reason: String,
}

impl Author {
    /// An author without address and reason.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
