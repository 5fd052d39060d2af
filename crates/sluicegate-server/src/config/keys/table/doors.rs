//! Settings of the protocols: trusted proxies and header fields.

use std::time::Duration;

use sluicegate::client_ip::ForwardedBy;
use sluicegate::headers::{Draft, Reset};

use super::TIMEOUT_MS_MAX;
use crate::config::keys::{Key, Kind, attribute_header, header_name, network};

/// Maximum number of proxies in a row; more are taken for a mistake.
const HOPS_MAX: u64 = 16;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "grpc.refunds",
        flag: Some("grpc-refunds"),
        value: "ON",
        doc: "Refunds by calls of Envoy's protocol (is_negative_hits) without a caller; with `on`, any client that the gRPC listener answers without one can refill any bucket",
        kind: Kind::Choice {
            default: "off",
            choices: &["on", "off"],
            set: |config, word| config.grpc.has_refunds = word == "on",
        },
    },
    Key {
        name: "resp.password",
        flag: None,
        value: "TEXT",
        doc: "Password that clients of the Redis protocol must send by AUTH or HELLO first; empty for none",
        kind: Kind::Secret { set: |config, secret| config.resp.password = secret },
    },
    Key {
        name: "resp.idle_timeout_ms",
        flag: Some("resp-idle-timeout-ms"),
        value: "MS",
        doc: "Idle timeout of a connection of the Redis protocol; 0 for none, as connection pools expect",
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
        doc: "Networks of proxies whose forwarded client addresses are trusted, such as 10.0.0.0/8; those of other peers are ignored",
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
        doc: "Number of proxies in a row, where their networks are not known: that many addresses from the right are theirs; 0 uses proxies.trusted alone",
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
        doc: "Header in which proxies forward client addresses",
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
        doc: "IPv4 addresses with the same prefix of this length are one client",
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
        doc: "IPv6 addresses with the same prefix of this length are one client, because a client usually has a whole network",
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
        doc: "Revision of the IETF draft for the RateLimit-Policy and RateLimit fields of limited answers, or none",
        kind: Kind::Choice {
            default: Draft::Ietf11.name(),
            choices: &Draft::NAMES,
            set: |config, word| {
                config.headers.draft = word.parse().unwrap_or_default();
            },
        },
    },
    Key {
        name: "headers.legacy",
        flag: Some("headers-legacy"),
        value: "WHICH",
        doc: "X-RateLimit-Limit, -Remaining and -Reset on limited answers as well",
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
        doc: "Value of X-RateLimit-Reset: seconds from now, or seconds since the Unix epoch as on GitHub",
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
        doc: "Header with the user of a request to `/v1/authorize`; your proxy must set or check it. Ignored from peers outside proxies.trusted, once that is set",
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
        doc: "Header with the plan of a request to `/v1/authorize`; your proxy must set it, or clients choose their own plan. Ignored from peers outside proxies.trusted, once that is set",
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
        doc: "Further attributes and the headers they are read from, such as tenant=x-tenant-id. Ignored from peers outside proxies.trusted, once that is set",
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
];
