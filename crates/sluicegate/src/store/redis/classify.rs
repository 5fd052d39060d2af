//! Classification of redis-rs errors: a kind of store error, or a redirection that is followed at once.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerError};

use super::key::SLOTS;
use super::trouble::{Trouble, TroubleKind};
use crate::compat::floor_char_boundary;

/// Maximum length of a server's text in our messages.
const DETAIL_BYTES_MAX: usize = 256;

/// Text after which a server repeats the arguments of an unknown command: with `AUTH`, a password.
const ECHO: &str = ", with args beginning with";

/// Codes that reject every command of a connection. `DENIED` is that of protected mode: remote connections
/// need a password.
const LOCKED_OUT: [&str; 3] = ["NOAUTH", "WRONGPASS", "DENIED"];

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// Store error, for the policy and the breaker.
    Trouble(Trouble),
    /// The slot is served by another node from now on. The address is for
    /// [`Address::redirected`](super::url::Address::redirected).
    Moved { slot: u16, address: String },
    /// The slot is migrating: this call is sent there once, after `ASKING`.
    Ask { slot: u16, address: String },
    /// Some keys of the call have migrated with the slot, and some not yet: retry soon.
    TryAgain,
    /// The script is not loaded: load it, and retry.
    NoScript,
}

impl CallError {
    /// Converts the error where it cannot be handled by a retry.
    pub(super) fn into_trouble(self) -> Trouble {
        let unexpected = |text: String| Trouble::new(TroubleKind::Unexpected, text);
        match self {
            Self::Trouble(trouble) => trouble,
            Self::Moved { slot, .. } => unexpected(format!("slot {slot} has moved")),
            Self::Ask { slot, .. } => unexpected(format!("slot {slot} is moving")),
            Self::TryAgain => {
                Trouble::new(TroubleKind::ClusterDown, "a slot of these keys is migrating")
            }
            Self::NoScript => unexpected("the script is not loaded".into()),
        }
    }
}

/// Classifies an error. The text never contains arguments that we sent.
pub(super) fn classify(error: &RedisError) -> CallError {
    // The first error of a pipeline counts: the others mostly follow from it.
    let servers = error.clone().into_server_errors();
    if let Some((_, server)) = servers.as_deref().and_then(<[_]>::first) {
        return classify_server(server);
    }
    // A server reports a refused client certificate only after the handshake.
    if let Some(text) = io_error(error).and_then(tls_text) {
        return trouble(TroubleKind::Tls, &text);
    }
    match error.kind() {
        ErrorKind::Io => trouble(TroubleKind::Connection, error),
        ErrorKind::AuthenticationFailed => trouble(TroubleKind::Auth, error),
        ErrorKind::Parse => trouble(
            TroubleKind::Unexpected,
            // The text of redis-rs begins with a name of its own for this.
            &format_args!("malformed reply: {}", error.detail().unwrap_or("")),
        ),
        _ => trouble(TroubleKind::Unexpected, error),
    }
}

/// Classifies an error reply of the server.
pub(super) fn classify_server(error: &ServerError) -> CallError {
    classify_code(error.code(), error.details().unwrap_or(""))
}

fn classify_code(code: &str, detail: &str) -> CallError {
    let kind = match code {
        "NOSCRIPT" => return CallError::NoScript,
        "TRYAGAIN" => return CallError::TryAgain,
        "MOVED" | "ASK" => return redirection(code, detail),
        "LOADING" => TroubleKind::Loading,
        "CLUSTERDOWN" => TroubleKind::ClusterDown,
        // The server takes no writes, and no other command helps: a replica; too few replicas; a replica that
        // has lost its master; a server that cannot save to disk.
        "READONLY" | "NOREPLICAS" | "MASTERDOWN" | "MISCONF" => TroubleKind::ReadOnly,
        "OOM" => TroubleKind::OutOfMemory,
        "NOPERM" => TroubleKind::Auth,
        code if LOCKED_OUT.contains(&code) => TroubleKind::Auth,
        "BUSY" => TroubleKind::Busy,
        "ERR" => return classify_general(detail),
        _ => TroubleKind::Unexpected,
    };
    trouble(kind, &format_args!("{code} {detail}"))
}

/// Does the error reject every command on this connection? Other `Auth` errors concern one call: the user
/// lacks a permission for a command or a key, and may have those of other calls.
pub(super) fn is_locked_out(answer: &Trouble) -> bool {
    let code = answer.detail().split(' ').next().unwrap_or("");
    answer.kind() == TroubleKind::Auth && LOCKED_OUT.contains(&code)
}

