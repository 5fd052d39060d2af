//! Settings: what there is to set, where values come from, and what is wrong with them.
//!
//! Values come, each over the one before, from the defaults, the file, the environment and the flags.
//! [`KEYS`] is the one place that says what can be set; everything else here works from it.

mod database;
mod env;
mod error;
mod file;
mod keys;
mod load;
mod report;
mod secret;
mod store;
mod suggest;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tollgate::TlsFiles;

pub use self::database::{Database, DatabaseUrl};
pub use self::error::ConfigErrors;
pub use self::keys::{KEYS, Key, Kind};
pub use self::load::{FILE_NAME, Loaded, Origin, Setting, Sources};
pub(crate) use self::load::{is_loopback, reason};
pub use self::secret::Secret;
pub use self::store::{Store, StoreUrl};

/// All settings. Its default is every key's default.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[listen]`
    pub listen: Listen,
    /// `[store]`
    pub store: Store,
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
    /// With TLS, if there are any.
    pub tls: ListenTls,
}

/// The files of TLS for listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "KEYS documents each")]
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
#[expect(missing_docs, reason = "KEYS documents each")]
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
#[expect(missing_docs, reason = "KEYS documents each")]
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
    /// Which events: a level, or a filter such as `info,tollgate_server=debug`.
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
        for key in KEYS {
            // Every default is a sound value: a test sets them all.
            let _ = key.set(&mut config, &key.default_text());
        }
        config
    }
}
