//! Settings of the listeners: those of all, then those of each.

use std::time::Duration;

use sluicegate::UnknownName;

use super::TIMEOUT_MS_MAX;
use super::service::CONNECTIONS_MAX_MAX;
use crate::config::keys::{Key, Kind};
use crate::config::{Address, ServedOn};

pub(super) const COMMON: &[Key] = &[
    Key {
        name: "listen.http",
        flag: Some("listen-http"),
        value: "ADDRESS",
        doc: "Address to listen on for HTTP: HOST:PORT, where port 0 takes a free port, or unix:/path?mode=0660&group=NAME; empty disables HTTP",
        kind: Kind::Text {
            default: "127.0.0.1:8080",
            set: |config, text| {
                config.listen.http.address = Address::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.grpc",
        flag: Some("listen-grpc"),
        value: "ADDRESS",
        doc: "Address to listen on for gRPC, Envoy's rate limit protocol, in the forms of listen.http; empty disables gRPC",
        kind: Kind::Text {
            default: "127.0.0.1:8081",
            set: |config, text| {
                config.listen.grpc.address = Address::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.resp",
        flag: Some("listen-resp"),
        value: "ADDRESS",
        doc: "Address to listen on for the Redis protocol, in the forms of listen.http; empty disables it",
        kind: Kind::Text {
            default: "127.0.0.1:6380",
            set: |config, text| {
                config.listen.resp.address = Address::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.admin",
        flag: Some("listen-admin"),
        value: "ADDRESS",
        doc: "Address to listen on for the administration and the page, in the forms of listen.http, which then has neither; if empty, they are on listen.http",
        kind: Kind::Text {
            default: "",
            set: |config, text| {
                config.listen.admin.address = Address::parse(text)?;
                Ok(())
            },
        },
    },
    Key {
        name: "listen.health",
        flag: Some("listen-health"),
        value: "LISTENER",
        doc: "Listener that answers /livez, /readyz, /healthz and /healthcheck, if listen.admin is set",
        kind: Kind::Choice {
            default: ServedOn::Both.name(),
            choices: &ServedOn::NAMES,
            set: |config, word| config.listen.health = word.parse().unwrap_or_default(),
        },
    },
    Key {
        name: "listen.metrics",
        flag: Some("listen-metrics"),
        value: "LISTENER",
        doc: "Listener that answers /metrics, if listen.admin is set",
        kind: Kind::Choice {
            default: ServedOn::Both.name(),
            choices: &ServedOn::NAMES,
            set: |config, word| config.listen.metrics = word.parse().unwrap_or_default(),
        },
    },
    Key {
        name: "listen.proxy_protocol",
        flag: Some("listen-proxy-protocol"),
        value: "LISTENERS",
        doc: "Listeners (http, grpc, resp, admin) on which every connection begins with a PROXY protocol header from a proxy in proxies.trusted",
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
        doc: "Certificate of every listener, in PEM, with its intermediate certificates; enables TLS, and plain connections are refused",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.certificate = path },
    },
    Key {
        name: "listen.tls_key",
        flag: Some("listen-tls-key"),
        value: "FILE",
        doc: "Private key of the certificate, in PEM",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.key = path },
    },
    Key {
        name: "listen.tls_client_ca",
        flag: Some("listen-tls-client-ca"),
        value: "FILE",
        doc: "Certificate authorities, in PEM; every client must then present a certificate that one of them issued",
        kind: Kind::Path { default: "", set: |config, path| config.listen.tls.client_ca = path },
    },
    Key {
        name: "listen.anonymous",
        flag: Some("listen-anonymous"),
        value: "BOOL",
        doc: "Requests of the data listeners without a caller are answered; with `false` only on loopback and with client certificates, while no caller exists",
        kind: Kind::Choice {
            default: "false",
            choices: &["true", "false"],
            set: |config, word| config.listen.is_anonymous_allowed = word == "true",
        },
    },
];

/// Settings of one listener, beside its address: an empty file or 0 stands for the common setting.
macro_rules! listener_keys {
    ($door:ident, $name:literal) => {
        [
            Key {
                name: concat!("listen.", $name, "_tls_certificate"),
                flag: Some(concat!("listen-", $name, "-tls-certificate")),
                value: "FILE",
                doc: concat!(
                    "Certificate of the listener ",
                    $name,
                    "; empty for listen.tls_certificate, `none` for no TLS"
                ),
                kind: Kind::FileOrNone {
                    set: |config, file| config.listen.$door.certificate = file,
                },
            },
            Key {
                name: concat!("listen.", $name, "_tls_key"),
                flag: Some(concat!("listen-", $name, "-tls-key")),
                value: "FILE",
                doc: concat!("Private key of listen.", $name, "_tls_certificate"),
                kind: Kind::FileOrNone { set: |config, file| config.listen.$door.key = file },
            },
            Key {
                name: concat!("listen.", $name, "_tls_client_ca"),
                flag: Some(concat!("listen-", $name, "-tls-client-ca")),
                value: "FILE",
                doc: concat!(
                    "Certificate authorities of clients of the listener ",
                    $name,
                    "; empty for listen.tls_client_ca, `none` to require no client certificate"
                ),
                kind: Kind::FileOrNone { set: |config, file| config.listen.$door.client_ca = file },
            },
            Key {
                name: concat!("listen.", $name, "_connections_max"),
                flag: Some(concat!("listen-", $name, "-connections-max")),
                value: "N",
                doc: concat!(
                    "Maximum number of connections of the listener ",
                    $name,
                    ", within limits.connections_max; 0 for no other limit"
                ),
                kind: Kind::Number {
                    default: 0,
                    min: 0,
                    max: CONNECTIONS_MAX_MAX,
                    set: |config, number| {
                        config.listen.$door.connections_max =
                            (number > 0).then_some(number as usize);
                    },
                },
            },
            Key {
                name: concat!("listen.", $name, "_header_timeout_ms"),
                flag: Some(concat!("listen-", $name, "-header-timeout-ms")),
                value: "MS",
                doc: concat!(
                    "Header timeout of the listener ",
                    $name,
                    "; 0 for limits.header_timeout_ms"
                ),
                kind: Kind::Number {
                    default: 0,
                    min: 0,
                    max: TIMEOUT_MS_MAX,
                    set: |config, ms| config.listen.$door.header_timeout = given(ms),
                },
            },
        ]
    };
}

/// Idle timeout of one listener. That of the Redis protocol is `resp.idle_timeout_ms`.
macro_rules! idle_timeout_key {
    ($door:ident, $name:literal) => {
        Key {
            name: concat!("listen.", $name, "_idle_timeout_ms"),
            flag: Some(concat!("listen-", $name, "-idle-timeout-ms")),
            value: "MS",
            doc: concat!("Idle timeout of the listener ", $name, "; 0 for limits.idle_timeout_ms"),
            kind: Kind::Number {
                default: 0,
                min: 0,
                max: TIMEOUT_MS_MAX,
                set: |config, ms| config.listen.$door.idle_timeout = given(ms),
            },
        }
    };
}

pub(super) const HTTP: &[Key] = &listener_keys!(http, "http");
pub(super) const GRPC: &[Key] = &listener_keys!(grpc, "grpc");
pub(super) const RESP: &[Key] = &listener_keys!(resp, "resp");
pub(super) const ADMIN: &[Key] = &listener_keys!(admin, "admin");
pub(super) const IDLE: &[Key] = &[
    idle_timeout_key!(http, "http"),
    idle_timeout_key!(grpc, "grpc"),
    idle_timeout_key!(admin, "admin"),
];

/// A timeout that is given; `None` for the common one.
fn given(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}
