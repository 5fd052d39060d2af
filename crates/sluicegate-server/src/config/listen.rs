//! Settings of the listeners.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sluicegate::{TlsFiles, named_values};

use super::{Address, Limits};

/// Settings of the listeners.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// The listener for HTTP.
    pub http: ListenerSettings,
    /// The listener for gRPC.
    pub grpc: ListenerSettings,
    /// The listener for the Redis protocol.
    pub resp: ListenerSettings,
    /// The listener for the administration and the page; they are on that for HTTP if it is disabled.
    pub admin: ListenerSettings,
    /// Listeners that answer `/livez`, `/readyz` and their other names.
    pub health: ServedOn,
    /// Listeners that answer `/metrics`.
    pub metrics: ServedOn,
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
    /// Certificate in PEM.
    pub certificate: FileChoice,
    /// Private key of the certificate in PEM.
    pub key: FileChoice,
    /// Authorities of clients in PEM.
    pub client_ca: FileChoice,
    /// Maximum number of connections, within that of all listeners.
    pub connections_max: Option<usize>,
    /// Timeout for the header of a request; the common one if absent.
    pub header_timeout: Option<Duration>,
    /// Idle timeout between requests; the common one if absent.
    pub idle_timeout: Option<Duration>,
}

/// A file of one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileChoice {
    /// That of all listeners.
    #[default]
    Common,
    /// None, whatever the other listeners have.
    Absent,
    /// A file of its own.
    Path(PathBuf),
}

/// Value of a setting for [`FileChoice::Absent`].
pub(super) const NONE: &str = "none";

impl FileChoice {
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "" => Self::Common,
            NONE => Self::Absent,
            path => Self::Path(path.into()),
        }
    }

    /// The file to use, where `common` is that of all listeners.
    fn or(&self, common: Option<&PathBuf>) -> Option<PathBuf> {
        match self {
            Self::Common => common.cloned(),
            Self::Absent => None,
            Self::Path(path) => Some(path.clone()),
        }
    }
}

/// A protocol with a listener of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the variants say it")]
pub enum Door {
    Http,
    Grpc,
    Resp,
    Admin,
}

named_values! {
    Door:
    Http = "http",
    Grpc = "grpc",
    Resp = "resp",
    Admin = "admin",
}

/// HTTP listeners that serve some paths, if there is one for the administration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedOn {
    /// `listen.http` and `listen.admin`.
    #[default]
    Both,
    /// `listen.http`.
    Http,
    /// `listen.admin`.
    Admin,
}

named_values! {
    ServedOn:
    Both = "both",
    Http = "http",
    Admin = "admin",
}

/// Groups of routes of an HTTP listener, beside those of the data path and the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpRoutes {
    /// The administration and the page.
    pub(crate) has_admin: bool,
    pub(crate) has_health: bool,
    pub(crate) has_metrics: bool,
}

impl Door {
    /// Name of the setting for its address.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Http => "listen.http",
            Self::Grpc => "listen.grpc",
            Self::Resp => "listen.resp",
            Self::Admin => "listen.admin",
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
            Door::Admin => &self.admin,
        }
    }

    /// Door of the administration and the page.
    #[must_use]
    pub fn admin_door(&self) -> Door {
        if self.admin.address.is_some() { Door::Admin } else { Door::Http }
    }

    /// Routes of an HTTP listener. Without one for the administration, that for HTTP has all.
    pub(crate) fn routes_of(&self, door: Door) -> HttpRoutes {
        let is_only = self.admin.address.is_none();
        let (is_http, is_admin) = (door == Door::Http, door == Door::Admin);
        let serves = |on| match on {
            ServedOn::Both => true,
            ServedOn::Http => is_only || is_http,
            ServedOn::Admin => is_only || is_admin,
        };
        HttpRoutes {
            has_admin: is_only || is_admin,
            has_health: serves(self.health),
            has_metrics: serves(self.metrics),
        }
    }

    /// Returns `true` if only this machine can reach a listener, or if it is disabled. Behind a proxy others can.
    pub(crate) fn is_local(&self, door: Door) -> bool {
        let address = self.of(door).address.as_ref();
        address.is_none_or(|address| address.is_of_this_machine() && !self.proxied.contains(&door))
    }

    /// Files for TLS of a listener; all absent if it does not use TLS.
    pub(crate) fn tls_of(&self, door: Door) -> ListenTls {
        let own = self.of(door);
        let Some(certificate) = own.certificate.or(self.tls.certificate.as_ref()) else {
            return ListenTls::default();
        };
        ListenTls {
            certificate: Some(certificate),
            key: own.key.or(self.tls.key.as_ref()),
            client_ca: own.client_ca.or(self.tls.client_ca.as_ref()),
        }
    }

    /// Distinct sets of files for TLS of enabled listeners.
    pub(crate) fn tls_sets(&self) -> Vec<ListenTls> {
        let mut sets = Vec::new();
        for (door, _) in self.addresses() {
            let tls = self.tls_of(door);
            if tls.certificate.is_some() && !sets.contains(&tls) {
                sets.push(tls);
            }
        }
        sets
    }

    /// Limits of a listener: the common ones, with its own timeouts.
    pub(crate) fn limits_of(&self, door: Door, common: &Limits) -> Limits {
        let own = self.of(door);
        Limits {
            header_timeout: own.header_timeout.unwrap_or(common.header_timeout),
            idle_timeout: own.idle_timeout.unwrap_or(common.idle_timeout),
            ..common.clone()
        }
    }

    /// Private keys, each with the name of its setting.
    pub(super) fn key_files(&self) -> impl Iterator<Item = (String, &Path)> {
        let common = self.tls.key.as_deref().map(|key| ("listen.tls_key".to_owned(), key));
        let own = Door::ALL.into_iter().filter_map(|door| match &self.of(door).key {
            FileChoice::Path(key) => Some((format!("{}_tls_key", door.setting()), key.as_path())),
            FileChoice::Common | FileChoice::Absent => None,
        });
        common.into_iter().chain(own)
    }

    /// Checks that every certificate has a key and the reverse, and that authorities of clients have a certificate.
    ///
    /// # Errors
    ///
    /// A setting, and another one that it needs.
    pub(super) fn check_tls(&self) -> Result<(), (String, String)> {
        let common = |name: &str| format!("listen.tls_{name}");
        match (&self.tls.certificate, &self.tls.key) {
            (Some(_), None) => return Err((common("certificate"), common("key"))),
            (None, Some(_)) => return Err((common("key"), common("certificate"))),
            _ => {}
        }
        for door in Door::ALL {
            self.check_tls_of(door)?;
        }
        let has_tls = Door::ALL.into_iter().any(|door| self.tls_of(door).certificate.is_some());
        if self.tls.client_ca.is_some() && !has_tls {
            return Err((common("client_ca"), common("certificate")));
        }
        Ok(())
    }

    fn check_tls_of(&self, door: Door) -> Result<(), (String, String)> {
        use FileChoice::{Absent, Common, Path};
        let setting = |name: &str| format!("{}_tls_{name}", door.setting());
        let ListenerSettings { certificate, key, client_ca, .. } = self.of(door);
        match (certificate, key) {
            (Path(_), Path(_)) | (Common, Common) | (Absent, Common | Absent) => {}
            (Path(_), _) => return Err((setting("certificate"), setting("key"))),
            (_, Path(_)) | (Common, Absent) => {
                return Err((setting("key"), setting("certificate")));
            }
        }
        if matches!(client_ca, Path(_)) && self.tls_of(door).certificate.is_none() {
            return Err((setting("client_ca"), setting("certificate")));
        }
        Ok(())
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
