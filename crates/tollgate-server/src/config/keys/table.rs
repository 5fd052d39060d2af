//! The rows of the table.

use std::time::Duration;

use tollgate::client_ip::ForwardedBy;
use tollgate::headers::{Draft, Reset};
use tollgate::{MAX_BUCKETS_DEFAULT, MAX_BUCKETS_MAX, OnEviction, OnFull, RedisStoreBuilder};

use super::{Key, Kind, address, attribute_header, header_name, log_filter, network};
use crate::config::{DatabaseUrl, Door, LogFormat, Privacy, Record, RulesFrom, StoreUrl};

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

/// Beside the embedded database.
const SNAPSHOT_DEFAULT: &str = "tollgate.snapshot.json";
/// Milliseconds that somebody at a terminal waits without wondering.
const DATABASE_MS_DEFAULT: u64 = 2_000;
const DATABASE_MS_MAX: u64 = 60_000;
/// Wrong tokens per minute and address: more than somebody who types, less than somebody who guesses.
const FAILURES_DEFAULT: u64 = 10;
const FAILURES_MAX: u64 = 1_000_000;
/// Rows of violations per second: some nine million in a day at the very worst.
const ROWS_PER_SECOND_DEFAULT: u64 = 100;
const ROWS_PER_SECOND_MAX: u64 = 100_000;
/// Rows in memory, at some hundreds of bytes each.
const AUDIT_QUEUE_DEFAULT: u64 = 10_000;
const AUDIT_QUEUE_MAX: u64 = 1_000_000;
const RETENTION_DAYS_DEFAULT: u64 = 30;
const RETENTION_DAYS_MAX: u64 = 36_500;
const RECENT_DEFAULT: u64 = 10_000;
const RECENT_MAX: u64 = 1_000_000;
const RECENT_SECONDS_DEFAULT: u64 = 300;
const RECENT_SECONDS_MAX: u64 = 3_600;

