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
    /// `[rules]`
    pub rules: Rules,
    /// `[admin]`
    pub admin: Admin,
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
}

/// Where rules come from.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Their file; the starter rules if none.
    pub file: Option<PathBuf>,
}

/// Who may administer.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    /// Whoever has this.
    pub token: Option<Secret>,
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
            rules: Rules::default(),
            admin: Admin::default(),
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
