//! The table of settings: each with its name, flag, meaning, default and range. The file, the
//! environment, the flags, `--help` and `--check-config` all work from it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tollgate::{MAX_BUCKETS_DEFAULT, MAX_BUCKETS_MAX, OnEviction, OnFull, RedisStoreBuilder};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::secret::{SHOWN, Secret};
use super::{Config, LogFormat, StoreUrl};

/// Bytes in the body of one request.
const BODY_BYTES_MAX_DEFAULT: u64 = 16 * 1024;
/// Beyond this a body is no request for a verdict.
const BODY_BYTES_MAX_MAX: u64 = 16 * 1024 * 1024;
/// Milliseconds for a body, and for a header, to arrive: seconds are an eternity for a few hundred bytes.
const ARRIVAL_MS_DEFAULT: u64 = 5_000;
/// Milliseconds that a connection may be quiet between requests: as long as proxies keep theirs.
const IDLE_MS_DEFAULT: u64 = 60_000;
const TIMEOUT_MS_MIN: u64 = 10;
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// Milliseconds between readiness off and no more requests: load balancers that watch see it.
const GRACE_MS_DEFAULT: u64 = 100;
/// Leaves time to answer what is in flight before the five seconds are over.
const GRACE_MS_MAX: u64 = 3_000;
const CONNECTIONS_MAX_DEFAULT: u64 = 10_000;
const CONNECTIONS_MAX_MAX: u64 = 1_000_000;
/// Milliseconds that a decision waits for Redis: half of what proxies wait for a decision.
const BUDGET_MS_DEFAULT: u64 = RedisStoreBuilder::BUDGET_DEFAULT.as_millis() as u64;
const BUDGET_MS_MAX: u64 = RedisStoreBuilder::BUDGET_MAX.as_millis() as u64;
const DENY_CACHE_MAX_DEFAULT: u64 = RedisStoreBuilder::DENY_CACHE_DEFAULT as u64;
const DENY_CACHE_MAX_MAX: u64 = RedisStoreBuilder::DENY_CACHE_MAX as u64;

/// The longest secret that makes sense.
pub(super) const SECRET_BYTES_MAX: usize = 4096;

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// `section.key`, as the file has it.
    pub name: &'static str,
    /// The flag of `tollgate serve`, without dashes; none for secrets, which everybody on the machine
    /// could read there.
    pub flag: Option<&'static str>,
    /// What a value looks like, in one word.
    pub value: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What values there are.
    pub kind: Kind,
}

