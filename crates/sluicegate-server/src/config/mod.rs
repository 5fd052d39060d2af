//! Settings: the table, the sources and the errors.
//!
//! Sources are the defaults, the file, the environment and the flags; each takes precedence over the one before. [`keys()`]
//! is the table of all settings, and everything else here works from it.

mod address;
mod database;
mod env;
mod error;
mod file;
mod files;
mod keys;
mod listen;
mod load;
mod report;
mod secret;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;
use ipnet::IpNet;
use sluicegate::client_ip::{ClientIp, ForwardedBy};
use sluicegate::headers::{Draft, Headers, Legacy, Reset};

pub(crate) use self::address::UNIX;
pub use self::address::{Address, UnixAddress};
pub use self::database::{Database, DatabaseUrl};
pub use self::error::ConfigErrors;
pub use self::keys::{Key, Kind, keys};
pub(crate) use self::listen::HttpRoutes;
pub use self::listen::{Door, FileChoice, Listen, ListenTls, ListenerSettings, ServedOn};
pub(crate) use self::load::reason;
pub use self::load::{FILE_NAME, Loaded, Origin, Setting, Sources};
pub use self::secret::Secret;
pub use self::store::{Store, StoreUrl};

/// Highest value of `limits.attributes_max`.
pub(crate) const ATTRIBUTES_MAX_MAX: usize = 1024;

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
    /// `[history]`
    pub history: History,
    /// `[recent]`
    pub recent: Recent,
    /// `[limits]`
    pub limits: Limits,
    /// `[log]`
    pub log: Log,
    /// `[shutdown]`
    pub shutdown: Shutdown,
    /// Warnings: settings that have no effect, or are unsafe.
    pub notes: Vec<String>,
}

/// Envoy's rate limit protocol over gRPC.
#[derive(Clone, Debug, Default)]
pub struct Grpc {
    /// `true` if calls may refund tokens.
    pub has_refunds: bool,
}

/// The Redis protocol.
#[derive(Clone, Debug, Default)]
pub struct Resp {
    /// Password that clients must send first, if any.
    pub password: Option<Secret>,
    /// Idle timeout of a connection; none if absent.
    pub idle_timeout: Option<Duration>,
}

/// Trusted proxies, and where they write client addresses.
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
    /// The resolver of client addresses for these settings.
    pub(crate) fn client_ip(&self) -> ClientIp {
        ClientIp::default()
            .trust(self.trusted.iter().copied())
            .hops(self.hops)
            .header(self.header)
            .ipv4_prefix(self.ipv4_prefix)
            .ipv6_prefix(self.ipv6_prefix)
    }
}

/// Header fields of limited answers.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct AnswerHeaders {
    pub draft: Draft,
    pub has_legacy: bool,
    pub legacy_reset: Reset,
}

impl AnswerHeaders {
    /// The writer of header fields for these settings.
    pub(crate) fn headers(&self) -> Headers {
        let legacy =
            if self.has_legacy { Legacy::XRateLimit(self.legacy_reset) } else { Legacy::Off };
        Headers { draft: self.draft, legacy }
    }
}

/// Headers that `/v1/authorize` reads beside those of proxies.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Authorize {
    pub user_header: Option<HeaderName>,
    pub plan_header: Option<HeaderName>,
    pub attribute_headers: Vec<(String, HeaderName)>,
}

impl Authorize {
    /// Names of all these headers.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        let attributes = self.attribute_headers.iter().map(|(_, header)| header);
        self.user_header.iter().chain(&self.plan_header).chain(attributes)
    }
}

/// Source of the rules.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Database or file.
    pub source: RulesFrom,
    /// File of rules; without file and database the starter rules are used.
    pub file: Option<PathBuf>,
}

/// Source of the rules: database or file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RulesFrom {
    /// The database.
    #[default]
    Database,
    /// A file.
    File,
}

