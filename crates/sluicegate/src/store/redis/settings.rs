//! Settings of a store: defaults, bounds and validation.

use std::time::Duration;

use thiserror::Error;

use super::key::PREFIX_BYTES_MAX;
use super::tls::TlsFiles;
use super::url::RedisUrl;
use crate::clock::ManualClock;

/// Default prefix of keys.
pub(super) const PREFIX_DEFAULT: &str = "sg";

/// Default maximum time that a decision waits for Redis.
pub(super) const BUDGET_DEFAULT: Duration = Duration::from_millis(10);
/// Shortest budget: less is no round trip.
pub(super) const BUDGET_MIN: Duration = Duration::from_micros(100);
/// Longest budget: more would block requests.
pub(super) const BUDGET_MAX: Duration = Duration::from_secs(10);

/// Default size of the deny cache.
pub(super) const DENY_CACHE_MAX_DEFAULT: usize = 65_536;
/// Maximum size of the deny cache.
pub(super) const DENY_CACHE_MAX_LIMIT: usize = 1 << 24;

/// Default share of a quota that a process grants by itself while Redis is unavailable, in percent.
pub(super) const LOCAL_SHARE_DEFAULT: u8 = 100;

/// Default maximum of local buckets while Redis is unavailable.
pub(super) const LOCAL_MAX_BUCKETS_DEFAULT: usize = 100_000;
/// Upper limit of the number of local buckets.
pub(super) const LOCAL_MAX_BUCKETS_LIMIT: usize = 1 << 28;

/// Timeout of connecting: name, socket, TLS, credentials and `INFO`.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of one sentinel, including the connection.
pub(super) const SENTINEL_TIMEOUT: Duration = Duration::from_millis(250);
/// Timeout of all sentinels together.
pub(super) const SENTINELS_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum of addresses of one name that are tried.
pub(super) const ADDRESSES_MAX: usize = 8;
/// Time before the next address is tried too.
pub(super) const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(100);

/// Idle time before the first TCP keepalive.
pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// Interval of TCP keepalives.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of TCP keepalives without a reply after which the connection is broken.
pub(super) const KEEPALIVE_RETRIES: u32 = 3;
/// Time without acknowledgement of sent data after which the connection is broken, on Linux.
#[cfg(target_os = "linux")]
pub(super) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// Maximum of commands that wait inside a connection to be written; further ones wait to get in.
pub(super) const PIPELINE_MAX: usize = 256;

const _: () = assert!(SENTINEL_TIMEOUT.as_millis() <= SENTINELS_TIMEOUT.as_millis());
const _: () = assert!(PREFIX_DEFAULT.len() <= PREFIX_BYTES_MAX);

/// Policy for a server that may evict buckets before they are full, which admits too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnEviction {
    /// Logs a warning and uses the server.
    #[default]
    Warn,
    /// Does not use the server.
    Refuse,
}

/// Settings of a store.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Address, topology and credentials.
    pub(super) url: RedisUrl,
    /// Prefix of keys.
    pub(super) prefix: String,
    /// Trusted authorities and client certificate.
    pub(super) tls: TlsFiles,
    /// Maximum time that a decision waits for Redis.
    pub(super) budget: Duration,
    /// Policy for a server that may evict buckets.
    pub(super) on_eviction: OnEviction,
    /// Size of the deny cache; zero switches it off.
    pub(super) deny_cache_max: usize,
    /// Share of a quota, in percent, that a process grants by itself while Redis is unavailable.
    pub(super) local_share_percent: u8,
    /// Maximum of local buckets while Redis is unavailable.
    pub(super) local_max_buckets: usize,
    /// Maximum of local buckets without a rule; a quarter if `None`.
    pub(super) local_take_buckets_max: Option<usize>,
    /// Clock that replaces the server's: for tests and replay.
    pub(super) clock: Option<ManualClock>,
}

/// Error of the settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The prefix is empty or too long.
    #[error("the prefix must have 1 to {PREFIX_BYTES_MAX} bytes, not {bytes}")]
    PrefixLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The prefix has a character that is not allowed. Braces would choose the slot of every key.
    #[error(
        "the prefix must consist of ASCII letters, digits, `_`, `-`, `.` and `:`, not {character:?}"
    )]
    PrefixCharacter {
        /// The first invalid character.
        character: char,
    },
    /// The budget is out of range.
    #[error("the budget must be {BUDGET_MIN:?} to {BUDGET_MAX:?}, not {budget:?}")]
    Budget {
        /// The rejected value.
        budget: Duration,
    },
    /// The deny cache is too large.
    #[error("the deny cache can have at most {DENY_CACHE_MAX_LIMIT} entries, not {entries}")]
    DenyCacheMax {
        /// The rejected value.
        entries: usize,
    },
    /// The share is out of range.
    #[error("the local share must be 1 to 100 percent, not {percent}")]
    LocalShare {
        /// The rejected value.
        percent: u8,
    },
    /// The number of local buckets is out of range.
    #[error("the number of local buckets must be 1 to {LOCAL_MAX_BUCKETS_LIMIT}, not {buckets}")]
    LocalMaxBuckets {
        /// The rejected value.
        buckets: usize,
    },
    /// TLS files with a URL without TLS: the connection would not be encrypted as intended.
    #[error("TLS files need a URL that begins with rediss")]
    TlsWithoutRediss,
}

