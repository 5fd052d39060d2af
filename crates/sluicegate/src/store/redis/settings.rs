//! What a store is told: its defaults, its bounds, and what is refused.

use std::time::Duration;

use thiserror::Error;

use super::key::PREFIX_BYTES_MAX;
use super::tls::TlsFiles;
use super::url::RedisUrl;
use crate::clock::ManualClock;

/// What keys begin with.
pub(super) const PREFIX_DEFAULT: &str = "sg";

/// How long a decision waits for Redis.
pub(super) const BUDGET_DEFAULT: Duration = Duration::from_millis(10);
/// The shortest budget: less is no round trip.
pub(super) const BUDGET_MIN: Duration = Duration::from_micros(100);
/// The longest budget: more is a request that hangs.
pub(super) const BUDGET_MAX: Duration = Duration::from_secs(10);

/// How many denied buckets are remembered.
pub(super) const DENY_CACHE_MAX_DEFAULT: usize = 65_536;
/// The most denied buckets that can be remembered.
pub(super) const DENY_CACHE_MAX_LIMIT: usize = 1 << 24;

/// How much of a quota a process grants by itself while Redis is in trouble.
pub(super) const LOCAL_SHARE_DEFAULT: u8 = 100;

/// How many buckets a process keeps by itself while Redis is in trouble.
pub(super) const LOCAL_MAX_BUCKETS_DEFAULT: usize = 100_000;
/// The most buckets a process can be told to keep by itself.
pub(super) const LOCAL_MAX_BUCKETS_LIMIT: usize = 1 << 28;

/// How long a connection may take until it is ready for use: name, socket, TLS, credentials and `INFO`.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one sentinel may take, connection included.
pub(super) const SENTINEL_TIMEOUT: Duration = Duration::from_millis(250);
/// How long all sentinels together may take.
pub(super) const SENTINELS_TIMEOUT: Duration = Duration::from_secs(1);

/// How many addresses of one name are tried.
pub(super) const ADDRESSES_MAX: usize = 8;
/// How long one of them has before the next is tried, too.
pub(super) const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(100);

/// After how long a silence the system asks whether the server is still there.
pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// How long the system waits between asking again.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How often the system asks before the connection counts as broken.
pub(super) const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent data may go without acknowledgement before the connection counts as broken, on Linux.
#[cfg(target_os = "linux")]
pub(super) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// How many commands wait inside a connection for being written; the next ones wait to get in.
pub(super) const PIPELINE_MAX: usize = 256;

const _: () = assert!(SENTINEL_TIMEOUT.as_millis() <= SENTINELS_TIMEOUT.as_millis());
const _: () = assert!(PREFIX_DEFAULT.len() <= PREFIX_BYTES_MAX);

/// What to do about a server that may forget buckets before they are full, which grants too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnEviction {
    /// Warn.
    #[default]
    Warn,
    /// Do not use it.
    Refuse,
}

/// What a store is told.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Where Redis is.
    pub(super) url: RedisUrl,
    /// What keys begin with.
    pub(super) prefix: String,
    /// Whom to trust, and who we are.
    pub(super) tls: TlsFiles,
    /// How long a decision waits for Redis.
    pub(super) budget: Duration,
    /// What to do about a server that may forget buckets.
    pub(super) on_eviction: OnEviction,
    /// How many denied buckets are remembered; zero remembers none.
    pub(super) deny_cache_max: usize,
    /// How much of a quota, in percent, a process grants by itself while Redis is in trouble.
    pub(super) local_share_percent: u8,
    /// How many buckets a process keeps by itself while Redis is in trouble.
    pub(super) local_max_buckets: usize,
    /// What time decisions are made at, instead of the server's own: for tests and replay.
    pub(super) clock: Option<ManualClock>,
}

/// What is wrong with the settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The prefix is empty or too long.
    #[error("the prefix must have 1 to {PREFIX_BYTES_MAX} bytes, and has {bytes}")]
    PrefixLength {
        /// How long it is.
        bytes: usize,
    },
    /// The prefix has a character that is not allowed. Braces would choose the slot of every key.
    #[error(
        "the prefix must be of ASCII letters, digits, `_`, `-`, `.` and `:`, and has a {character:?}"
    )]
    PrefixCharacter {
        /// The first such character.
        character: char,
    },
    /// The budget is out of bounds.
    #[error("the budget must be {BUDGET_MIN:?} to {BUDGET_MAX:?}, and is {budget:?}")]
    Budget {
        /// What it is.
        budget: Duration,
    },
    /// More denied buckets than can be remembered.
    #[error("the deny cache can have at most {DENY_CACHE_MAX_LIMIT} entries, not {entries}")]
    DenyCacheMax {
        /// How many were asked for.
        entries: usize,
    },
    /// The share is out of bounds.
    #[error("the local share must be 1 to 100 percent, and is {percent}")]
    LocalShare {
        /// What it is.
        percent: u8,
    },
    /// No local buckets, or too many.
    #[error("the local buckets must be 1 to {LOCAL_MAX_BUCKETS_LIMIT}, and are {buckets}")]
    LocalMaxBuckets {
        /// How many were asked for.
        buckets: usize,
    },
    /// Files for TLS, and a URL without it: what was meant to be encrypted would not be.
    #[error("there are files for TLS, but the URL does not begin with rediss")]
    TlsWithoutRediss,
}

impl Settings {
    /// The defaults, for Redis at this place.
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
            clock: None,
        }
    }

    /// Whether they can be used. The first thing that is wrong is the error; files are not looked at.
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
