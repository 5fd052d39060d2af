//! Listeners with TLS: accepted and rejected clients, and certificates that change at run time.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};

use super::http2::Http2;
use crate::common::{Launch, PATIENCE, Server, eventually, now};

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Client that trusts this authority and presents this certificate.
pub(crate) struct Client {
    config: ClientConfig,
}

impl Client {
    pub(crate) fn trusting(authority: &Path, identity: Option<&Pair>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Pair { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        Self { config }
    }

    fn speaking(mut self, protocol: &[u8]) -> Self {
        self.config.alpn_protocols = vec![protocol.into()];
        self
    }

    /// Connects and completes the handshake.
    fn connect(&self, server: &Server) -> io::Result<Stream> {
        let socket = TcpStream::connect(server.address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        self.over(socket)
    }

    /// Completes the handshake over a connection.
    pub(crate) fn over(&self, mut socket: TcpStream) -> io::Result<Stream> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(Arc::new(self.config.clone()), name).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(StreamOwned::new(session, socket))
    }

    /// Connects, sends a GET request, and returns the whole answer.
    fn get(&self, server: &Server, path: &str) -> io::Result<String> {
        let mut stream = self.connect(server)?;
        ask(&mut stream, path, "close")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

pub(crate) fn ask(stream: &mut Stream, path: &str, connection: &str) -> io::Result<()> {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\n\r\n");
    stream.write_all(head.as_bytes())
}

fn read_ok(stream: &mut Stream) {
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

fn serve(pair: &Pair) -> Launch {
    Launch::serve(&[])
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", pair.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", pair.key.to_str().unwrap())
}

fn copy(from: &Pair, to: &Pair) {
    fs::copy(&from.certificate, &to.certificate).unwrap();
    fs::copy(&from.key, &to.key).unwrap();
}

#[test]
fn http1_and_http2_are_served() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good)).start();
    let client = Client::trusting(&certificates.authority(), None);
    let answer = client.get(&server, "/livez").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // A connection may be idle between requests.
    let mut stream = client.connect(&server).unwrap();
    for pause in [0, 300, 0] {
        crate::common::pause(Duration::from_millis(pause));
        ask(&mut stream, "/livez", "keep-alive").unwrap();
        read_ok(&mut stream);
    }
    let client = client.speaking(b"http/1.1");
    assert!(client.get(&server, "/livez").unwrap().starts_with("HTTP/1.1 200 "));

    let client = client.speaking(b"h2");
    let mut http2 = Http2::over(client.connect(&server).unwrap());
    for stream in [1, 3] {
        http2.get(stream, "/livez");
        assert!(http2.is_ok(stream));
    }
    // A client that offers neither protocol is rejected.
    assert!(client.speaking(b"spdy/3").connect(&server).is_err());
}

#[test]
fn versions_from_1_2_on() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good)).start();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificates.authority()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        assert!(Client { config }.get(&server, "/livez").is_ok(), "{version:?}");
    }
}

#[test]
fn the_certificate_is_the_one_given() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good)).start();
    let stranger = Client::trusting(&certificates.other_authority(), None);
    let error = stranger.get(&server, "/livez").unwrap_err().to_string();
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[test]
fn clients_must_show_a_certificate_where_that_is_asked() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good))
        .env("SLUICEGATE_LISTEN_TLS_CLIENT_CA", certificates.authority().to_str().unwrap())
        .start();
    let get = |identity: Option<&Pair>| {
        Client::trusting(&certificates.authority(), identity).get(&server, "/livez")
    };
    assert!(get(Some(&certificates.client())).unwrap().starts_with("HTTP/1.1 200 "));
    assert!(get(None).is_err());
    assert!(get(Some(&certificates.other_client())).is_err());
}

#[test]
fn connections_without_tls_are_rejected() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good)).start();
    for plain in
        [&b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], b"\x16\x03\x01\xff\xff", b"\0"]
    {
        let mut client = server.connect();
        client.send(plain).unwrap();
        if plain.len() < 10 {
            continue;
        }
        let answer = client.read_to_end();
        assert!(!answer.contains("HTTP/1.1"), "{answer}");
    }
    let client = Client::trusting(&certificates.authority(), None);
    assert!(client.get(&server, "/livez").is_ok());
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// A handshake has the header timeout, and its connection occupies a slot.
#[test]
fn slow_handshakes_are_cut_and_make_room() {
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good))
        .args(&["--limits-header-timeout-ms", "500", "--limits-connections-max", "4"])
        .start();
    let started = now();
    let mut slow: Vec<_> = (0..4).map(|_| server.connect()).collect();
    // An incomplete handshake.
    for client in &mut slow {
        client.send(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).unwrap();
    }
    for client in &mut slow {
        assert!(client.is_closed());
    }
    let took = now() - started;
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}");
    let client = Client::trusting(&certificates.authority(), None);
    eventually("room", || client.get(&server, "/livez").ok());
    // Nor does a handshake extend the timeout of the header after it.
    let mut silent = client.connect(&server).unwrap();
    let started = now();
    let _ = silent.read(&mut [0]);
    assert!(now() - started < Duration::from_secs(5), "{:?}", now() - started);
}