/// Access to the administration.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    /// Token from the settings, if any.
    pub token: Option<Secret>,
    /// `true` if this machine needs no token while none exists.
    pub is_local_open: bool,
    /// Wrong tokens that one address may send per minute.
    pub failures_per_minute: u64,
}

/// Recording of violations.
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

/// History of the administration.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct History {
    pub retention_days: u32,
    pub rows_max: u64,
    pub queue_max: usize,
}

/// Violations to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// All, including those of rules in shadow mode.
    #[default]
    All,
    /// Only those of enforced rules.
    Enforced,
    /// No violations.
    Nothing,
}

/// Form in which addresses and ids are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privacy {
    /// Complete addresses and ids.
    #[default]
    Raw,
    /// Addresses truncated to their network, /24 or /48.
    Truncated,
    /// Hashed with a key.
    Hashed,
}

/// Recent requests, for previews.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Maximum number; 0 keeps none.
    pub requests_max: usize,
    /// Maximum age.
    pub age_max: Duration,
}

/// Limits on clients.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "`keys` documents each")]
pub struct Limits {
    pub body_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub unsent_bytes_max: usize,
    pub body_timeout: Duration,
    pub batch_max: usize,
    pub attributes_max: usize,
    pub tiers_max: usize,
    pub value_bytes_max: usize,
    pub connections_max: usize,
    pub header_timeout: Duration,
    pub idle_timeout: Duration,
}

/// Log format and level.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Text or JSON.
    pub format: LogFormat,
    /// A level, or a filter such as `info,sluicegate_server=debug`.
    pub level: String,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Readable lines.
    Text,
    /// Lines of JSON.
    Json,
}

/// Settings of the shutdown.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Time between failing readiness and refusing new requests.
    pub grace: Duration,
}

impl Config {
    /// Data listeners that other machines can reach, and whose clients prove nothing but with a caller's token: no client
    /// certificate, and no password of the Redis protocol.
    pub(crate) fn open_listeners(&self) -> Vec<(Door, &Address)> {
        let is_open = |door: &Door| match door {
            Door::Http | Door::Grpc => true,
            Door::Resp => self.resp.password.is_none(),
            Door::Admin => false,
        };
        let listen = &self.listen;
        let exposed = listen.addresses().filter(|(door, _)| !listen.is_local(*door));
        let open = exposed.filter(|(door, _)| listen.tls_of(*door).client_ca.is_none());
        open.filter(|(door, _)| is_open(door)).collect()
    }

    /// The same, as text: `listen.http (0.0.0.0:8080) and listen.grpc (0.0.0.0:8081)`; `None` if there are none.
    pub(crate) fn open_listeners_shown(&self) -> Option<String> {
        let open = self.open_listeners().into_iter();
        let shown: Vec<_> =
            open.map(|(door, address)| format!("{} ({address})", door.setting())).collect();
        (!shown.is_empty()).then(|| shown.join(" and "))
    }

    /// Ways to protect the open listeners, for a hint: only settings that concern them.
    pub(crate) fn ways_to_protect(&self) -> String {
        let open = self.open_listeners();
        let authority = |(door, _): &(Door, _)| format!("{}_tls_client_ca", door.setting());
        let authorities: Vec<_> = open.iter().map(authority).collect();
        let authorities = authorities.join(" and ");
        let has_resp = open.iter().any(|(door, _)| *door == Door::Resp);
        let password = if has_resp { "set resp.password, for listen.resp; or " } else { "" };
        format!(
            "create a caller with `sluicegate callers create NAME --may check,take`; or require client certificates with \
             listen.tls_client_ca for all listeners, or with {authorities}; or {password}set listen.anonymous = true, to \
             answer every client that can connect"
        )
    }
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
            history: History::default(),
            recent: Recent::default(),
            limits: Limits::default(),
            log: Log::default(),
            shutdown: Shutdown::default(),
            notes: Vec::new(),
        };
        for key in keys() {
            // Cannot fail: a test sets every default.
            let _ = key.set(&mut config, &key.default_text());
        }
        config
    }
}
