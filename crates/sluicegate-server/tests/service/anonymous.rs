//! Data listeners that other machines can reach: refused without callers, certificates, a password or `listen.anonymous`.

use std::io::{Read, Write};
use std::net::TcpStream;

use sluicegate_tests::tls::{Certificates, ServerCertificate};

use crate::common::{Finished, Launch, PATIENCE, Server};

const TOKEN: &str = "correct-horse-battery-staple";
/// Ways that the message names for every listener.
const WAYS: [&str; 3] =
    ["sluicegate callers create", "listen.tls_client_ca", "listen.anonymous = true"];

fn launch(listener: &str, address: &str) -> Launch {
    Launch::serve(&[])
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        .env(&format!("SLUICEGATE_LISTEN_{}", listener.to_ascii_uppercase()), address)
}

fn assert_refused(finished: &Finished, listener: &str) {
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let said = format!("error: other machines can reach listen.{listener} (");
    assert!(finished.stderr.contains(&said), "{}", finished.stderr);
    for way in WAYS {
        assert!(finished.stderr.contains(way), "{way} in {}", finished.stderr);
    }
    // And those of the listeners that are refused.
    for other in ["http", "grpc", "resp"] {
        let way = format!("listen.{other}_tls_client_ca");
        assert_eq!(finished.stderr.contains(&way), other == listener, "{}", finished.stderr);
    }
    let has_password = finished.stderr.contains("resp.password");
    assert_eq!(has_password, listener == "resp", "{}", finished.stderr);
}

/// Creates a caller in the database `d.db` of the launch's folder, by the API of a local service.
fn with_caller(launch: Launch) -> Launch {
    let database = format!("sqlite:{}", launch.folder().join("d.db").display());
    let local = Server::start(&["--database-url", &database]);
    let body = r#"{"name":"checkout","rights":["check"]}"#;
    assert_eq!(local.post_json("/v1/callers", body).status, 201);
    local.signal("TERM");
    assert_eq!(local.wait().code, Some(0));
    launch.env("SLUICEGATE_DATABASE_URL", &database)
}

#[test]
fn an_open_listener_is_refused() {
    for (listener, address) in
        [("http", "0.0.0.0:0"), ("http", "[::]:0"), ("grpc", "0.0.0.0:0"), ("resp", "0.0.0.0:0")]
    {
        assert_refused(&launch(listener, address).run(), listener);
    }
    // Behind a proxy on this machine others can reach it as well.
    let proxied = launch("grpc", "127.0.0.1:0")
        .env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "grpc")
        .env("SLUICEGATE_PROXIES_TRUSTED", "127.0.0.1");
    assert_refused(&proxied.run(), "grpc");
    // Without a database as well, where no caller can exist.
    let settings = "[rules]\nsource = \"file\"\n[database]\nurl = \"\"\n";
    assert_refused(&launch("http", "0.0.0.0:0").file("sluicegate.toml", settings).run(), "http");
    // All of them are named.
    let both = launch("http", "0.0.0.0:0").env("SLUICEGATE_LISTEN_RESP", "0.0.0.0:0").run();
    let said = "listen.http (0.0.0.0:0) and listen.resp (0.0.0.0:0), and no caller exists";
    assert!(both.stderr.contains(said), "{}", both.stderr);
}

#[test]
fn each_way_lets_it_start() {
    // A caller: clients without one are refused.
    let mut server = with_caller(launch("http", "0.0.0.0:0")).start();
    server.address.set_ip([127, 0, 0, 1].into());
    let check = r#"{"ip":"203.0.113.9","endpoint":"/login"}"#;
    assert_eq!(server.post_json("/v1/check", check).status, 401);
    assert_eq!((server.get("/livez").status, server.get("/metrics").status), (200, 200));

    // The setting: all clients are answered, and the log warns.
    let anonymous = launch("http", "0.0.0.0:0").env("SLUICEGATE_LISTEN_ANONYMOUS", "true");
    let mut server = anonymous.start();
    server.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(server.post_json("/v1/check", check).status, 200);
    let warned = "charge every bucket without a caller, because listen.anonymous is true";
    assert!(server.stderr().contains(warned), "{}", server.stderr());

    // A password, for the Redis protocol only.
    let password = "SLUICEGATE_RESP_PASSWORD";
    let server = launch("resp", "0.0.0.0:0").env(password, TOKEN).start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.address_of("resp").port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"SG.TAKE k 5 1 1000\r\n").unwrap();
    let mut refused = [0; 8];
    stream.read_exact(&mut refused).unwrap();
    assert_eq!(&refused, b"-NOAUTH ");
    assert_refused(&launch("grpc", "0.0.0.0:0").env(password, TOKEN).run(), "grpc");
}

#[test]
fn client_certificates_are_a_proof() {
    let certificates = Certificates::new();
    let (good, authority) =
        (certificates.server(ServerCertificate::Good), certificates.authority());
    let with_tls = |listener: &str| {
        launch(listener, "0.0.0.0:0")
            .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", good.certificate.to_str().unwrap())
            .env("SLUICEGATE_LISTEN_TLS_KEY", good.key.to_str().unwrap())
    };
    // TLS alone says nothing about clients.
    assert_refused(&with_tls("grpc").run(), "grpc");
    let authority = authority.to_str().unwrap();
    let server = with_tls("grpc").env("SLUICEGATE_LISTEN_GRPC_TLS_CLIENT_CA", authority).start();
    assert!(server.address_of("grpc").ip().is_unspecified());
    // Those of another listener do not count.
    let other = with_tls("grpc").env("SLUICEGATE_LISTEN_HTTP_TLS_CLIENT_CA", authority);
    assert_refused(&other.run(), "grpc");
}

#[test]
fn the_check_of_settings_tells_it() {
    let checked = |launch: Launch| launch.args(&["--check-config"]).run();
    let finished = checked(launch("resp", "0.0.0.0:0"));
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let note = "note: other machines can reach listen.resp (0.0.0.0:0), so that the service starts only if a caller exists";
    assert!(finished.stdout.contains(note), "{}", finished.stdout);
    for quiet in [
        launch("resp", "127.0.0.1:0"),
        launch("resp", "0.0.0.0:0").env("SLUICEGATE_RESP_PASSWORD", TOKEN),
    ] {
        let finished = checked(quiet);
        assert!(!finished.stdout.contains("other machines"), "{}", finished.stdout);
    }
}
