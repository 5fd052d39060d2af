//! Settings: what there is to set, where values come from, and what is wrong with them.
//!
//! Values come, each over the one before, from the defaults, the file, the environment and the flags.
//! [`keys()`] is the one place that says what can be set; everything else here works from it.

mod database;
mod env;
mod error;
mod file;
mod keys;
mod load;
mod report;
mod secret;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;
use ipnet::IpNet;
use sluicegate::client_ip::{ClientIp, ForwardedBy};
use sluicegate::headers::{Draft, Headers, Legacy, Reset};
use sluicegate::{TlsFiles, named_values};

pub use self::database::{Database, DatabaseUrl};
pub use self::error::ConfigErrors;
pub use self::keys::{Key, Kind, keys};
use self::load::is_loopback;
pub(crate) use self::load::reason;
pub use self::load::{FILE_NAME, Loaded, Origin, Setting, Sources};
pub use self::secret::Secret;
pub use self::store::{Store, StoreUrl};

/// All settings. Its default is every key's default.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[listen]`
    pub listen: Listen,
    /// `[store]`
    pub store: Store,
    /// `[grpc]`
    pub grpc: Grpc,
    /// `[resp]`
    pub resp: Resp,
    /// `[proxies]`
    pub proxies: Proxies,
    /// `[headers]`
    pub headers: AnswerHeaders,
    /// `[authorize]`
    pub authorize: Authorize,
    /// `[database]`
    pub database: Database,
    /// `[rules]`
    pub rules: Rules,
    /// `[admin]`
    pub admin: Admin,
    /// `[audit]`
    pub audit: Audit,
    /// `[recent]`
    pub recent: Recent,
    /// `[limits]`
    pub limits: Limits,
    /// `[log]`
    pub log: Log,
    /// `[shutdown]`
    pub shutdown: Shutdown,
    /// What was set and has no effect in this version.
    pub notes: Vec<String>,
}

/// Where to listen.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// For HTTP; nowhere if none.
    pub http: Option<SocketAddr>,
    /// For gRPC.
    pub grpc: Option<SocketAddr>,
    /// For the Redis protocol.
    pub resp: Option<SocketAddr>,
    /// The listeners whose connections begin with a header of the PROXY protocol.
    pub proxied: Vec<Door>,
    /// With TLS, if there are any.
    pub tls: ListenTls,
}

/// A front door: a protocol that is listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what they are called")]
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
    /// The setting that says where to listen for it.
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
    /// Whether only this machine can come to a listener on this address: a proxy before it brings others.
    pub(crate) fn is_local(&self, door: Door, address: SocketAddr) -> bool {
        is_loopback(address) && !self.proxied.contains(&door)
    }

    /// Where to listen for what.
    pub fn addresses(&self) -> impl Iterator<Item = (Door, SocketAddr)> {
        let addresses = Door::ALL.into_iter().zip([self.http, self.grpc, self.resp]);
        addresses.filter_map(|(door, address)| Some((door, address?)))
    }
}

/// Envoy's rate limit protocol over gRPC.
#[derive(Clone, Debug, Default)]
pub struct Grpc {
    /// Whether calls may give tokens back.
    pub has_refunds: bool,
}

/// The Redis protocol.
#[derive(Clone, Debug, Default)]
pub struct Resp {
    /// What clients must show first, if anything.
    pub password: Option<Secret>,
    /// The longest that a connection may be quiet, if there is such.
    pub idle_timeout: Option<Duration>,
}

/// Whom to believe about clients.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Proxies {
    pub trusted: Vec<IpNet>,
    pub hops: u8,
    pub header: ForwardedBy,
    pub ipv4_prefix: u8,
    pub ipv6_prefix: u8,
}

impl Proxies {
    /// What finds out whom a request is from.
    pub(crate) fn client_ip(&self) -> ClientIp {
        ClientIp::default()
            .trust(self.trusted.iter().copied())
            .hops(self.hops)
            .header(self.header)
            .ipv4_prefix(self.ipv4_prefix)
            .ipv6_prefix(self.ipv6_prefix)
    }
}

/// What limited answers tell about the limits.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct AnswerHeaders {
    pub draft: Draft,
    pub has_legacy: bool,
    pub legacy_reset: Reset,
}

impl AnswerHeaders {
    /// What writes them.
    pub(crate) fn headers(&self) -> Headers {
        let legacy =
            if self.has_legacy { Legacy::XRateLimit(self.legacy_reset) } else { Legacy::Off };
        Headers { draft: self.draft, legacy }
    }
}

/// What `/v1/authorize` reads beside the headers of proxies.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Authorize {
    pub user_header: Option<HeaderName>,
    pub plan_header: Option<HeaderName>,
    pub attribute_headers: Vec<(String, HeaderName)>,
}

/// The files of TLS for listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct ListenTls {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub client_ca: Option<PathBuf>,
}

impl ListenTls {
    /// All of them, as they are read.
    pub(crate) fn files(&self) -> TlsFiles {
        let Self { certificate, key, client_ca } = self.clone();
        TlsFiles { ca: client_ca, certificate, key }
    }
}

/// Where rules come from.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Which of the two.
    pub source: RulesFrom,
    /// Their file; the starter rules if none, where neither is a database.
    pub file: Option<PathBuf>,
}

/// Where rules come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RulesFrom {
    /// The database.
    #[default]
    Database,
    /// A file.
    File,
}

/// Who may administer.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    /// Whoever has this.
    pub token: Option<Secret>,
    /// How many wrong tokens one address may show in a minute.
    pub failures_per_minute: u64,
}

/// What is recorded of violations.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Audit {
    pub record: Record,
    pub privacy: Privacy,
    pub privacy_key: Option<Secret>,
    pub rows_per_second: usize,
    pub queue_max: usize,
    pub retention_days: u32,
}

/// Which violations are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// All, also those of rules in shadow mode.
    #[default]
    All,
    /// Those that were denied.
    Enforced,
    /// None.
    Nothing,
}

/// How addresses and ids are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privacy {
    /// As they are.
    #[default]
    Raw,
    /// Addresses cut to their network, /24 or /48.
    Truncated,
    /// Hashed with a key.
    Hashed,
}

/// What is remembered of the last requests.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// How many; none if zero.
    pub requests_max: usize,
    /// For how long.
    pub age_max: Duration,
}

/// Bounds on what clients may do.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Limits {
    pub body_bytes_max: usize,
    pub body_timeout: Duration,
    pub batch_max: usize,
    pub attributes_max: usize,
    pub value_bytes_max: usize,
    pub connections_max: usize,
    pub header_timeout: Duration,
    pub idle_timeout: Duration,
}

/// What is logged, and how.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// In which form.
    pub format: LogFormat,
    /// Which events: a level, or a filter such as `info,sluicegate_server=debug`.
    pub level: String,
}

/// The form of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Lines for people.
    Text,
    /// Lines of JSON.
    Json,
}

/// How to end.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// How long requests are still taken after readiness is off.
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            listen: Listen::default(),
            store: Store::default(),
            grpc: Grpc::default(),
            resp: Resp::default(),
            proxies: Proxies::default(),
            headers: AnswerHeaders::default(),
            authorize: Authorize::default(),
            database: Database::default(),
            rules: Rules::default(),
            admin: Admin::default(),
            audit: Audit::default(),
            recent: Recent::default(),
            limits: Limits::default(),
            log: Log::default(),
            shutdown: Shutdown::default(),
            notes: Vec::new(),
        };
        for key in keys() {
            // Every default is a sound value: a test sets them all.
            let _ = key.set(&mut config, &key.default_text());
        }
        config
    }
}
