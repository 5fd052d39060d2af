//! Settings of the store of buckets.

use std::time::Duration;

use sluicegate::{
    MAX_BUCKETS_DEFAULT, MAX_BUCKETS_MAX, OnEviction, OnFull, RedisStoreBuilder, parse_duration,
};

use crate::config::StoreUrl;
use crate::config::keys::{Key, Kind};

/// Milliseconds that a decision waits for Redis: half of the usual timeout of proxies.
const BUDGET_MS_DEFAULT: u64 = RedisStoreBuilder::BUDGET_DEFAULT.as_millis() as u64;
const BUDGET_MS_MAX: u64 = RedisStoreBuilder::BUDGET_MAX.as_millis() as u64;
const DENY_CACHE_MAX_DEFAULT: u64 = RedisStoreBuilder::DENY_CACHE_DEFAULT as u64;
const DENY_CACHE_MAX_MAX: u64 = RedisStoreBuilder::DENY_CACHE_MAX as u64;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "store.url",
        flag: Some("store-url"),
        value: "URL",
        doc: "Store of the buckets: `memory:` for this process, or the URL of a Redis",
        kind: Kind::Url {
            default: "memory:",
            show: |text| Some(StoreUrl::parse(text).ok()?.to_string()),
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
        doc: "Prefix of keys in Redis; services with different prefixes share no buckets",
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
        doc: "Timeout of a decision in Redis, after which each rule's `on_error` answers",
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
        doc: "Maximum size of the deny cache, which denies again without asking Redis; 0 disables it",
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
        doc: "Reaction to a Redis whose eviction policy may drop buckets before they are full: warn, or refuse to start",
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
        doc: "Share of a quota that this process grants on its own while Redis fails",
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
        doc: "Certificate authorities to trust for Redis over TLS, in PEM; empty for those of the system",
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.ca = path },
    },
    Key {
        name: "store.tls_certificate",
        flag: Some("store-tls-certificate"),
        value: "FILE",
        doc: "Client certificate for Redis, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.certificate = path },
    },
    Key {
        name: "store.tls_key",
        flag: Some("store-tls-key"),
        value: "FILE",
        doc: "Private key of the certificate, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.key = path },
    },
    Key {
        name: "store.max_buckets",
        flag: Some("store-max-buckets"),
        value: "N",
        doc: "Maximum number of buckets in this process, some 50 bytes each; with Redis, of its local fallback",
        kind: Kind::Number {
            default: MAX_BUCKETS_DEFAULT as u64,
            min: 1,
            max: MAX_BUCKETS_MAX as u64,
            set: |config, number| config.store.max_buckets = number as usize,
        },
    },
    Key {
        name: "store.take_buckets_max",
        flag: Some("store-take-buckets-max"),
        value: "N",
        doc: "Maximum number of buckets without a rule, as a part of `store.max_buckets` and below it; the others are for rules. 0 for a quarter",
        kind: Kind::Number {
            default: 0,
            min: 0,
            max: MAX_BUCKETS_MAX as u64,
            set: |config, number| {
                config.store.take_buckets_max = (number > 0).then_some(number as usize);
            },
        },
    },
    Key {
        name: "store.take_full_max",
        flag: Some("store-take-full-max"),
        value: "TIME",
        doc: "Longest time to full of a bucket without a rule, such as `12h`; quotas above it are refused, because a bucket takes room until it is full",
        kind: Kind::Text {
            default: "366d",
            set: |config, text| {
                let time = parse_duration(text).map_err(|error| format!("`{text}`: {error}"))?;
                if time.is_zero() {
                    return Err("must be above zero".into());
                }
                config.store.take_full_max = time;
                Ok(())
            },
        },
    },
    Key {
        name: "store.on_full",
        flag: Some("store-on-full"),
        value: "POLICY",
        doc: "Treatment of new keys when there is no room for their rule: one overflow bucket per rule, or denied",
        kind: Kind::Choice {
            default: "overflow",
            choices: &["overflow", "deny"],
            set: |config, word| {
                config.store.on_full = if word == "deny" { OnFull::Deny } else { OnFull::Overflow };
            },
        },
    },
];
