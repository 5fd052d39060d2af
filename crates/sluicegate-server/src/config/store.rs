//! `[store]`: the store of buckets.

use std::fmt;
use std::fs::File;
use std::time::Duration;

use sluicegate::{
    MemoryStore, OnEviction, OnFull, RedisStoreBuilder, RedisUrl, RedisUrlError, SettingsError,
    TlsFiles,
};

use super::load::reason;

/// `[store]`. Settings of Redis have no effect in memory.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// Memory or Redis.
    pub url: StoreUrl,
    /// Prefix of keys in Redis.
    pub prefix: String,
    /// Timeout of a decision in Redis.
    pub budget: Duration,
    /// Maximum size of the deny cache; 0 disables it.
    pub deny_cache_max: usize,
    /// Reaction to a Redis that may evict buckets.
    pub on_eviction: OnEviction,
    /// Share of a quota that this process grants on its own while Redis fails.
    pub local_share_percent: u8,
    /// Files for TLS.
    pub tls: TlsFiles,
    /// Maximum number of buckets in this process.
    pub max_buckets: usize,
    /// Maximum number of buckets without a rule among them; a quarter if absent.
    pub take_buckets_max: Option<usize>,
    /// Longest time to full of a bucket without a rule.
    pub take_full_max: Duration,
    /// Treatment of new keys when the memory store is full.
    pub on_full: OnFull,
}

/// URL of the store. Printing it never shows a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreUrl {
    /// In this process.
    #[default]
    Memory,
    /// In Redis.
    Redis(RedisUrl),
}

impl StoreUrl {
    /// Parses a URL. The error never repeats it: it may hold a password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        text.parse().map(Self::Redis).map_err(|error: RedisUrlError| match error {
            RedisUrlError::Scheme => format!("{error}, or be `memory:`"),
            _ => error.to_string(),
        })
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Redis(url) => url.fmt(f),
        }
    }
}

impl Store {
    /// Builder of the Redis store, if the URL names one.
    pub(crate) fn redis(&self) -> Option<RedisStoreBuilder> {
        let StoreUrl::Redis(url) = &self.url else { return None };
        let builder = RedisStoreBuilder::from(url.clone())
            .prefix(&self.prefix)
            .tls(self.tls.clone())
            .budget(self.budget)
            .on_eviction(self.on_eviction)
            .deny_cache_max(self.deny_cache_max)
            .local_share_percent(self.local_share_percent)
            .local_max_buckets(self.max_buckets);
        let builder = match self.take_buckets_max {
            Some(take_buckets_max) => builder.local_take_buckets_max(take_buckets_max),
            None => builder,
        };
        Some(builder)
    }

    /// The memory store of these settings.
    pub(crate) fn memory(&self) -> MemoryStore {
        let builder = MemoryStore::builder().max_buckets(self.max_buckets).on_full(self.on_full);
        match self.take_buckets_max {
            Some(take_buckets_max) => builder.take_buckets_max(take_buckets_max).build(),
            None => builder.build(),
        }
    }

    /// Checks these settings against each other. The error names the key at fault.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(take) = self.take_buckets_max.filter(|take| *take >= self.max_buckets) {
            let all = self.max_buckets;
            let why =
                format!("{take} leaves rules no room; must be below `store.max_buckets`, {all}");
            return Err(("store.take_buckets_max", why));
        }
        let Some(redis) = self.redis() else { return Ok(()) };
        let tls = &self.tls;
        if tls.certificate.is_some() != tls.key.is_some() {
            let (key, other) = match tls.key {
                Some(_) => ("store.tls_key", "store.tls_certificate"),
                None => ("store.tls_certificate", "store.tls_key"),
            };
            return Err((key, format!("`{key}` needs `{other}` as well")));
        }
        redis.check().map_err(|error| (to_blame(&error), error.to_string()))?;
        let files = [
            ("store.tls_ca", &tls.ca),
            ("store.tls_certificate", &tls.certificate),
            ("store.tls_key", &tls.key),
        ];
        for (key, path) in files {
            if let Some(path) = path
                && let Err(error) = File::open(path)
            {
                return Err((key, format!("cannot read {}: {}", path.display(), reason(&error))));
            }
        }
        Ok(())
    }
}

/// The key at fault.
fn to_blame(error: &SettingsError) -> &'static str {
    match error {
        SettingsError::PrefixLength { .. } | SettingsError::PrefixCharacter { .. } => {
            "store.prefix"
        }
        SettingsError::Budget { .. } => "store.budget_ms",
        SettingsError::DenyCacheMax { .. } => "store.deny_cache_max",
        SettingsError::LocalShare { .. } => "store.local_share_percent",
        SettingsError::LocalMaxBuckets { .. } => "store.max_buckets",
        _ => "store.url",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_shows_no_password_be_it_right_or_wrong() {
        let right = StoreUrl::parse("redis://me:canary@host/1").unwrap();
        assert_eq!(right.to_string(), "redis://me:***@host:6379/1");
        assert!(!format!("{right:?}").contains("canary"));
        for wrong in ["", "canary", "canary://host", "redis://me:can@ary@host", "redis:canary"] {
            let error = StoreUrl::parse(wrong).unwrap_err();
            assert!(!error.contains("canary"), "{error}");
        }
        let error = StoreUrl::parse("memroy:").unwrap_err();
        assert!(error.contains("redis+sentinel://") && error.ends_with("or be `memory:`"));
    }

    #[test]
    fn buckets_without_a_rule_leave_room_for_rules() {
        let store = |max_buckets, take| Store {
            max_buckets,
            take_buckets_max: Some(take),
            ..Store::default()
        };
        assert_eq!(store(100, 99).check(), Ok(()));
        for (max_buckets, take) in [(100, 100), (100, 101), (1, 1)] {
            let (key, why) = store(max_buckets, take).check().unwrap_err();
            assert_eq!(key, "store.take_buckets_max");
            assert!(why.contains("must be below `store.max_buckets`"), "{why}");
        }
    }

    #[test]
    fn the_key_to_blame_is_named() {
        let store = |url: &str| Store {
            url: StoreUrl::parse(url).unwrap(),
            prefix: "sg".into(),
            budget: Duration::from_millis(10),
            local_share_percent: 100,
            max_buckets: 1,
            ..Store::default()
        };
        assert_eq!(store("redis://h").check(), Ok(()));
        let blamed = |store: Store| store.check().unwrap_err().0;
        assert_eq!(blamed(Store { prefix: "{x}".into(), ..store("redis://h") }), "store.prefix");
        let too_many = Store { max_buckets: usize::MAX, ..store("redis://h") };
        assert_eq!(blamed(too_many), "store.max_buckets");
        let key = TlsFiles { key: Some("key.pem".into()), ..TlsFiles::default() };
        assert_eq!(blamed(Store { tls: key, ..store("rediss://h") }), "store.tls_key");
        let ca = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
        assert_eq!(blamed(Store { tls: ca.clone(), ..store("redis://h") }), "store.url");
        assert_eq!(Store { tls: ca, prefix: String::new(), ..store("memory:") }.check(), Ok(()));
    }
}
