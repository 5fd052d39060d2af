//! A listener for the administration: paths of each listener, and the guard by listener.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use sluicegate_tests::tls::{Certificates, ServerCertificate};

use super::tls;
use crate::common::{Client, Launch, PATIENCE, Server};

const TOKEN: &str = "correct-horse-battery-staple";
const CHECK: &str = r#"{"ip":"203.0.113.9","endpoint":"/login"}"#;

/// Paths of the administration and the page, with a method that exists.
const ADMINISTRATION: [(&str, &str); 12] = [
    ("GET", "/"),
    ("GET", "/v1/rules"),
    ("PUT", "/v1/rules"),
    ("POST", "/v1/rules/preview"),
    ("POST", "/v1/overrides"),
    ("GET", "/v1/overrides"),
    ("DELETE", "/v1/buckets/k"),
    ("GET", "/v1/callers"),
    ("GET", "/v1/violations"),
    ("GET", "/v1/stats"),
    ("GET", "/v1/events"),
    ("POST", "/v1/explain"),
];
const HEALTH: [&str; 4] = ["/livez", "/readyz", "/healthz", "/healthcheck"];

fn launch() -> Launch {
    Launch::serve(&[]).env("SLUICEGATE_LISTEN_ADMIN", "127.0.0.1:0")
}

fn status_at(address: SocketAddr, method: &str, path: &str, host: &str) -> u16 {
    let headers = [("host", host), ("content-type", "application/json")];
    Client::connect(address).unwrap().request(method, path, &headers, b"").unwrap().status
}

fn get(address: SocketAddr, path: &str) -> u16 {
    status_at(address, "GET", path, "localhost")
}

/// True if a path is known. Without a body, it may be answered with an error.
fn exists(address: SocketAddr, method: &str, path: &str) -> bool {
    let mut client = Client::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    // Of live events only the head: they never end.
    let head = client.read_head().unwrap();
    head.status != 404 || head.header("content-type") != Some("application/problem+json")
}

fn check(address: SocketAddr) -> u16 {
    let headers = [("content-type", "application/json")];
    let mut client = Client::connect(address).unwrap();
    client.request("POST", "/v1/check", &headers, CHECK.as_bytes()).unwrap().status
}

fn answers(server: &Server, path: &str) -> (bool, bool) {
    let admin = server.address_of("admin");
    (get(server.address, path) == 200, get(admin, path) == 200)
}