impl Settings {
    /// The defaults, for this URL.
    pub(super) fn new(url: RedisUrl) -> Self {
        Self {
            url,
            prefix: PREFIX_DEFAULT.into(),
            tls: TlsFiles::default(),
            budget: BUDGET_DEFAULT,
            on_eviction: OnEviction::default(),
            deny_cache_max: DENY_CACHE_MAX_DEFAULT,
            local_share_percent: LOCAL_SHARE_DEFAULT,
            local_max_buckets: LOCAL_MAX_BUCKETS_DEFAULT,
            local_take_buckets_max: None,
            clock: None,
        }
    }

    /// Validates the settings. The error is the first one found; files are not read.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        check_prefix(&self.prefix)?;
        if !(BUDGET_MIN..=BUDGET_MAX).contains(&self.budget) {
            return Err(SettingsError::Budget { budget: self.budget });
        }
        if self.deny_cache_max > DENY_CACHE_MAX_LIMIT {
            return Err(SettingsError::DenyCacheMax { entries: self.deny_cache_max });
        }
        if !(1..=100).contains(&self.local_share_percent) {
            return Err(SettingsError::LocalShare { percent: self.local_share_percent });
        }
        if !(1..=LOCAL_MAX_BUCKETS_LIMIT).contains(&self.local_max_buckets) {
            return Err(SettingsError::LocalMaxBuckets { buckets: self.local_max_buckets });
        }
        if !self.url.tls() && !self.tls.is_empty() {
            return Err(SettingsError::TlsWithoutRediss);
        }
        Ok(())
    }
}

fn check_prefix(prefix: &str) -> Result<(), SettingsError> {
    if !(1..=PREFIX_BYTES_MAX).contains(&prefix.len()) {
        return Err(SettingsError::PrefixLength { bytes: prefix.len() });
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    match prefix.chars().find(|c| !fits(*c)) {
        Some(character) => Err(SettingsError::PrefixCharacter { character }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> Settings {
        Settings::new(url.parse().unwrap())
    }

    #[test]
    fn the_defaults_can_be_used() {
        assert_eq!(settings("redis://localhost").check(), Ok(()));
    }

    #[test]
    fn a_prefix_cannot_choose_the_slot_of_keys() {
        let check =
            |prefix: &str| Settings { prefix: prefix.into(), ..settings("redis://h") }.check();
        for good in ["sg", "a", "Team-1.prod:sg_2", &"p".repeat(PREFIX_BYTES_MAX)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(""), Err(SettingsError::PrefixLength { bytes: 0 }));
        assert_eq!(check(&"p".repeat(65)), Err(SettingsError::PrefixLength { bytes: 65 }));
        for bad in ['{', '}', ' ', '*', '\n', '\0', '\u{f6}', '%', '/'] {
            let expected = Err(SettingsError::PrefixCharacter { character: bad });
            assert_eq!(check(&format!("t{bad}g")), expected, "{bad:?}");
        }
    }

    #[test]
    fn numbers_out_of_bounds_are_refused() {
        let base = settings("redis://h");
        let bad = [
            Settings { budget: Duration::ZERO, ..base.clone() },
            Settings { budget: Duration::from_secs(11), ..base.clone() },
            Settings { deny_cache_max: usize::MAX, ..base.clone() },
            Settings { local_share_percent: 0, ..base.clone() },
            Settings { local_share_percent: 101, ..base.clone() },
            Settings { local_max_buckets: 0, ..base.clone() },
        ];
        for settings in bad {
            assert!(settings.check().is_err(), "{settings:?}");
        }
        assert_eq!(Settings { deny_cache_max: 0, ..base }.check(), Ok(()));
    }

    #[test]
    fn tls_files_need_a_url_with_tls() {
        let tls = TlsFiles { ca: Some("/ca.pem".into()), ..TlsFiles::default() };
        let plain = Settings { tls: tls.clone(), ..settings("redis://h") };
        assert_eq!(plain.check(), Err(SettingsError::TlsWithoutRediss));
        assert_eq!(Settings { tls, ..settings("rediss://h") }.check(), Ok(()));
    }
}
