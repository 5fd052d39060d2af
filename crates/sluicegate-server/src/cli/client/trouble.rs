//! Connections that come to nothing, in plain words.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// What went wrong and what to do about it, where the error itself would say neither.
pub(super) fn plain(
    error: &(dyn Error + 'static),
    is_https: bool,
) -> Option<(&'static str, &'static str)> {
    if let Some(error) = of_tls(error) {
        return of_handshake(error);
    }
    let is_no_http = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
    (is_no_http && !is_https).then_some((
        "what answers there is no HTTP",
        "Is it encrypted? Then its URL begins with https://.",
    ))
}

fn of_handshake(error: &rustls::Error) -> Option<(&'static str, &'static str)> {
    match error {
        rustls::Error::InvalidCertificate(wrong) => Some(of_certificate(wrong)),
        rustls::Error::InvalidMessage(_) => Some((
            "what answers there is not encrypted",
            "Its URL begins with http://, or another port is the encrypted one.",
        )),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::HandshakeFailure,
        ) => Some((
            "it does not accept who we are",
            "It may ask for a certificate: --certificate FILE and --key FILE.",
        )),
        _ => None,
    }
}

fn of_certificate(wrong: &CertificateError) -> (&'static str, &'static str) {
    use CertificateError as Wrong;
    match wrong {
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => (
            "its certificate is for another name",
            "--server URL has to name it as its certificate does.",
        ),
        Wrong::Expired | Wrong::ExpiredContext { .. } => {
            ("its certificate has expired", "It needs a new one, or the clock here is wrong.")
        }
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            ("its certificate is not valid yet", "Is the clock here right?")
        }
        _ => (
            "its certificate is not trusted here",
            "--ca FILE names the authorities to trust, in PEM.",
        ),
    }
}

/// The error of TLS that is behind another.
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of input and output does not count what it wraps among its sources.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
