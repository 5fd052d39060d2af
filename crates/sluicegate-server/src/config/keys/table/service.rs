//! Settings of the service itself: limits, log and shutdown.

use std::time::Duration;

use sluicegate::rules::{TIERS_MAX, TIERS_MAX_MAX};

use super::{TIMEOUT_MS_MAX, TIMEOUT_MS_MIN};
use crate::config::keys::{Key, Kind, log_filter};
use crate::config::{ATTRIBUTES_MAX_MAX, LogFormat};

/// Bytes in the body of one request.
const BODY_BYTES_MAX_DEFAULT: u64 = 16 * 1024;
const BODY_BYTES_MAX_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of all bodies that have not arrived completely.
const BODIES_BYTES_MAX_DEFAULT: u64 = 64 * 1024 * 1024;
const BODIES_BYTES_MAX_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Bytes of all answers over HTTP/2 that clients have not read.
const UNSENT_BYTES_MAX_DEFAULT: u64 = 64 * 1024 * 1024;
const UNSENT_BYTES_MAX_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Milliseconds for a body, and for a header, to arrive: generous for a few hundred bytes.
const ARRIVAL_MS_DEFAULT: u64 = 5_000;
/// Idle timeout in milliseconds: as long as proxies usually keep their connections.
const IDLE_MS_DEFAULT: u64 = 60_000;
/// Milliseconds between failing readiness and refusing requests, for load balancers to notice.
const GRACE_MS_DEFAULT: u64 = 100;
/// Leaves time to answer requests in flight within the five seconds of a shutdown.
const GRACE_MS_MAX: u64 = 3_000;
const CONNECTIONS_MAX_DEFAULT: u64 = 10_000;
pub(super) const CONNECTIONS_MAX_MAX: u64 = 1_000_000;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "limits.body_bytes_max",
        flag: Some("limits-body-bytes-max"),
        value: "BYTES",
        doc: "Maximum size of a request body; sixteen times as much for a batch",
        kind: Kind::Number {
            default: BODY_BYTES_MAX_DEFAULT,
            min: 64,
            max: BODY_BYTES_MAX_MAX,
            set: |config, number| config.limits.body_bytes_max = number as usize,
        },
    },
    Key {
        name: "limits.bodies_bytes_max",
        flag: Some("limits-bodies-bytes-max"),
        value: "BYTES",
        doc: "Maximum size of all request bodies together that have not arrived completely; above it, and for one network (/24, /64) above an eighth of it, such bodies are refused with 503",
        kind: Kind::Number {
            default: BODIES_BYTES_MAX_DEFAULT,
            min: BODY_BYTES_MAX_DEFAULT,
            max: BODIES_BYTES_MAX_MAX,
            set: |config, number| config.limits.bodies_bytes_max = number as usize,
        },
    },
    Key {
        name: "limits.unsent_bytes_max",
        flag: Some("limits-unsent-bytes-max"),
        value: "BYTES",
        doc: "Size of all answers over HTTP/2 together that clients have not read, above which each connection gets one large answer at a time",
        kind: Kind::Number {
            default: UNSENT_BYTES_MAX_DEFAULT,
            min: 0,
            max: UNSENT_BYTES_MAX_MAX,
            set: |config, number| config.limits.unsent_bytes_max = number as usize,
        },
    },
    Key {
        name: "limits.body_timeout_ms",
        flag: Some("limits-body-timeout-ms"),
        value: "MS",
        doc: "Timeout for a body to arrive",
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
        doc: "Maximum number of requests in a batch",
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
        doc: "Maximum number of attributes of a request",
        kind: Kind::Number {
            default: 32,
            min: 1,
            max: ATTRIBUTES_MAX_MAX as u64,
            set: |config, number| config.limits.attributes_max = number as usize,
        },
    },
    Key {
        name: "limits.tiers_max",
        flag: Some("limits-tiers-max"),
        value: "N",
        doc: "Maximum number of rules that one request may meet, shadow rules included; a request that meets more is denied",
        kind: Kind::Number {
            default: TIERS_MAX as u64,
            min: 1,
            max: TIERS_MAX_MAX as u64,
            set: |config, number| config.limits.tiers_max = number as usize,
        },
    },
    Key {
        name: "limits.value_bytes_max",
        flag: Some("limits-value-bytes-max"),
        value: "BYTES",
        doc: "Maximum length of a key or of an attribute's value",
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
        doc: "Maximum number of connections over all listeners; above 90 %, the network with the most loses its longest idle one for each new one",
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
        doc: "Timeout for the header of a request to arrive",
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
        doc: "Idle timeout of a connection between requests, and while a client does not read its answer; frames of HTTP/2 that carry no data do not count",
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
        doc: "Format of the log: `auto` is text on a terminal and JSON elsewhere",
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
        doc: "Log level: error, warn, info, debug, trace, or a filter such as `info,sluicegate_server=debug`",
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
        doc: "Time between failing readiness and refusing new requests at shutdown",
        kind: Kind::Number {
            default: GRACE_MS_DEFAULT,
            min: 0,
            max: GRACE_MS_MAX,
            set: |config, ms| config.shutdown.grace = Duration::from_millis(ms),
        },
    },
];