/// Classifies an error reply with the generic code `ERR`.
fn classify_general(detail: &str) -> CallError {
    if let Some((code, detail)) = code_in_script(detail) {
        return classify_code(code, detail);
    }
    let kind = if detail.starts_with("max number of clients") {
        TroubleKind::Connection
    } else if detail.contains("ACL failure in script")
        || detail.contains("The user executing the script can't")
    {
        TroubleKind::Auth
    } else {
        TroubleKind::Unexpected
    };
    trouble(kind, &format_args!("ERR {detail}"))
}

/// The code of an error inside a script, which servers before 7.0 put into the text: `Error running script
/// (call to f_6b1b...): @user_script:1: @user_script: 1: -OOM command not allowed ...`.
fn code_in_script(detail: &str) -> Option<(&str, &str)> {
    if !detail.starts_with("Error running script") {
        return None;
    }
    let (_, error) = detail.split_once(": -")?;
    let (code, detail) = error.split_once(' ')?;
    let is_code = code != "ERR" && code.bytes().all(|byte| byte.is_ascii_uppercase());
    is_code.then_some((code, detail))
}

/// Parses a redirection such as `MOVED 3999 127.0.0.1:6381`.
fn redirection(code: &str, detail: &str) -> CallError {
    let mut words = detail.split_ascii_whitespace();
    let slot = words.next().and_then(|slot| slot.parse().ok()).filter(|slot| *slot < SLOTS);
    match (slot, words.next()) {
        (Some(slot), Some(address)) if address.len() <= DETAIL_BYTES_MAX => {
            let address = address.into();
            match code {
                "ASK" => CallError::Ask { slot, address },
                _ => CallError::Moved { slot, address },
            }
        }
        _ => trouble(TroubleKind::Unexpected, &format_args!("{code} {detail}")),
    }
}

fn trouble(kind: TroubleKind, text: &dyn fmt::Display) -> CallError {
    CallError::Trouble(Trouble::new(kind, tidy(&text.to_string())))
}

/// Sanitizes a foreign text: one line, bounded length, and without arguments that we sent.
pub(super) fn tidy(text: &str) -> String {
    let text = text.split(ECHO).next().unwrap_or("").trim();
    let end = floor_char_boundary(text, DETAIL_BYTES_MAX);
    text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Text of a TLS error; `None` if the error is not one of TLS.
pub(super) fn tls_text(error: &io::Error) -> Option<Cow<'static, str>> {
    let tls = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match tls {
        rustls::Error::InvalidMessage(_) => "the server does not reply in TLS".into(),
        other => other.to_string().into(),
    })
}

