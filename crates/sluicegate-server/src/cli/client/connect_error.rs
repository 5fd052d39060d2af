//! Failed exchanges with a server: reasons and hints in plain words.

use std::io;

use rustls::{AlertDescription, CertificateError};
use ureq::{Error, Timeout};

use super::remote::{ANSWER_BYTES_MAX, ANSWER_TIMEOUT, CONNECT_TIMEOUT};
use crate::config::reason;

/// Reason of a failed exchange, and what to do about it if the reason tells.
pub(super) fn explain(error: &Error, is_https: bool) -> (String, Option<&'static str>) {
    let (reason, hint) = match error {
        Error::Io(error) => match tls_error(error).and_then(handshake) {
            Some(explained) => explained,
            None => return (reason(error), None),
        },
        Error::Protocol(_) if !is_https => {
            ("it does not answer in HTTP", "If it uses TLS, its URL begins with https://.")
        }
        Error::Tls(_) => (
            "the host name cannot be checked against a certificate",
            "Name the server in --server URL as its certificate does.",
        ),
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            return (format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()), None);
        }
        Error::Timeout(_) => {
            return (format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()), None);
        }
        Error::BodyExceedsLimit(_) => {
            return (format!("the answer has more than {ANSWER_BYTES_MAX} bytes"), None);
        }
        Error::ConnectProxyFailed(why) => return (why.clone(), None),
        other => return (other.to_string(), None),
    };
    (reason.into(), Some(hint))
}

fn handshake(error: &rustls::Error) -> Option<(&'static str, &'static str)> {
    match error {
        rustls::Error::InvalidCertificate(wrong) => Some(certificate(wrong)),
        rustls::Error::InvalidMessage(_) => {
            Some(("it does not use TLS", "Its URL begins with http://, or TLS is on another port."))
        }
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::HandshakeFailure,
        ) => Some((
            "the server requires a client certificate that it trusts",
            "Show a certificate that it trusts: --certificate FILE and --key FILE.",
        )),
        _ => None,
    }
}

fn certificate(wrong: &CertificateError) -> (&'static str, &'static str) {
    use CertificateError as Wrong;
    match wrong {
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => (
            "its certificate is for another name",
            "Name the server in --server URL as its certificate does.",
        ),
        Wrong::Expired | Wrong::ExpiredContext { .. } => {
            ("its certificate has expired", "Renew it, or correct the clock of this machine.")
        }
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            ("its certificate is not valid yet", "Correct the clock of this machine.")
        }
        _ => (
            "its certificate is not trusted here",
            "Name the authorities to trust, in PEM: --ca FILE.",
        ),
    }
}

/// The TLS error that an I/O error wraps, if it does.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| tls_error(inner.downcast_ref()?))
}
