//! Settings of the listeners.

use std::path::PathBuf;

use sluicegate::{TlsFiles, named_values};

use super::Address;

/// Settings of the listeners.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// The listener for HTTP.
    pub http: ListenerSettings,
    /// The listener for gRPC.
    pub grpc: ListenerSettings,
    /// The listener for the Redis protocol.
    pub resp: ListenerSettings,
    /// Listeners whose connections begin with a PROXY protocol header.
    pub proxied: Vec<Door>,
    /// Files for TLS.
    pub tls: ListenTls,
    /// `true` if the data listeners answer requests without a caller.
    pub is_anonymous_allowed: bool,
}

/// Settings of one listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerSettings {
    /// Address to listen on; disabled if none.
    pub address: Option<Address>,
}

/// A protocol with a listener of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the variants say it")]
pub enum Door {
    Http,
    Grpc,
    Resp,
}

named_values! {
    Door:
    Http = "http",
    Grpc = "grpc",
    Resp = "resp",
}

impl Door {
    /// Name of the setting for its address.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Http => "listen.http",
            Self::Grpc => "listen.grpc",
            Self::Resp => "listen.resp",
        }
    }
}

impl Listen {
    /// Settings of a door's listener.
    #[must_use]
    pub fn of(&self, door: Door) -> &ListenerSettings {
        match door {
            Door::Http => &self.http,
            Door::Grpc => &self.grpc,
            Door::Resp => &self.resp,
        }
    }

    /// Returns `true` if only this machine can reach a listener, or if it is disabled. Behind a proxy others can.
    pub(crate) fn is_local(&self, door: Door) -> bool {
        let address = self.of(door).address.as_ref();
        address.is_none_or(|address| address.is_of_this_machine() && !self.proxied.contains(&door))
    }

    /// Enabled listeners with their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = (Door, &Address)> {
        Door::ALL.into_iter().filter_map(|door| Some((door, self.of(door).address.as_ref()?)))
    }
}

/// Files for TLS on the listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct ListenTls {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub client_ca: Option<PathBuf>,
}

impl ListenTls {
    /// The same files, in the form in which they are loaded.
    pub(crate) fn files(&self) -> TlsFiles {
        let Self { certificate, key, client_ca } = self.clone();
        TlsFiles { ca: client_ca, certificate, key }
    }
}
