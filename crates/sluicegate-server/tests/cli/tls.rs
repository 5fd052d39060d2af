//! Servers with TLS.

use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};

use crate::common::{Finished, Launch, Server};

fn serve(certificates: &Certificates) -> Launch {
    serve_with(certificates.server(ServerCertificate::Good))
}

fn serve_with(Pair { certificate, key }: Pair) -> Launch {
    Launch::serve(&[])
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", key.to_str().unwrap())
}

fn list(server: &Server, more: &[&str]) -> Finished {
    let url = format!("https://localhost:{}", server.address.port());
    Launch::new(&["rules", "list", "--server", &url]).args(more).run()
}

#[test]
fn only_a_server_that_can_be_trusted_is_asked() {
    let certificates = Certificates::new();
    let server = serve(&certificates).start();
    let (ours, other) = (certificates.authority(), certificates.other_authority());
    let trusted = list(&server, &["--ca", ours.to_str().unwrap()]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(trusted.stdout.contains("user:{user_id}"), "{trusted:?}");
    let stranger = list(&server, &["--ca", other.to_str().unwrap()]);
    assert_eq!(stranger.code, Some(3), "{stranger:?}");
    assert!(stranger.stderr.contains("cannot reach https://localhost:"), "{stranger:?}");
    let said = "its certificate is not trusted here\n  Name the authorities to trust, in PEM: --ca FILE.\n";
    assert!(stranger.stderr.ends_with(said), "{stranger:?}");
    // A URL with http:// to a server with TLS.
    let plain = format!("http://localhost:{}", server.address.port());
    let plain = Launch::new(&["rules", "list", "--server", &plain]).run();
    assert_eq!(plain.code, Some(3), "{plain:?}");
    assert!(plain.stderr.contains("If it uses TLS, its URL begins with https://"), "{plain:?}");
    // A URL with https:// to a server without TLS.
    let open = Launch::serve(&[]).start();
    let open = list(&open, &["--ca", ours.to_str().unwrap()]);
    assert_eq!(open.code, Some(3), "{open:?}");
    assert!(open.stderr.contains("it does not use TLS\n  Its URL begins with http://"), "{open:?}");
}

#[test]
fn certificate_errors_are_shown_in_plain_words() {
    let certificates = Certificates::new();
    let authority = certificates.authority();
    for (wrong, said) in [
        (ServerCertificate::Expired, "its certificate has expired\n"),
        (ServerCertificate::WrongHost, "its certificate is for another name\n"),
        (ServerCertificate::WrongAuthority, "its certificate is not trusted here\n"),
    ] {
        let server = serve_with(certificates.server(wrong)).start();
        let refused = list(&server, &["--ca", authority.to_str().unwrap()]);
        assert!(refused.code == Some(3) && refused.stderr.contains(said), "{refused:?}");
        assert!(!refused.stderr.contains("sluicegate serve"), "{refused:?}");
    }
}

#[test]
fn a_certificate_is_shown_where_one_is_asked_for() {
    let certificates = Certificates::new();
    let (authority, client) = (certificates.authority(), certificates.client());
    let authority = authority.to_str().unwrap();
    let server = serve(&certificates).env("SLUICEGATE_LISTEN_TLS_CLIENT_CA", authority).start();
    let (certificate, key) = (client.certificate.to_str().unwrap(), client.key.to_str().unwrap());
    let shown = ["--ca", authority, "--certificate", certificate, "--key", key];
    let known = list(&server, &shown);
    assert_eq!(known.code, Some(0), "{known:?}");
    let nobody = list(&server, &["--ca", authority]);
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    assert!(nobody.stderr.contains("--certificate FILE and --key FILE"), "{nobody:?}");
    let half = list(&server, &["--ca", authority, "--certificate", certificate]);
    assert_eq!(half.code, Some(2), "{half:?}");
    assert!(half.stderr.contains("--key"), "{half:?}");
    let swapped =
        list(&server, &["--ca", authority, "--certificate", certificate, "--key", authority]);
    assert!(
        swapped.code == Some(2) && swapped.stderr.contains("contains no usable private key"),
        "{swapped:?}"
    );
    // The key of another certificate.
    let other = certificates.server(ServerCertificate::Good);
    let other = other.key.to_str().unwrap();
    let mixed = list(&server, &["--ca", authority, "--certificate", certificate, "--key", other]);
    assert_eq!(mixed.code, Some(2), "{mixed:?}");
    assert!(mixed.stderr.contains("error: --certificate and --key: "), "{mixed:?}");
}