/// More proxies in a row are a mistake.
const HOPS_MAX: u64 = 16;

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
        name: "listen.grpc",
        flag: Some("listen-grpc"),
        value: "ADDRESS",
        doc: "Where to listen for gRPC, that is, Envoy's rate limit protocol; empty switches it off",
        kind: Kind::Text {
            default: "127.0.0.1:8081",
            set: |config, text| {
                config.listen.grpc = address(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.resp",
        flag: Some("listen-resp"),
        value: "ADDRESS",
        doc: "Where to listen for the Redis protocol; empty switches it off",
        kind: Kind::Text {
            default: "127.0.0.1:6380",
            set: |config, text| {
                config.listen.resp = address(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.proxy_protocol",
        flag: Some("listen-proxy-protocol"),
        value: "LISTENERS",
        doc: "The listeners, of http, grpc and resp, where every connection begins with a header of the PROXY protocol, from a proxy in proxies.trusted",
        kind: Kind::List {
            set: |config, members| {
                let door = |name: &&str| {
                    let door = Door::ALL.into_iter().find(|door| door.name() == *name);
                    door.ok_or_else(|| format!("`{name}` is none of http, grpc, resp"))
                };
                config.listen.proxied = members.iter().map(door).collect::<Result<_, _>>()?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.tls_certificate",
        flag: Some("listen-tls-certificate"),
        value: "FILE",
        doc: "The certificate of every listener, in PEM, with those that lead to its authority; with it, only TLS is spoken",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.certificate = path },
    },
    Key {
        name: "listen.tls_key",
        flag: Some("listen-tls-key"),
        value: "FILE",
        doc: "The private key of that certificate, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.key = path },
    },
    Key {
        name: "listen.tls_client_ca",
        flag: Some("listen-tls-client-ca"),
        value: "FILE",
        doc: "The authorities, in PEM, of which every client must show a certificate",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.client_ca = path },
    },
    Key {
        name: "grpc.refunds",
        flag: Some("grpc-refunds"),
        value: "WHETHER",
        doc: "Whether calls over gRPC may give tokens back (is_negative_hits), which whoever reaches the listener then can, without a token",
        kind: Kind::Choice {
            default: "on",
            choices: &["on", "off"],
            set: |config, word| config.grpc.has_refunds = word != "off",
        },
    },
    Key {
        name: "resp.password",
        flag: None,
        value: "TEXT",
        doc: "What clients of the Redis protocol must show by AUTH or HELLO before anything else; empty for nothing",
        kind: Kind::Secret { set: |config, secret| config.resp.password = secret },
    },
    Key {
        name: "resp.idle_timeout_ms",
        flag: Some("resp-idle-timeout-ms"),
        value: "MS",
        doc: "The longest that a connection of the Redis protocol may be quiet; 0 for as long as it likes, as clients keep them open for later",
        kind: Kind::Number {
            default: 0,
            min: 0,
            max: TIMEOUT_MS_MAX,
            set: |config, ms| {
                config.resp.idle_timeout = (ms > 0).then(|| Duration::from_millis(ms));
            },
        },
    },
    Key {
        name: "proxies.trusted",
        flag: Some("proxies-trusted"),
        value: "NETWORKS",
        doc: "The networks of proxies that are believed about whom they speak for, such as 10.0.0.0/8; nobody else is",
        kind: Kind::List {
            set: |config, members| {
                config.proxies.trusted =
                    members.iter().map(|member| network(member)).collect::<Result<_, _>>()?;
                Ok(())
            },
        },
    },
    Key {
        name: "proxies.hops",
        flag: Some("proxies-hops"),
        value: "N",
        doc: "How many proxies there are in a row, where their networks are not known: so many addresses from the right are theirs; 0 goes by proxies.trusted alone",
        kind: Kind::Number {
            default: 0,
            min: 0,
            max: HOPS_MAX,
            set: |config, number| config.proxies.hops = number as u8,
        },
    },
    Key {
        name: "proxies.header",
        flag: Some("proxies-header"),
        value: "HEADER",
        doc: "The header that proxies write clients' addresses to",
        kind: Kind::Choice {
            default: "x-forwarded-for",
            choices: &["x-forwarded-for", "forwarded", "x-real-ip"],
            set: |config, word| {
                config.proxies.header = match word {
                    "forwarded" => ForwardedBy::Forwarded,
                    "x-real-ip" => ForwardedBy::XRealIp,
                    _ => ForwardedBy::XForwardedFor,
                };
            },
        },
    },
    Key {
        name: "proxies.ipv4_prefix",
        flag: Some("proxies-ipv4-prefix"),
        value: "BITS",
        doc: "IPv4 addresses that share so many bits are one client",
        kind: Kind::Number {
            default: 32,
            min: 1,
            max: 32,
            set: |config, number| config.proxies.ipv4_prefix = number as u8,
        },
    },
    Key {
        name: "proxies.ipv6_prefix",
        flag: Some("proxies-ipv6-prefix"),
        value: "BITS",
        doc: "IPv6 addresses that share so many bits are one client: everybody has a whole network of them",
        kind: Kind::Number {
            default: 64,
            min: 1,
            max: 128,
            set: |config, number| config.proxies.ipv6_prefix = number as u8,
        },
    },
    Key {
        name: "headers.draft",
        flag: Some("headers-draft"),
        value: "REVISION",
        doc: "The revision of the IETF's draft whose RateLimit-Policy and RateLimit fields limited answers have, or none",
        kind: Kind::Choice {
            default: Draft::Ietf11.name(),
            choices: &[Draft::Ietf11.name(), Draft::Off.name()],
            set: |config, word| {
                config.headers.draft = Draft::from_name(word).unwrap_or_default();
            },
        },
    },
    Key {
        name: "headers.legacy",
        flag: Some("headers-legacy"),
        value: "WHICH",
        doc: "Whether limited answers have X-RateLimit-Limit, -Remaining and -Reset as well",
        kind: Kind::Choice {
            default: "x-ratelimit",
            choices: &["x-ratelimit", "off"],
            set: |config, word| config.headers.has_legacy = word != "off",
        },
    },
    Key {
        name: "headers.legacy_reset",
        flag: Some("headers-legacy-reset"),
        value: "FORM",
        doc: "What X-RateLimit-Reset is: seconds from now, or seconds since the Unix epoch as GitHub has it",
        kind: Kind::Choice {
            default: "delta",
            choices: &["delta", "epoch"],
            set: |config, word| {
                config.headers.legacy_reset =
                    if word == "epoch" { Reset::Epoch } else { Reset::Delta };
            },
        },
    },
    Key {
        name: "authorize.user_header",
        flag: Some("authorize-user-header"),
        value: "HEADER",
        doc: "The header that says whose request `/v1/authorize` is asked about; your proxy must set or check it",
        kind: Kind::Text {
            default: "",
            set: |config, text| {
                config.authorize.user_header = header_name(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "authorize.plan_header",
        flag: Some("authorize-plan-header"),
        value: "HEADER",
        doc: "The header that says under which plan; your proxy must set it, or clients choose their own",
        kind: Kind::Text {
            default: "",
            set: |config, text| {
                config.authorize.plan_header = header_name(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "authorize.attribute_headers",
        flag: Some("authorize-attribute-headers"),
        value: "LIST",
        doc: "Other attributes and their headers, such as tenant=x-tenant-id",
        kind: Kind::List {
            set: |config, members| {
                config.authorize.attribute_headers = members
                    .iter()
                    .map(|member| attribute_header(member))
                    .collect::<Result<_, _>>()?;
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
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.ca = path },
    },
    Key {
        name: "store.tls_certificate",
        flag: Some("store-tls-certificate"),
        value: "FILE",
        doc: "The certificate to show to Redis, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.certificate = path },
    },
    Key {
        name: "store.tls_key",
        flag: Some("store-tls-key"),
        value: "FILE",
        doc: "The private key of that certificate, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.store.tls.key = path },
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
        name: "database.url",
        flag: Some("database-url"),
        value: "URL",
        doc: "Where rules, overrides, tokens and violations are kept: `sqlite:FILE` or `postgres://`; empty for nowhere",
        kind: Kind::Url {
            default: "sqlite:tollgate.db",
            show: |text| {
                DatabaseUrl::parse(text)
                    .ok()
                    .map(|url| url.map_or_else(String::new, |url| url.to_string()))
            },
            set: |config, text| {
                config.database.url = DatabaseUrl::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "database.snapshot",
        flag: Some("database-snapshot"),
        value: "FILE",
        doc: "Where the last good rules are written, to start from while the database is down; empty for nowhere",
        kind: Kind::Path {
            default: SNAPSHOT_DEFAULT,
            set: |config, path| config.database.snapshot = path,
        },
    },
    Key {
        name: "database.timeout_ms",
        flag: Some("database-timeout-ms"),
        value: "MS",
        doc: "The longest that a call to the administration waits for the database",
        kind: Kind::Number {
            default: DATABASE_MS_DEFAULT,
            min: TIMEOUT_MS_MIN,
            max: DATABASE_MS_MAX,
            set: |config, ms| config.database.timeout = Duration::from_millis(ms),
        },
    },
    Key {
        name: "rules.source",
        flag: Some("rules-source"),
        value: "SOURCE",
        doc: "Where rules come from: the database, or the file below, which needs no mention here",
        kind: Kind::Choice {
            default: "database",
            choices: &["database", "file"],
            set: |config, word| {
                config.rules.source =
                    if word == "file" { RulesFrom::File } else { RulesFrom::Database };
            },
        },
    },
    Key {
        name: "rules.file",
        flag: Some("rules"),
        value: "FILE",
        doc: "The file of rules; watched, and reloaded when it changes",
        kind: Kind::Path { default: "", set: |config, path| config.rules.file = path },
    },
    Key {
        name: "admin.token",
        flag: None,
        value: "TOKEN",
        doc: "What administration needs; required as soon as a listener is not loopback",
        kind: Kind::Secret { set: |config, secret| config.admin.token = secret },
    },
    Key {
        name: "admin.failures_per_minute",
        flag: Some("admin-failures-per-minute"),
        value: "N",
        doc: "How many wrong tokens one address may show in a minute before it must wait",
        kind: Kind::Number {
            default: FAILURES_DEFAULT,
            min: 1,
            max: FAILURES_MAX,
            set: |config, number| config.admin.failures_per_minute = number,
        },
    },
    Key {
        name: "audit.record",
        flag: Some("audit-record"),
        value: "WHAT",
        doc: "Which violations are recorded in the database",
        kind: Kind::Choice {
            default: "all",
            choices: &["all", "enforced", "none"],
            set: |config, word| {
                config.audit.record = match word {
                    "enforced" => Record::Enforced,
                    "none" => Record::Nothing,
                    _ => Record::All,
                };
            },
        },
    },
    Key {
        name: "audit.privacy",
        flag: Some("audit-privacy"),
        value: "HOW",
        doc: "How addresses and ids are recorded: as they are, addresses cut to /24 and /48, or all hashed with a key",
        kind: Kind::Choice {
            default: "raw",
            choices: &["raw", "truncated", "hashed"],
            set: |config, word| {
                config.audit.privacy = match word {
                    "truncated" => Privacy::Truncated,
                    "hashed" => Privacy::Hashed,
                    _ => Privacy::Raw,
                };
            },
        },
    },
    Key {
        name: "audit.privacy_key",
        flag: None,
        value: "KEY",
        doc: "What addresses and ids are hashed with, at least 16 bytes; needed for `hashed`",
        kind: Kind::Secret { set: |config, secret| config.audit.privacy_key = secret },
    },
    Key {
        name: "audit.rows_per_second",
        flag: Some("audit-rows-per-second"),
        value: "N",
        doc: "The most rows of violations that this process writes in a second, on average",
        kind: Kind::Number {
            default: ROWS_PER_SECOND_DEFAULT,
            min: 1,
            max: ROWS_PER_SECOND_MAX,
            set: |config, number| config.audit.rows_per_second = number as usize,
        },
    },
    Key {
        name: "audit.queue_max",
        flag: Some("audit-queue-max"),
        value: "N",
        doc: "The most rows of violations that wait in memory to be written; more are dropped, and counted",
        kind: Kind::Number {
            default: AUDIT_QUEUE_DEFAULT,
            min: 16,
            max: AUDIT_QUEUE_MAX,
            set: |config, number| config.audit.queue_max = number as usize,
        },
    },
    Key {
        name: "audit.retention_days",
        flag: Some("audit-retention-days"),
        value: "DAYS",
        doc: "How long violations are kept; 0 for ever",
        kind: Kind::Number {
            default: RETENTION_DAYS_DEFAULT,
            min: 0,
            max: RETENTION_DAYS_MAX,
            set: |config, days| config.audit.retention_days = days as u32,
        },
    },
    Key {
        name: "recent.requests_max",
        flag: Some("recent-requests-max"),
        value: "N",
        doc: "How many of the last requests are remembered to try a rule on; 0 switches that off",
        kind: Kind::Number {
            default: RECENT_DEFAULT,
            min: 0,
            max: RECENT_MAX,
            set: |config, number| config.recent.requests_max = number as usize,
        },
    },
    Key {
        name: "recent.seconds_max",
        flag: Some("recent-seconds-max"),
        value: "SECONDS",
        doc: "How long they are remembered at most",
        kind: Kind::Number {
            default: RECENT_SECONDS_DEFAULT,
            min: 1,
            max: RECENT_SECONDS_MAX,
            set: |config, seconds| config.recent.age_max = Duration::from_secs(seconds),
        },
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
        doc: "The most connections at once, over all listeners; more are closed as they come",
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
