//! Settings of single listeners: certificates, client authorities, timeouts and limits of connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};

use super::tls::{Client, ask};
use crate::common::{Client as Plain, Launch, PATIENCE, Server, eventually};

/// Sets the certificate of a listener.
fn with_certificate(launch: Launch, listener: &str, pair: &Pair) -> Launch {
    let variable = |name| format!("SLUICEGATE_LISTEN_{listener}_TLS_{name}");
    launch
        .env(&variable("CERTIFICATE"), pair.certificate.to_str().unwrap())
        .env(&variable("KEY"), pair.key.to_str().unwrap())
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// True if a client that trusts this authority gets an answer over HTTP.
fn is_answered(address: SocketAddr, authority: &Path, identity: Option<&Pair>) -> bool {
    let client = Client::trusting(authority, identity);
    let Ok(mut stream) = client.over(connect(address)) else { return false };
    let mut answer = String::new();
    ask(&mut stream, "/livez", "close").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200 ")
}

/// True if a handshake succeeds with a client that trusts this authority.
fn is_accepted(address: SocketAddr, authority: &Path) -> bool {
    Client::trusting(authority, None).over(connect(address)).is_ok()
}

fn wait_for_metric(server: &Server, line: &str) {
    eventually(line, || server.get("/metrics").body.contains(line).then_some(()));
}

#[test]
fn listeners_have_certificates_of_their_own() {
    let certificates = Certificates::new();
    let (good, other) = (ServerCertificate::Good, ServerCertificate::WrongAuthority);
    let launch = Launch::serve(&[]).with_grpc().with_resp();
    let launch = with_certificate(launch, "GRPC", &certificates.server(good));
    let server = with_certificate(launch, "RESP", &certificates.server(other)).start();
    // HTTP has none, and is not affected.
    assert_eq!(server.get("/livez").status, 200);
    let (grpc, resp) = (server.address_of("grpc"), server.address_of("resp"));
    let (first, second) = (certificates.authority(), certificates.other_authority());
    assert!(is_accepted(grpc, &first) && !is_accepted(grpc, &second));
    assert!(is_accepted(resp, &second) && !is_accepted(resp, &first));
}

#[test]
fn a_listener_may_differ_from_the_others() {
    let certificates = Certificates::new();
    let (good, client) = (certificates.server(ServerCertificate::Good), certificates.client());
    let other = certificates.other_client();
    let authority = certificates.authority();
    let server = Launch::serve(&[])
        .with_grpc()
        .with_resp()
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", good.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", good.key.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_HTTP_TLS_CLIENT_CA", authority.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_RESP_TLS_CERTIFICATE", "none")
        .start();
    // Only HTTP requires client certificates.
    assert!(is_answered(server.address, &authority, Some(&client)));
    assert!(!is_answered(server.address, &authority, None));
    assert!(!is_answered(server.address, &authority, Some(&other)));
    assert!(is_accepted(server.address_of("grpc"), &authority));
    // The Redis protocol is plain.
    let mut resp = connect(server.address_of("resp"));
    resp.write_all(b"PING\r\n").unwrap();
    let mut pong = [0; 7];
    resp.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"+PONG\r\n");
}

/// Authorities of clients may be common while one listener requires no certificate, for probes.
#[test]
fn a_listener_may_require_no_client_certificate() {
    let certificates = Certificates::new();
    let (good, authority) =
        (certificates.server(ServerCertificate::Good), certificates.authority());
    let server = Launch::serve(&[])
        .with_grpc()
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", good.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", good.key.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_CLIENT_CA", authority.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_HTTP_TLS_CLIENT_CA", "none")
        .start();
    assert!(is_answered(server.address, &authority, None));
}

#[test]
fn each_certificate_is_renewed() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let files = |name: &str| Pair {
        certificate: folder.path().join(format!("{name}.pem")),
        key: folder.path().join(format!("{name}.key")),
    };
    let write = |from: ServerCertificate, to: &Pair| {
        let from = certificates.server(from);
        fs::copy(from.certificate, &to.certificate).unwrap();
        fs::copy(from.key, &to.key).unwrap();
    };
    let (first, second) = (files("first"), files("second"));
    write(ServerCertificate::Good, &first);
    write(ServerCertificate::Good, &second);
    let launch = with_certificate(Launch::serve(&[]).with_grpc().with_resp(), "GRPC", &first);
    let server = with_certificate(launch, "RESP", &second).start();
    let (grpc, resp) = (server.address_of("grpc"), server.address_of("resp"));
    let renewed = certificates.other_authority();

    // An invalid one does not hide behind a valid one that is renewed later.
    fs::write(&first.certificate, "not a certificate").unwrap();
    eventually("the invalid certificate", || {
        server.get("/readyz?verbose").body.contains("first.pem").then_some(())
    });
    write(ServerCertificate::WrongAuthority, &second);
    eventually("the second certificate", || is_accepted(resp, &renewed).then_some(()));
    assert!(server.get("/readyz?verbose").body.contains("first.pem"));
    assert!(!is_accepted(grpc, &renewed));
    write(ServerCertificate::WrongAuthority, &first);
    eventually("the first certificate", || is_accepted(grpc, &renewed).then_some(()));
    eventually("no note", || {
        (!server.get("/readyz?verbose").body.contains("first.pem")).then_some(())
    });
}

