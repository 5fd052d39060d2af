//! Settings of the database, the rules, the administration, the audit, the history and recent requests.

use std::time::Duration;

use super::TIMEOUT_MS_MIN;
use crate::config::keys::{Key, Kind};
use crate::config::{DatabaseUrl, Privacy, Record, RulesFrom};

/// In the folder of the embedded database.
const SNAPSHOT_DEFAULT: &str = "sluicegate.snapshot.json";
const DATABASE_MS_DEFAULT: u64 = 2_000;
const DATABASE_MS_MAX: u64 = 60_000;
/// Wrong tokens per minute and address: enough for typing errors, too few for guessing.
const FAILURES_DEFAULT: u64 = 10;
const FAILURES_MAX: u64 = 1_000_000;
/// Rows of violations per second: at most some nine million per day.
const ROWS_PER_SECOND_DEFAULT: u64 = 100;
const ROWS_PER_SECOND_MAX: u64 = 100_000;
/// Rows in memory, at some hundreds of bytes each.
const AUDIT_QUEUE_DEFAULT: u64 = 10_000;
const AUDIT_QUEUE_MAX: u64 = 1_000_000;
const RETENTION_DAYS_DEFAULT: u64 = 30;
const RETENTION_DAYS_MAX: u64 = 36_500;
const HISTORY_DAYS_DEFAULT: u64 = 365;
const HISTORY_ROWS_DEFAULT: u64 = 1_000_000;
const HISTORY_ROWS_MAX: u64 = 100_000_000;
const HISTORY_QUEUE_DEFAULT: u64 = 1_000;
const HISTORY_QUEUE_MAX: u64 = 100_000;
const RECENT_DEFAULT: u64 = 10_000;
const RECENT_MAX: u64 = 1_000_000;
const RECENT_SECONDS_DEFAULT: u64 = 300;
const RECENT_SECONDS_MAX: u64 = 3_600;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "database.url",
        flag: Some("database-url"),
        value: "URL",
        doc: "URL of the database for rules, overrides, tokens and violations: `sqlite:FILE` or `postgres://`; empty for none",
        kind: Kind::Url {
            default: "sqlite:sluicegate.db",
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
        doc: "File with a copy of the last valid rules, to start from while the database is down; empty for none",
        kind: Kind::Path {
            default: SNAPSHOT_DEFAULT,
            set: |config, path| config.database.snapshot = path,
        },
    },
    Key {
        name: "database.timeout_ms",
        flag: Some("database-timeout-ms"),
        value: "MS",
        doc: "Timeout of a database statement",
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
        doc: "Source of the rules: the database, or rules.file; naming a file implies `file`",
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
        doc: "File of rules; watched, and reloaded when it changes",
        kind: Kind::Path { default: "", set: |config, path| config.rules.file = path },
    },
    Key {
        name: "admin.token",
        flag: None,
        value: "TOKEN",
        doc: "Token for the administration, at least 16 bytes; required as soon as a listener is not on a loopback address",
        kind: Kind::Secret { set: |config, secret| config.admin.token = secret },
    },
    Key {
        name: "admin.local",
        flag: Some("admin-local"),
        value: "OPEN",
        doc: "Administration without a token from this machine while no token exists; `false` if a proxy on this machine passes requests on without saying so",
        kind: Kind::Choice {
            default: "true",
            choices: &["true", "false"],
            set: |config, word| config.admin.is_local_open = word == "true",
        },
    },
    Key {
        name: "admin.failures_per_minute",
        flag: Some("admin-failures-per-minute"),
        value: "N",
        doc: "Wrong tokens that one address may send per minute before it must wait",
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
        doc: "Violations that are recorded in the database",
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
        doc: "Form in which addresses and ids are recorded: unchanged, addresses truncated to /24 and /48, or all hashed with a key",
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
        doc: "Key of the hashes of addresses and ids, at least 16 bytes; required for `hashed`",
        kind: Kind::Secret { set: |config, secret| config.audit.privacy_key = secret },
    },
    Key {
        name: "audit.rows_per_second",
        flag: Some("audit-rows-per-second"),
        value: "N",
        doc: "Maximum rows of violations that this process writes per second, on average; rules have equal shares",
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
        doc: "Maximum rows of violations that wait in memory to be written, in equal shares of the rules; more are dropped, and counted",
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
        doc: "Days after which violations are deleted; 0 for never",
        kind: Kind::Number {
            default: RETENTION_DAYS_DEFAULT,
            min: 0,
            max: RETENTION_DAYS_MAX,
            set: |config, days| config.audit.retention_days = days as u32,
        },
    },
    Key {
        name: "history.retention_days",
        flag: Some("history-retention-days"),
        value: "DAYS",
        doc: "Days after which rows of the history are deleted; 0 for never",
        kind: Kind::Number {
            default: HISTORY_DAYS_DEFAULT,
            min: 0,
            max: RETENTION_DAYS_MAX,
            set: |config, days| config.history.retention_days = days as u32,
        },
    },
    Key {
        name: "history.rows_max",
        flag: Some("history-rows-max"),
        value: "N",
        doc: "Maximum rows of the history; the oldest are deleted. Sums of failed sign-ins and refunds have a tenth of as many besides",
        kind: Kind::Number {
            default: HISTORY_ROWS_DEFAULT,
            min: 1_000,
            max: HISTORY_ROWS_MAX,
            set: |config, rows| config.history.rows_max = rows,
        },
    },
    Key {
        name: "history.queue_max",
        flag: Some("history-queue-max"),
        value: "N",
        doc: "Maximum sums per minute of failed sign-ins and refunds that wait in memory to be written; further sources are added up together",
        kind: Kind::Number {
            default: HISTORY_QUEUE_DEFAULT,
            min: 16,
            max: HISTORY_QUEUE_MAX,
            set: |config, number| config.history.queue_max = number as usize,
        },
    },
    Key {
        name: "recent.requests_max",
        flag: Some("recent-requests-max"),
        value: "N",
        doc: "Number of recent requests that are kept for previews of rules; 0 for none",
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
        doc: "Time for which recent requests are kept at most",
        kind: Kind::Number {
            default: RECENT_SECONDS_DEFAULT,
            min: 1,
            max: RECENT_SECONDS_MAX,
            set: |config, seconds| config.recent.age_max = Duration::from_secs(seconds),
        },
    },
];
