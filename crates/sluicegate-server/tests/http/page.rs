//! The page and its protection against other sites.
//!
//! A binary built without Node.js has no page; then the answer explains how to build it, which these tests accept.

use crate::common::{Client, Response, Server};

const POLICY: &str = "content-security-policy";

fn index(server: &Server) -> Response {
    server.get("/")
}

/// Paths of the page's files; empty without a page.
fn assets(index: &Response) -> Vec<String> {
    let parts = index.body.split('"').filter(|part| part.starts_with("/assets/"));
    parts.map(ToOwned::to_owned).collect()
}

fn ask(client: &mut Client, server: &Server, method: &str, path: &str, headers: &str) {
    let host = server.address;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
    client.send(head.as_bytes()).unwrap();
}

/// Sends a request and reads the answer without its body.
fn head(server: &Server, method: &str, path: &str, headers: &str) -> Response {
    let mut client = server.connect();
    ask(&mut client, server, method, path, headers);
    client.read_head().unwrap()
}

fn is_guarded(response: &Response) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("vary", "accept-encoding"),
    ] {
        assert_eq!(response.header(name), Some(value), "{response:?}");
    }
    let policy = response.header(POLICY).unwrap();
    for part in ["default-src 'none'", "frame-ancestors 'none'", "trusted-types 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
}

#[test]
fn the_page_is_asked_for_each_time_and_its_parts_once() {
    let server = Server::start(&[]);
    let index = index(&server);
    is_guarded(&index);
    assert_eq!(index.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    let assets = assets(&index);
    if assets.is_empty() {
        assert_eq!(index.status, 404, "{index:?}");
        assert!(index.body.contains("make run"), "{index:?}");
        return;
    }
    assert_eq!(index.status, 200, "{index:?}");
    assert!(assets.iter().any(|path| path.ends_with(".js")), "{assets:?}");
    for path in assets {
        let asset = server.get(&path);
        assert_eq!(asset.status, 200, "{path}");
        is_guarded(&asset);
        let caching = asset.header("cache-control");
        assert_eq!(caching, Some("public, max-age=31536000, immutable"), "{path}");
        let kind = asset.header("content-type").unwrap();
        assert!(
            ["text/javascript", "text/css", "image/svg+xml"]
                .iter()
                .any(|known| kind.starts_with(known)),
            "{kind}"
        );
        assert_eq!(asset.header("content-encoding"), None, "not requested");
        let packed = head(&server, "GET", &path, "accept-encoding: gzip, br\r\n");
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        let length =
            |response: &Response| response.header("content-length").unwrap().parse::<u64>();
        assert!(length(&packed).unwrap() < length(&asset).unwrap(), "{path}");
        assert_eq!(server.get(&format!("{path}.gz")).status, 404, "it has no name of its own");
    }
}

#[test]
fn head_is_the_same_without_the_body() {
    let server = Server::start(&[]);
    let index = index(&server);
    let paths = [vec!["/".to_owned()], assets(&index)].concat();
    for path in paths {
        let get = server.get(&path);
        let mut client = server.connect();
        ask(&mut client, &server, "HEAD", &path, "");
        let head = client.read_head().unwrap();
        assert_eq!(head.status, get.status, "{path}");
        for name in ["content-type", "content-length", "cache-control", POLICY] {
            assert_eq!(head.header(name), get.header(name), "{name} of {path}");
        }
        // No body was sent, which would be read as the next answer.
        assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
    }
    assert_eq!(server.request("POST", "/", &[], "").status, 405);
}

#[test]
fn unknown_paths_are_problems() {
    let server = Server::start(&[]);
    for path in ["/assets/nothing.js", "/assets/", "/index.html", "/assets/..%2findex.html"] {
        let response = server.get(path);
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{path}");
    }
}

#[test]
fn a_link_on_another_site_may_lead_to_it_and_to_nothing_else() {
    let server = Server::start(&[]);
    let own = index(&server);
    let status = |path: &str, site: &str, dest: &str| {
        let headers = [("sec-fetch-site", site), ("sec-fetch-dest", dest)];
        server.request("GET", path, &headers, "").status
    };
    assert_eq!(status("/", "cross-site", "document"), own.status);
    assert_eq!(status("/", "none", "document"), own.status);
    // Other destinations than a document are not a followed link.
    for dest in ["iframe", "frame", "object", "embed", "empty", "script", "image"] {
        assert_eq!(status("/", "cross-site", dest), 403, "{dest}");
    }
    let mut others =
        vec!["/v1/rules".into(), "/v1/events".into(), "/metrics".into(), "/readyz".into()];
    others.extend(assets(&own));
    for path in others {
        assert_eq!(status(&path, "cross-site", "document"), 403, "{path}");
    }
    // Nor with a foreign Host or Origin.
    let rebound = [("host", "evil.example"), ("sec-fetch-dest", "document")];
    assert_eq!(server.request("GET", "/", &rebound, "").status, 403);
    let foreign = [("origin", "https://evil.example"), ("sec-fetch-dest", "document")];
    assert_eq!(server.request("GET", "/", &foreign, "").status, 403);
}