/// TLS buffers bytes that the socket does not accept: they must be flushed without a further request.
#[test]
fn a_late_reader_gets_everything_and_one_that_never_reads_is_cut_off() {
    const REQUESTS: usize = 1000;
    let certificates = Certificates::new();
    let server = serve(&certificates.server(ServerCertificate::Good))
        .args(&["--limits-idle-timeout-ms", "1500"])
        .start();
    let client = Client::trusting(&certificates.authority(), None);
    let mut late = client.connect(&server).unwrap();
    for _ in 1..REQUESTS {
        ask(&mut late, "/openapi.json", "keep-alive").unwrap();
    }
    ask(&mut late, "/openapi.json", "close").unwrap();
    crate::common::pause(Duration::from_millis(500));
    let mut answers = String::new();
    late.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), REQUESTS);

    let mut never = client.connect(&server).unwrap();
    let is_cut =
        (0..100 * REQUESTS).any(|_| ask(&mut never, "/openapi.json", "keep-alive").is_err());
    assert!(is_cut, "the service takes requests for ever");
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name| folder.path().join(name);
    let pair = Pair { certificate: file("tls.crt"), key: file("tls.key") };
    copy(&certificates.server(ServerCertificate::Good), &pair);
    let server = serve(&pair).start();
    let before = Client::trusting(&certificates.authority(), None);
    let after = Client::trusting(&certificates.other_authority(), None);
    let mut open = before.connect(&server).unwrap();
    ask(&mut open, "/livez", "keep-alive").unwrap();
    read_ok(&mut open);

    copy(&certificates.server(ServerCertificate::WrongAuthority), &pair);
    eventually("the new certificate", || after.get(&server, "/livez").ok());
    assert!(before.get(&server, "/livez").is_err());
    // Open connections stay open.
    ask(&mut open, "/livez", "keep-alive").unwrap();
    read_ok(&mut open);

    // A certificate with another's key is rejected, and the last valid pair stays in use.
    fs::copy(certificates.client().key, &pair.key).unwrap();
    let refused = server.wait_for_log("certificate not renewed: the last valid one stays");
    assert!(refused["report"].as_str().unwrap().contains("does not match the certificate"));
    let answer = after.get(&server, "/readyz?verbose").unwrap();
    assert!(answer.contains("the last valid certificate stays"), "{answer}");

    // Reloaded at once on SIGHUP.
    copy(&certificates.server(ServerCertificate::Good), &pair);
    server.signal("HUP");
    eventually("the first certificate", || before.get(&server, "/livez").ok());
    let answer = before.get(&server, "/readyz?verbose").unwrap();
    assert!(!answer.contains("the last valid certificate"), "{answer}");
}

#[test]
fn files_that_are_wrong_are_named_and_nothing_starts() {
    let certificates = Certificates::new();
    let good = certificates.server(ServerCertificate::Good);
    let missing = Pair { certificate: "missing.pem".into(), ..good.clone() };
    let swapped = Pair { certificate: good.key.clone(), key: good.certificate.clone() };
    let other = Pair { key: certificates.client().key, ..good.clone() };
    for (pair, named, reason) in [
        (missing, "missing.pem", "cannot be read"),
        (swapped, "good.key", "has no certificate"),
        (other, "client.key", "does not match the certificate"),
    ] {
        let finished = serve(&pair).run();
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(named), "{}", finished.stderr);
        assert!(finished.stderr.contains(reason), "{}", finished.stderr);
        let checked = serve(&pair).args(&["--check-config"]).run();
        assert_eq!(checked.code, Some(2));
        // The start may also warn of files that every user can read.
        assert!(finished.stderr.ends_with(&checked.stderr), "{checked:?}");
    }
    assert_eq!(serve(&good).args(&["--check-config"]).run().code, Some(0));
    let half = Launch::serve(&[])
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", good.certificate.to_str().unwrap())
        .run();
    assert_eq!(half.code, Some(2), "{}", half.stderr);
}