/// The I/O error inside an error of redis-rs, which keeps it behind an `Arc`.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let cause = error.source()?.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    cause.downcast_ref()
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    /// The error that redis-rs makes of an error line of the server.
    fn server(line: &str) -> RedisError {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    fn kind(line: &str) -> TroubleKind {
        match classify(&server(line)) {
            CallError::Trouble(trouble) => {
                assert!(!trouble.detail().is_empty());
                trouble.kind()
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_error_of_a_server_has_its_kind() {
        use TroubleKind as K;
        let cases = [
            ("LOADING Redis is loading the dataset in memory", K::Loading),
            ("CLUSTERDOWN Hash slot not served", K::ClusterDown),
            ("CLUSTERDOWN The cluster is down", K::ClusterDown),
            ("READONLY You can't write against a read only replica.", K::ReadOnly),
            ("NOREPLICAS Not enough good replicas to write.", K::ReadOnly),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'.",
                K::ReadOnly,
            ),
            ("MISCONF Redis is configured to save RDB snapshots, but it's unable to", K::ReadOnly),
            ("OOM command not allowed when used memory > 'maxmemory'.", K::OutOfMemory),
            ("NOAUTH Authentication required.", K::Auth),
            ("NOPERM this user has no permissions to run the 'evalsha' command", K::Auth),
            ("WRONGPASS invalid username-password pair or user is disabled.", K::Auth),
            ("DENIED Redis is running in protected mode", K::Auth),
            (
                "ERR ACL failure in script: User x has no permissions to run the 'get' command",
                K::Auth,
            ),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", K::Busy),
            ("BUSYKEY Target key name already exists.", K::Unexpected),
            ("CROSSSLOT Keys in request don't hash to the same slot", K::Unexpected),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", K::Unexpected),
            ("ERR max number of clients reached", K::Connection),
            ("ERR max number of clients + cluster connections reached", K::Connection),
            ("ERR unknown command 'EVALSHA'", K::Unexpected),
            ("ERR", K::Unexpected),
            ("NOVELTY", K::Unexpected),
        ];
        for (line, expected) in cases {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn errors_inside_of_a_script_have_their_kind_before_7_too() {
        let line = |error| {
            format!(
                "ERR Error running script (call to f_6b1b): @user_script:1: @user_script: 1: {error}"
            )
        };
        assert_eq!(kind(&line("-OOM command not allowed")), TroubleKind::OutOfMemory);
        assert_eq!(kind(&line("-READONLY You can't write")), TroubleKind::ReadOnly);
        assert_eq!(kind(&line("-MISCONF Redis is configured")), TroubleKind::ReadOnly);
        assert_eq!(kind(&line("-ERR something")), TroubleKind::Unexpected);
        assert_eq!(
            kind(&line("The user executing the script can't run this command or subcommand")),
            TroubleKind::Auth
        );
        assert_eq!(kind(&line("attempt to index a nil value")), TroubleKind::Unexpected);
    }

    #[test]
    fn refused_credentials_differ_from_a_missing_permission() {
        let is_out = |line: &str| is_locked_out(&classify(&server(line)).into_trouble());
        for line in ["NOAUTH Authentication required.", "WRONGPASS invalid", "DENIED Redis is"] {
            assert!(is_out(line), "{line}");
        }
        let in_script =
            "ERR Error running script (call to f_6b1b): @user_script:1: @user_script: 1: ";
        for line in [
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "NOPERM No permissions to access a key script: 6b1b, on @user_script:1.",
            "ERR ACL failure in script: User x has no permissions to run the 'zadd' command",
            &format!(
                "{in_script}The user executing the script can't run this command or subcommand"
            ),
            &format!("{in_script}-NOPERM this user has no permissions"),
            "OOM command not allowed",
        ] {
            assert!(!is_out(line), "{line}");
        }
    }

    #[test]
    fn redirections_and_retries_are_recognized() {
        assert_eq!(classify(&server("NOSCRIPT No matching script.")), CallError::NoScript);
        assert_eq!(classify(&server("TRYAGAIN Multiple keys request")), CallError::TryAgain);
        let moved = |address: &str| CallError::Moved { slot: 3999, address: address.into() };
        assert_eq!(classify(&server("MOVED 3999 127.0.0.1:6381")), moved("127.0.0.1:6381"));
        assert_eq!(classify(&server("MOVED 3999 :6380")), moved(":6380"));
        assert_eq!(
            classify(&server("ASK 0 [::1]:6381")),
            CallError::Ask { slot: 0, address: "[::1]:6381".into() }
        );
        for bad in ["MOVED", "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1", "ASK -1 h:1"] {
            assert_eq!(kind(bad), TroubleKind::Unexpected, "{bad}");
        }
    }

    #[test]
    fn broken_connections_and_tls_errors_are_distinguished() {
        let of = |error: RedisError| classify(&error).into_trouble();
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(of(refused.into()).kind(), TroubleKind::Connection);
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let handshake = io::Error::new(io::ErrorKind::InvalidData, expired);
        assert_eq!(of(handshake.into()).kind(), TroubleKind::Tls);
        let denied = RedisError::from((ErrorKind::AuthenticationFailed, "no"));
        assert_eq!(of(denied).kind(), TroubleKind::Auth);
        let parse = RedisError::from((ErrorKind::Parse, "no"));
        assert_eq!(of(parse).kind(), TroubleKind::Unexpected);
    }

    #[test]
    fn the_text_is_bounded_in_one_line_and_repeats_nothing_we_sent() {
        let text = |line: &str| classify(&server(line)).into_trouble().detail().to_owned();
        assert_eq!(
            text("ERR unknown command 'AUTH', with args beginning with: 'user' 'hunter2' "),
            "ERR unknown command 'AUTH'"
        );
        assert_eq!(tidy("a\r\nb\x1b[0m"), "a  b [0m");
        assert_eq!(tidy(&"\u{e4}".repeat(400)).len(), DETAIL_BYTES_MAX);
        assert_eq!(tidy(&format!("x{}", "\u{e4}".repeat(400))).len(), DETAIL_BYTES_MAX - 1);
    }
}