#[test]
fn the_administration_is_there_and_nowhere_else() {
    let server = launch().start();
    let (http, admin) = (server.address, server.address_of("admin"));
    for (method, path) in ADMINISTRATION {
        assert!(!exists(http, method, path), "{method} {path}");
        assert!(exists(admin, method, path), "{method} {path}");
    }
    // As any unknown path.
    let answer = server.get("/v1/rules");
    assert_eq!(answer.json()["detail"], "no such path: /v1/rules");
    // Data and the document are on both: the page asks there.
    for address in [http, admin] {
        assert_eq!((check(address), get(address, "/openapi.json")), (200, 200));
    }
    for path in HEALTH.into_iter().chain(["/metrics"]) {
        assert_eq!(answers(&server, path), (true, true), "{path}");
    }
    // Commands ask the administration, and say so where it is not.
    let url = format!("http://{http}");
    let finished = Launch::new(&["rules", "list", "--server", &url]).run();
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let hint = "If listen.admin is set, the administration is on that listener alone";
    assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    let url = format!("http://{admin}");
    let finished = Launch::new(&["rules", "list", "--server", &url]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

#[test]
fn health_and_metrics_are_by_choice() {
    let server = launch()
        .env("SLUICEGATE_LISTEN_HEALTH", "http")
        .env("SLUICEGATE_LISTEN_METRICS", "admin")
        .start();
    for path in HEALTH {
        assert_eq!(answers(&server, path), (true, false), "{path}");
    }
    assert_eq!(answers(&server, "/metrics"), (false, true));

    let server = launch()
        .env("SLUICEGATE_LISTEN_HEALTH", "admin")
        .env("SLUICEGATE_LISTEN_METRICS", "http")
        .start();
    for path in HEALTH {
        assert_eq!(answers(&server, path), (false, true), "{path}");
    }
    assert_eq!(answers(&server, "/metrics"), (true, false));
}

#[test]
fn without_it_everything_is_on_the_http_listener() {
    let settings = ["--listen-health", "admin", "--listen-metrics", "admin"];
    let server = Server::start(&settings);
    for path in HEALTH.into_iter().chain(["/metrics", "/v1/rules", "/openapi.json"]) {
        assert_eq!(get(server.address, path), 200, "{path}");
    }
    assert!(server.stderr().contains("listen.health is `admin`, and listen.admin is empty"));
    let finished = Launch::serve(&["--listen-health", "resp"]).run();
    assert_eq!(finished.code, Some(2));
    let said = "--listen-health: `resp` must be one of both, http, admin";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
}

/// The listener of a request decides: a local one for the administration needs no token, whatever others can reach.
#[test]
fn the_guard_is_by_listener() {
    let server = launch()
        .env("SLUICEGATE_LISTEN_HTTP", "0.0.0.0:0")
        .env("SLUICEGATE_LISTEN_ANONYMOUS", "true")
        .start();
    let http = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    let admin = server.address_of("admin");
    // Others may use any name for the data, and this machine's browsers only its own for the administration.
    assert_eq!(status_at(http, "GET", "/livez", "limits.example"), 200);
    assert_eq!(status_at(admin, "GET", "/livez", "limits.example"), 403);
    assert_eq!(status_at(admin, "GET", "/v1/rules", "localhost"), 200);
}

#[test]
fn a_token_is_needed_where_others_reach_the_administration() {
    let finished = launch().env("SLUICEGATE_LISTEN_ADMIN", "0.0.0.0:0").run();
    assert_eq!(finished.code, Some(2));
    let said = "SLUICEGATE_LISTEN_ADMIN: other machines can reach the administration at 0.0.0.0:0, and admin.token is not set";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);

    let server = launch()
        .env("SLUICEGATE_LISTEN_ADMIN", "0.0.0.0:0")
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        .start();
    let admin = SocketAddr::from(([127, 0, 0, 1], server.address_of("admin").port()));
    assert_eq!(get(admin, "/v1/rules"), 401);
    let headers = [("authorization", &*format!("Bearer {TOKEN}"))];
    let mut client = Client::connect(admin).unwrap();
    assert_eq!(client.request("GET", "/v1/rules", &headers, b"").unwrap().status, 200);
}

#[test]
fn the_proxy_protocol_may_be_on_it_alone() {
    let server = launch()
        .env("SLUICEGATE_LISTEN_PROXY_PROTOCOL", "admin")
        .env("SLUICEGATE_PROXIES_TRUSTED", "127.0.0.1")
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        .start();
    assert_eq!(check(server.address), 200);
    let ask = "GET /livez HTTP/1.1\r\nhost: limits.example\r\nconnection: close\r\n\r\n";
    let exchange = |header: &str| {
        let mut stream = TcpStream::connect(server.address_of("admin")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{header}{ask}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    };
    let header = "PROXY TCP4 203.0.113.9 192.0.2.1 51234 8080\r\n";
    assert!(exchange(header).starts_with("HTTP/1.1 200 "));
    assert_eq!(exchange(""), "");
}

/// The administration over TLS with client certificates, the data without.
#[test]
fn it_has_its_own_certificate() {
    let certificates = Certificates::new();
    let (good, authority) =
        (certificates.server(ServerCertificate::Good), certificates.authority());
    let server = launch()
        .env("SLUICEGATE_LISTEN_ADMIN_TLS_CERTIFICATE", good.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_ADMIN_TLS_KEY", good.key.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_ADMIN_TLS_CLIENT_CA", authority.to_str().unwrap())
        .start();
    assert_eq!(check(server.address), 200);
    let identity = certificates.client();
    let client = tls::Client::trusting(&authority, Some(&identity));
    let socket = TcpStream::connect(server.address_of("admin")).unwrap();
    let mut stream = client.over(socket).unwrap();
    tls::ask(&mut stream, "/v1/rules", "close").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let url = format!("https://localhost:{}", server.address_of("admin").port());
    let (ca, certificate, key) = (authority, identity.certificate, identity.key);
    let files = [&ca, &certificate, &key].map(|path| path.to_str().unwrap());
    let [ca, certificate, key] = files;
    let arguments = ["rules", "list", "--server", &url, "--ca", ca];
    let finished =
        Launch::new(&arguments).args(&["--certificate", certificate, "--key", key]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}