/// What values a setting has, which it has by default, and where they go.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are what they are called")]
pub enum Kind {
    /// Text with a form of its own.
    Text { default: &'static str, set: fn(&mut Config, &str) -> Result<(), String> },
    /// One of a few words.
    Choice { default: &'static str, choices: &'static [&'static str], set: fn(&mut Config, &str) },
    /// A whole number in a range.
    Number { default: u64, min: u64, max: u64, set: fn(&mut Config, u64) },
    /// A file's path, empty by default. In the file it is relative to the file's folder.
    Path { set: fn(&mut Config, Option<PathBuf>) },
    /// A URL, which may hold a password: what is wrong with one never repeats it.
    Url { default: &'static str, set: fn(&mut Config, &str) -> Result<(), String> },
    /// Text that is never shown, empty by default.
    Secret { set: fn(&mut Config, Option<Secret>) },
}

/// Settings of later versions. They are taken without an effect, and with a note that says so, so that one
/// file serves a fleet while it is upgraded.
pub(super) const LATER: [&str; 4] =
    ["listen.grpc", "listen.resp", "database.url", "proxies.trusted"];

/// Everything that can be set.
pub const KEYS: &[Key] = &[
    Key {
        name: "listen.http",
        flag: Some("listen-http"),
        value: "ADDRESS",
        doc: "Where to listen for HTTP; port 0 takes a free one, empty switches it off",
        kind: Kind::Text {
            default: "127.0.0.1:8080",
            set: |config, text| {
                config.listen.http = address(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "store.url",
        flag: Some("store-url"),
        value: "URL",
        doc: "Where buckets are kept: `memory:` is this process, and Redis has URLs of its own",
        kind: Kind::Url {
            default: "memory:",
            set: |config, text| {
                config.store.url = StoreUrl::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "store.prefix",
        flag: Some("store-prefix"),
        value: "TEXT",
        doc: "What keys in Redis begin with: services with different prefixes share nothing",
        kind: Kind::Text {
            default: RedisStoreBuilder::PREFIX_DEFAULT,
            set: |config, text| {
                config.store.prefix = text.into();
                Ok(())
            },
        },
    },
    Key {
        name: "store.budget_ms",
        flag: Some("store-budget-ms"),
        value: "MS",
        doc: "The longest that a decision waits for Redis before each rule's `on_error` answers",
        kind: Kind::Number {
            default: BUDGET_MS_DEFAULT,
            min: 1,
            max: BUDGET_MS_MAX,
            set: |config, ms| config.store.budget = Duration::from_millis(ms),
        },
    },
    Key {
        name: "store.deny_cache_max",
        flag: Some("store-deny-cache-max"),
        value: "N",
        doc: "How many denied buckets are remembered, to deny again without asking Redis; 0 switches that off",
        kind: Kind::Number {
            default: DENY_CACHE_MAX_DEFAULT,
            min: 0,
            max: DENY_CACHE_MAX_MAX,
            set: |config, number| config.store.deny_cache_max = number as usize,
        },
    },
    Key {
        name: "store.on_eviction",
        flag: Some("store-on-eviction"),
        value: "POLICY",
        doc: "What to do about a Redis that may forget buckets before they are full: warn, or do not start",
        kind: Kind::Choice {
            default: "warn",
            choices: &["warn", "refuse"],
            set: |config, word| {
                let is_refused = word == "refuse";
                config.store.on_eviction =
                    if is_refused { OnEviction::Refuse } else { OnEviction::Warn };
            },
        },
    },
    Key {
        name: "store.local_share_percent",
        flag: Some("store-local-share-percent"),
        value: "PERCENT",
        doc: "How much of a quota this process grants by itself while Redis is in trouble",
        kind: Kind::Number {
            default: RedisStoreBuilder::LOCAL_SHARE_PERCENT_DEFAULT as u64,
            min: 1,
            max: 100,
            set: |config, percent| config.store.local_share_percent = percent as u8,
        },
    },
    Key {
        name: "store.tls_ca",
        flag: Some("store-tls-ca"),
        value: "FILE",
        doc: "The authorities to trust for Redis over TLS, in PEM; without it, those of the system",
        kind: Kind::Path { set: |config, path| config.store.tls.ca = path },
    },
    Key {
        name: "store.tls_certificate",
        flag: Some("store-tls-certificate"),
        value: "FILE",
        doc: "The certificate to show to Redis, in PEM",
        kind: Kind::Path { set: |config, path| config.store.tls.certificate = path },
    },
    Key {
        name: "store.tls_key",
        flag: Some("store-tls-key"),
        value: "FILE",
        doc: "The private key of that certificate, in PEM",
        kind: Kind::Path { set: |config, path| config.store.tls.key = path },
    },
    Key {
        name: "store.max_buckets",
        flag: Some("store-max-buckets"),
        value: "N",
        doc: "How many buckets this process remembers at most, at some 50 bytes each; with Redis, its stand-ins",
        kind: Kind::Number {
            default: MAX_BUCKETS_DEFAULT as u64,
            min: 1,
            max: MAX_BUCKETS_MAX as u64,
            set: |config, number| config.store.max_buckets = number as usize,
        },
    },
    Key {
        name: "store.on_full",
        flag: Some("store-on-full"),
        value: "POLICY",
        doc: "What becomes of new keys when the store is full: one bucket for all of a rule's, or denied",
        kind: Kind::Choice {
            default: "overflow",
            choices: &["overflow", "deny"],
            set: |config, word| {
                config.store.on_full = if word == "deny" { OnFull::Deny } else { OnFull::Overflow };
            },
        },
    },
    Key {
        name: "rules.source",
        flag: Some("rules-source"),
        value: "SOURCE",
        doc: "Where rules come from: `file` is the file below, or the starter rules without one",
        kind: Kind::Text {
            default: "file",
            set: |_, text| match text {
                // The latter with a note: see `Loader::check_together`.
                "file" | "database" => Ok(()),
                _ => Err(format!("`{text}` is neither `file` nor `database`")),
            },
        },
    },
    Key {
        name: "rules.file",
        flag: Some("rules"),
        value: "FILE",
        doc: "The file of rules; watched, and reloaded when it changes",
        kind: Kind::Path { set: |config, path| config.rules.file = path },
    },
    Key {
        name: "admin.token",
        flag: None,
        value: "TOKEN",
        doc: "What administration needs; required as soon as a listener is not loopback",
        kind: Kind::Secret { set: |config, secret| config.admin.token = secret },
    },
    Key {
        name: "limits.body_bytes_max",
        flag: Some("limits-body-bytes-max"),
        value: "BYTES",
        doc: "The longest body of a request; of a batch sixteen times as much",
        kind: Kind::Number {
            default: BODY_BYTES_MAX_DEFAULT,
            min: 64,
            max: BODY_BYTES_MAX_MAX,
            set: |config, number| config.limits.body_bytes_max = number as usize,
        },
    },
    Key {
        name: "limits.body_timeout_ms",
        flag: Some("limits-body-timeout-ms"),
        value: "MS",
        doc: "The longest that a body may take to arrive",
        kind: Kind::Number {
            default: ARRIVAL_MS_DEFAULT,
            min: TIMEOUT_MS_MIN,
            max: TIMEOUT_MS_MAX,
            set: |config, ms| config.limits.body_timeout = Duration::from_millis(ms),
        },
    },
    Key {
        name: "limits.batch_max",
        flag: Some("limits-batch-max"),
        value: "N",
        doc: "The most requests in one batch",
        kind: Kind::Number {
            default: 100,
            min: 1,
            max: 10_000,
            set: |config, number| config.limits.batch_max = number as usize,
        },
    },
    Key {
        name: "limits.attributes_max",
        flag: Some("limits-attributes-max"),
        value: "N",
        doc: "The most attributes of one request",
        kind: Kind::Number {
            default: 32,
            min: 1,
            max: 1024,
            set: |config, number| config.limits.attributes_max = number as usize,
        },
    },
    Key {
        name: "limits.value_bytes_max",
        flag: Some("limits-value-bytes-max"),
        value: "BYTES",
        doc: "The longest key or value of an attribute",
        kind: Kind::Number {
            default: 1024,
            min: 16,
            max: 65_536,
            set: |config, number| config.limits.value_bytes_max = number as usize,
        },
    },
    Key {
        name: "limits.connections_max",
        flag: Some("limits-connections-max"),
        value: "N",
        doc: "The most connections at once; more are closed as they come",
        kind: Kind::Number {
            default: CONNECTIONS_MAX_DEFAULT,
            min: 1,
            max: CONNECTIONS_MAX_MAX,
            set: |config, number| config.limits.connections_max = number as usize,
        },
    },
    Key {
        name: "limits.header_timeout_ms",
        flag: Some("limits-header-timeout-ms"),
        value: "MS",
        doc: "The longest that the header of a request may take to arrive",
        kind: Kind::Number {
            default: ARRIVAL_MS_DEFAULT,
            min: TIMEOUT_MS_MIN,
            max: TIMEOUT_MS_MAX,
            set: |config, ms| config.limits.header_timeout = Duration::from_millis(ms),
        },
    },
    Key {
        name: "limits.idle_timeout_ms",
        flag: Some("limits-idle-timeout-ms"),
        value: "MS",
        doc: "The longest that a connection may be quiet between requests",
        kind: Kind::Number {
            default: IDLE_MS_DEFAULT,
            min: TIMEOUT_MS_MIN,
            max: TIMEOUT_MS_MAX,
            set: |config, ms| config.limits.idle_timeout = Duration::from_millis(ms),
        },
    },
    Key {
        name: "log.format",
        flag: Some("log-format"),
        value: "FORMAT",
        doc: "The form of the log: `auto` is text on a terminal and JSON elsewhere",
        kind: Kind::Choice {
            default: "auto",
            choices: &["auto", "text", "json"],
            set: |config, word| {
                config.log.format = match word {
                    "text" => LogFormat::Text,
                    "json" => LogFormat::Json,
                    _ => LogFormat::Auto,
                };
            },
        },
    },
    Key {
        name: "log.level",
        flag: Some("log-level"),
        value: "LEVEL",
        doc: "What is logged: error, warn, info, debug, trace, or a filter as `info,tollgate_server=debug`",
        kind: Kind::Text {
            default: "info",
            set: |config, text| {
                config.log.level = log_filter(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "shutdown.grace_ms",
        flag: Some("shutdown-grace-ms"),
        value: "MS",
        doc: "How long requests are still taken at the end, after readiness is off",
        kind: Kind::Number {
            default: GRACE_MS_DEFAULT,
            min: 0,
            max: GRACE_MS_MAX,
            set: |config, ms| config.shutdown.grace = Duration::from_millis(ms),
        },
    },
];

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!("TOLLGATE_{}", name.replace('.', "_").to_ascii_uppercase())
}

impl Key {
    /// Its section and its name there.
    #[must_use]
    pub fn section_and_name(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// The environment variable that names a file with its value: where that is secret, or a part of it.
    #[must_use]
    pub fn file_variable(&self) -> Option<String> {
        let has_one = self.is_secret() || self.is_url();
        has_one.then(|| format!("{}_FILE", self.variable()))
    }

    /// Whether it is a URL, of which a part must not be shown.
    #[must_use]
    pub fn is_url(&self) -> bool {
        matches!(self.kind, Kind::Url { .. })
    }

    /// Whether its value must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret { .. })
    }

    /// Its default, as text.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.kind {
            Kind::Text { default, .. }
            | Kind::Choice { default, .. }
            | Kind::Url { default, .. } => default.into(),
            Kind::Number { default, .. } => default.to_string(),
            Kind::Path { .. } | Kind::Secret { .. } => String::new(),
        }
    }

    /// A sound value as people may see it.
    pub(super) fn shown(&self, text: &str) -> String {
        match self.kind {
            Kind::Secret { .. } if !text.is_empty() => SHOWN.into(),
            Kind::Url { .. } => StoreUrl::parse(text).map_or(SHOWN.into(), |url| url.to_string()),
            _ => text.into(),
        }
    }

    /// Sets it to a value given as text, or says what is wrong with that. A secret is never repeated.
    pub(super) fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        match self.kind {
            Kind::Text { set, .. } | Kind::Url { set, .. } => set(config, text),
            Kind::Choice { choices, set, .. } if choices.contains(&text) => {
                set(config, text);
                Ok(())
            }
            Kind::Choice { choices, .. } => {
                Err(format!("`{text}` is none of {}", choices.join(", ")))
            }
            Kind::Number { min, max, set, .. } => {
                set(config, number(text, min, max)?);
                Ok(())
            }
            Kind::Path { set } => {
                set(config, (!text.is_empty()).then(|| PathBuf::from(text)));
                Ok(())
            }
            Kind::Secret { set } => {
                set(config, secret(text)?);
                Ok(())
            }
        }
    }
}

/// A socket address; none if empty. Names are not looked up: what is listened on should not depend on
/// what somebody answers. `localhost` is the exception that everybody types.
fn address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        return Ok(Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
    }
    let wrong = || format!("`{text}` is no address and port, such as 127.0.0.1:8080 or [::1]:8080");
    text.parse().map(Some).map_err(|_| wrong())
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not from {min} to {max}"))
    }
}

/// A level, or levels of parts: `info,tollgate_server=debug`. A word alone that is no level would
/// be taken for a part, and nothing else would be logged.
fn log_filter(text: &str) -> Result<String, String> {
    let is_word = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_level = |part: &str| part.contains('=') || is_word(part);
    if text.split(',').all(is_level) && EnvFilter::try_new(text).is_ok() {
        Ok(text.into())
    } else {
        Err(format!("`{text}` is no level: try off, error, warn, info, debug or trace"))
    }
}

/// A token that can be sent in a header; none if empty.
fn secret(text: &str) -> Result<Option<Secret>, String> {
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("has more than {SECRET_BYTES_MAX} bytes"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a character other than visible ASCII".into());
    }
    Ok((!text.is_empty()).then(|| Secret::new(text)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_default_is_sound() {
        let mut config = Config::default();
        for key in KEYS {
            assert_eq!(key.set(&mut config, &key.default_text()), Ok(()), "{}", key.name);
        }
        assert_eq!(config.listen.http, Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(config.limits.body_bytes_max, 16_384);
        assert_eq!(config.limits.batch_max, 100);
        assert!(config.admin.token.is_none() && config.rules.file.is_none());
    }

    #[test]
    fn names_flags_and_variables_are_unique() {
        let distinct = |names: Vec<String>| names.iter().collect::<HashSet<_>>().len();
        assert_eq!(distinct(KEYS.iter().map(|key| key.name.into()).collect()), KEYS.len());
        assert_eq!(distinct(KEYS.iter().map(Key::variable).collect()), KEYS.len());
        let flags: Vec<_> = KEYS.iter().filter_map(|key| key.flag.map(String::from)).collect();
        assert_eq!(distinct(flags.clone()), flags.len());
        assert_eq!(KEYS[0].variable(), "TOLLGATE_LISTEN_HTTP");
    }

    #[test]
    fn addresses() {
        assert_eq!(address(""), Ok(None));
        assert_eq!(address("localhost:80"), Ok(Some("127.0.0.1:80".parse().unwrap())));
        assert_eq!(address("[::1]:0"), Ok(Some("[::1]:0".parse().unwrap())));
        for wrong in [":8080", "8080", "example.com:80", "127.0.0.1", "localhost", "localhost:x"] {
            assert!(address(wrong).unwrap_err().contains("127.0.0.1:8080"), "{wrong}");
        }
    }

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(number("5", 5, 6), Ok(5));
        for wrong in ["4", "7", "-1", "5.0", "", "0x5", "99999999999999999999999"] {
            assert!(number(wrong, 5, 6).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_are_not_taken_for_names() {
        for right in ["info", "WARN", "off", "info,tollgate_server=debug"] {
            assert_eq!(log_filter(right).as_deref(), Ok(right));
        }
        for wrong in ["verbose", "", "info,verbose", "hyper=loud", "=,="] {
            assert!(log_filter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_secret_is_not_repeated() {
        for wrong in ["canary secret", "canary\n", "canaryé"] {
            assert!(!secret(wrong).unwrap_err().contains("canary"));
        }
    }
}
