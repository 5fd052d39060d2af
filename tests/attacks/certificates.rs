//! Client certificates that only resemble those of a caller.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};

use crate::common::{Launch, PATIENCE, Server};

/// Names of the callers' certificates: the one that [`Certificates::client`] has, and a URI.
const DNS_NAME: &str = "client.invalid";
const URI: &str = "spiffe://example/Shop";

/// Service that requires client certificates, with a caller for each of the names.
fn start(certificates: &Certificates) -> Server {
    let pair = certificates.server(ServerCertificate::Good);
    let launch = Launch::serve(&[])
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", pair.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", pair.key.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_CLIENT_CA", certificates.authority().to_str().unwrap());
    let database = format!("sqlite:{}", launch.folder().join("sluicegate.db").display());
    let run = |arguments: &[&str]| {
        let done = Launch::new(arguments).env("SLUICEGATE_DATABASE_URL", &database).run();
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    run(&["migrate"]);
    for (name, certificate) in [("shop", DNS_NAME), ("mesh", URI)] {
        let create = ["callers", "create", name, "--may", "check", "--no-token"];
        run(&[&create[..], &["--certificate", certificate]].concat());
    }
    launch.start()
}

/// Status of a check by a client with this certificate.
fn check(server: &Server, authority: &Path, identity: &Pair) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(&identity.certificate).unwrap()];
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&identity.key).unwrap())
        .unwrap();
    let socket = TcpStream::connect(server.address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(session, socket);
    let request = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).unwrap_or_default().to_owned())
}

#[test]
fn a22_only_the_certificate_of_a_caller_is_the_caller() {
    let certificates = Certificates::new();
    let server = start(&certificates);
    let check = |identity: &Pair| check(&server, &certificates.authority(), identity);
    // The letters of a DNS name may have any case, wherever it stands; those of a URI may not.
    let callers = [
        certificates.client(),
        certificates.issue("upper", &["CLIENT.Invalid"]),
        certificates.issue("second", &["other.invalid", DNS_NAME]),
        certificates.issue("uri", &[URI]),
    ];
    for identity in &callers {
        assert_eq!(check(identity).unwrap(), "200", "{identity:?}");
    }

    // No handshake: another authority, and certificates outside of their time.
    let untrusted = [
        certificates.other_client(),
        certificates.issue_for("past", &[DNS_NAME], 2020..2021),
        certificates.issue_for("future", &[DNS_NAME], 2098..2099),
    ];
    for identity in &untrusted {
        assert!(check(identity).is_err(), "{identity:?}");
    }

    // A handshake, but no caller. The name of the subject, which is the first argument here, does not count.
    let strangers: [(&str, &[&str]); 12] = [
        ("client.invalid", &[]),
        ("wildcard", &["*.invalid"]),
        ("wildcard-below", &["*.client.invalid"]),
        ("longer", &["client.invalid.example"]),
        ("prefixed", &["xclient.invalid"]),
        ("below", &["www.client.invalid"]),
        ("dot", &["client.invalid."]),
        ("nul", &["client.invalid\0.example"]),
        ("nul-before", &["\0client.invalid"]),
        ("address", &["127.0.0.1"]),
        ("uri-case", &["spiffe://example/shop"]),
        ("uri-longer", &["spiffe://example/Shop/x", "https://client.invalid"]),
    ];
    for (name, names) in strangers {
        let identity = certificates.issue(name, names);
        // Certificates with unusable names may be refused by the handshake as well.
        let status = check(&identity).unwrap_or_else(|_| "no handshake".into());
        assert!(["401", "no handshake"].contains(&&*status), "{name}: {status}");
        eprintln!("  {names:?}: {status}");
    }
}
