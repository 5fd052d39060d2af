//! Properties of a connection that decide about its requests: peer, listener, and client certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustls::pki_types::CertificateDer;
use tracing::debug;
use webpki::EndEntityCert;

use crate::auth::admission::VerifiedCaller;
use crate::config::Door;

/// Maximum number of names taken from a client certificate; further ones are ignored.
const NAMES_MAX: usize = 64;
/// Maximum bytes of a name in a client certificate; longer ones are ignored.
const NAME_BYTES_MAX: usize = 253;

/// An accepted connection: made once, after the handshakes, and shared by all of its requests.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    /// Address of the client, or the one that a PROXY protocol header states.
    pub(crate) peer: SocketAddr,
    pub(crate) listener: ListenerTraits,
    /// Names of the verified client certificate, at most [`NAMES_MAX`]: the DNS names of its subject alternative names
    /// in lower case, then the URIs. Empty without a certificate.
    pub(crate) certificate_names: Box<[Box<str>]>,
    /// The caller that was verified last; used over HTTP and gRPC.
    pub(crate) verified: VerifiedCaller,
}

/// Properties of the listener that accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenerTraits {
    pub(crate) door: Door,
    /// True if only this machine can reach it: a loopback address or Unix socket, without the PROXY protocol.
    pub(crate) is_local: bool,
    /// True if every client must present a certificate of the listener's authority.
    pub(crate) requires_certificates: bool,
}

/// Client of a request, as far as the administration is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Address of the client; unspecified if it is not known.
    pub(crate) peer: IpAddr,
    /// True if only this machine can reach the listener that the request came through.
    pub(crate) is_local: bool,
}

impl Source {
    /// A request without a connection, which nothing is granted to.
    pub(crate) const UNKNOWN: Self =
        Self { peer: IpAddr::V4(Ipv4Addr::UNSPECIFIED), is_local: false };
}

impl ConnectionInfo {
    /// Client of its requests.
    pub(crate) fn source(&self) -> Source {
        Source { peer: self.peer.ip(), is_local: self.listener.is_local }
    }

    /// A connection without a client certificate.
    pub(crate) fn new(peer: SocketAddr, listener: ListenerTraits) -> Self {
        Self {
            peer,
            listener,
            certificate_names: Box::default(),
            verified: VerifiedCaller::default(),
        }
    }

    /// Adds the names of a verified client certificate.
    pub(crate) fn with_certificate(self, certificate: &CertificateDer<'_>) -> Self {
        let connection = Self { certificate_names: names(certificate), ..self };
        let Self { peer, certificate_names, .. } = &connection;
        debug!(%peer, names = ?certificate_names, "client certificate verified");
        connection
    }
}

/// Names of a certificate's subject alternative names. A certificate that cannot be parsed has none.
fn names(certificate: &CertificateDer<'_>) -> Box<[Box<str>]> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Box::default() };
    let dns_names = certificate.valid_dns_names().map(str::to_ascii_lowercase);
    // A URI has a scheme. Without one it could pass for a DNS name.
    let uris = certificate.valid_uri_names().filter(|uri| uri.contains(':')).map(str::to_owned);
    dns_names
        .chain(uris)
        .filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()))
        .take(NAMES_MAX)
        .map(String::into_boxed_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use sluicegate_tests::tls::Certificates;

    use super::*;

    fn names_of(sans: &[&str]) -> Vec<String> {
        let certificates = Certificates::new();
        let pair = certificates.issue("caller", sans);
        let certificate = CertificateDer::from_pem_file(pair.certificate).unwrap();
        names(&certificate).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dns_names_in_lower_case_come_before_uris() {
        let sans = ["spiffe://example/checkout", "Checkout.Example", "192.0.2.1", "b.example"];
        assert_eq!(names_of(&sans), ["checkout.example", "b.example", "spiffe://example/checkout"]);
    }

    #[test]
    fn names_are_bounded() {
        let many: Vec<_> = (0..100).map(|number| format!("n{number}.example")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(names_of(&many), many[..NAMES_MAX]);
        let long = format!("spiffe://example/{}", "x".repeat(NAME_BYTES_MAX));
        assert_eq!(names_of(&[&long, "a.example"]), ["a.example"]);
    }

    #[test]
    fn a_certificate_that_cannot_be_parsed_has_no_names() {
        assert!(names(&CertificateDer::from(vec![0x30, 0x03, 1, 2, 3])).is_empty());
        assert!(names_of(&[]).is_empty());
    }
}
