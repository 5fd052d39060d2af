//! Front doors: where they listen, whom they believe, and what they say.

use std::time::Duration;

use sluicegate::UnknownName;
use sluicegate::client_ip::ForwardedBy;
use sluicegate::headers::{Draft, Reset};

use super::TIMEOUT_MS_MAX;
use crate::config::keys::{Key, Kind, address, attribute_header, header_name, network};

/// More proxies in a row are a mistake.
const HOPS_MAX: u64 = 16;

pub(super) const KEYS: &[Key] = &[
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
                    name.parse().map_err(|error: UnknownName| format!("`{name}` {error}"))
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
];