#[test]
fn settings_of_a_listener_must_fit() {
    for (settings, said) in [
        (
            &["--listen-grpc-tls-certificate", "c.pem"][..],
            "--listen-grpc-tls-certificate: listen.grpc_tls_certificate needs listen.grpc_tls_key as well",
        ),
        (
            &["--listen-grpc-tls-key", "c.key"],
            "--listen-grpc-tls-key: listen.grpc_tls_key needs listen.grpc_tls_certificate as well",
        ),
        (
            &["--listen-http-tls-client-ca", "ca.pem"],
            "--listen-http-tls-client-ca: listen.http_tls_client_ca needs listen.http_tls_certificate as well",
        ),
        (
            &["--listen-tls-client-ca", "ca.pem"],
            "--listen-tls-client-ca: listen.tls_client_ca needs listen.tls_certificate as well",
        ),
        (
            &["--listen-http-connections-max", "1000001"],
            "--listen-http-connections-max: 1000001 is not from 0 to 1000000",
        ),
    ] {
        let finished = Launch::serve(settings).run();
        let said = format!("error: {said}\n");
        assert_eq!((finished.code, finished.stderr), (Some(2), said));
    }
}

/// In the file, a path is relative to its folder, and `none` is not a path.
#[test]
fn files_of_a_listener_may_be_named_in_the_settings_file() {
    let certificates = Certificates::new();
    let good = certificates.server(ServerCertificate::Good);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let settings = "[listen]\ntls_certificate = \"c.pem\"\ntls_key = \"c.key\"\n\
                    http_tls_certificate = \"none\"\ngrpc_tls_certificate = \"c.pem\"\ngrpc_tls_key = \"c.key\"\n";
    let server = Launch::serve(&[])
        .with_grpc()
        .file("c.pem", &read(&good.certificate))
        .file("c.key", &read(&good.key))
        .file("sluicegate.toml", settings)
        .start();
    assert_eq!(server.get("/livez").status, 200);
    assert!(is_accepted(server.address_of("grpc"), &certificates.authority()));
}

#[test]
fn a_listener_has_its_own_timeouts() {
    let server = Launch::serve(&[
        "--listen-http-header-timeout-ms",
        "50",
        "--listen-http-idle-timeout-ms",
        "100",
    ])
    .with_resp()
    .start();
    // An unfinished header, and a connection between requests.
    let mut unfinished = connect(server.address);
    unfinished.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
    assert_eq!(unfinished.read(&mut [0; 16]).unwrap(), 0);
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/livez", &[], b"").unwrap().status, 200);
    assert!(idle.read_response().is_err());
    // The Redis protocol has the common ones: a command may take longer to arrive.
    let mut resp = connect(server.address_of("resp"));
    resp.write_all(b"PI").unwrap();
    crate::common::pause(std::time::Duration::from_millis(200));
    resp.write_all(b"NG\r\n").unwrap();
    let mut pong = [0; 7];
    resp.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"+PONG\r\n");
}

/// Connections of trusted proxies are never evicted, so that the limit is seen.
#[test]
fn a_listener_has_its_own_limit_of_connections() {
    let server = Launch::serve(&["--listen-resp-connections-max", "2"])
        .with_resp()
        .env("SLUICEGATE_PROXIES_TRUSTED", "127.0.0.1")
        .start();
    let resp = server.address_of("resp");
    let mut open: Vec<_> = (0..2).map(|_| connect(resp)).collect();
    for stream in &mut open {
        stream.write_all(b"PING\r\n").unwrap();
        stream.read_exact(&mut [0; 7]).unwrap();
    }
    let mut third = connect(resp);
    assert_eq!(third.read(&mut [0; 16]).unwrap_or(0), 0);
    wait_for_metric(&server, "sluicegate_connections_refused_total 1");
    // Others have room.
    let mut others: Vec<_> = (0..5).map(|_| Plain::connect(server.address).unwrap()).collect();
    for client in &mut others {
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    }
    // A connection that ends makes room.
    open.pop();
    eventually("a free slot", || {
        let mut stream = connect(resp);
        stream.write_all(b"PING\r\n").ok()?;
        stream.read_exact(&mut [0; 7]).ok()
    });
}

/// Clients that are not proxies lose their longest idle connection instead.
#[test]
fn a_full_listener_closes_its_longest_idle_connection() {
    let server = Launch::serve(&["--listen-resp-connections-max", "1"]).with_resp().start();
    let resp = server.address_of("resp");
    let mut first = connect(resp);
    first.write_all(b"PING\r\n").unwrap();
    first.read_exact(&mut [0; 7]).unwrap();
    let mut second = connect(resp);
    second.write_all(b"PING\r\n").unwrap();
    second.read_exact(&mut [0; 7]).unwrap();
    assert_eq!(first.read(&mut [0; 16]).unwrap_or(0), 0);
    wait_for_metric(&server, "sluicegate_connections_evicted_total{listener=\"resp\"} 1");
}
