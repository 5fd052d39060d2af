//! The Redis protocol over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sluicegate_tests::tls::{Certificates, ServerCertificate};

use crate::common::{Launch, PATIENCE, Server, now};
use crate::resp::clients::cli;
use crate::resp::support::{connect, words};

fn start(certificates: &Certificates, timeout_ms: &str) -> Server {
    let pair = certificates.server(ServerCertificate::Good);
    Launch::serve(&["--limits-header-timeout-ms", timeout_ms])
        .with_resp()
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", pair.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", pair.key.to_str().unwrap())
        .start()
}

/// Opens a connection that trusts this authority.
fn secured(
    server: &Server,
    certificates: &Certificates,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.authority()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(server.address_of("resp")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(session, socket)
}

/// Reads bytes and asserts that they are these.
fn expect(stream: &mut impl Read, replies: &[u8]) {
    let mut read = vec![0; replies.len()];
    stream.read_exact(&mut read).unwrap();
    assert!(read == replies, "{}", String::from_utf8_lossy(&read));
}

#[test]
fn commands_are_answered_over_tls() {
    let certificates = Certificates::new();
    let server = start(&certificates, "1000");
    let mut stream = secured(&server, &certificates);
    stream.write_all(&words("PING")).unwrap();
    expect(&mut stream, b"+PONG\r\n");
    // A long pipeline spans many TLS records, and some commands span two.
    stream.write_all(&words("PING").repeat(20_000)).unwrap();
    expect(&mut stream, &b"+PONG\r\n".repeat(20_000));
    let long = "x".repeat(60_000);
    stream.write_all(&words(&format!("ECHO {long}"))).unwrap();
    expect(&mut stream, format!("$60000\r\n{long}\r\n").as_bytes());
    let ping = words("PING");
    for byte in &ping {
        stream.write_all(&[*byte]).unwrap();
    }
    expect(&mut stream, b"+PONG\r\n");
    // The connection ends with a TLS closing alert.
    server.signal("TERM");
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    drop(stream);
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn redis_cli_speaks_tls() {
    let certificates = Certificates::new();
    let server = start(&certificates, "1000");
    let authority = certificates.authority();
    let tls = ["--tls", "--sni", "localhost", "--cacert", authority.to_str().unwrap()];
    let throttle = ["CL.THROTTLE", "user:42", "15", "30", "60"];
    assert_eq!(cli(&server, &[&tls[..], &throttle].concat(), ""), "0\n16\n15\n-1\n2\n");
}

#[test]
fn a_handshake_does_not_hold_up_the_end() {
    let certificates = Certificates::new();
    let server = start(&certificates, "60000");
    let mut silent = connect(&server);
    let mut begun = connect(&server);
    begun.send(b"\x16\x03\x01");
    let asked = now();
    server.signal("TERM");
    assert!(silent.is_closed() && begun.is_closed());
    let finished = server.wait();
    assert!(now() - asked < Duration::from_secs(3), "{:?}", now() - asked);
    assert!(finished.stderr.contains("stopped: all requests were answered"), "{}", finished.stderr);
}

#[test]
fn plain_connections_get_no_reply() {
    let certificates = Certificates::new();
    let server = start(&certificates, "1000");
    let mut plain = connect(&server);
    plain.send(&words("PING"));
    assert!(plain.try_reply().is_err());
    // A handshake has a timeout too.
    assert!(connect(&server).is_closed());
}
