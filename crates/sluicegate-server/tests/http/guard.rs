//! Tokens, foreign hosts and foreign pages.

use crate::common::{Launch, Server};

const TOKEN: &str = "correct-horse-battery-staple";

#[test]
fn the_administration_needs_the_token_and_checking_does_not() {
    let server = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", TOKEN).start();
    let bearer = format!("Bearer {TOKEN}");
    let delete = |headers: &[(&str, &str)]| server.request("DELETE", "/v1/buckets/k", headers, "");
    let response = delete(&[]);
    assert_eq!(response.status, 401);
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    for wrong in ["Bearer", "Bearer ", "Bearer wrong", "Basic Zm9v", TOKEN, &format!("{bearer}x")] {
        assert_eq!(delete(&[("authorization", wrong)]).status, 401, "{wrong}");
    }
    assert_eq!(delete(&[("authorization", &bearer)]).status, 204);
    assert_eq!(delete(&[("authorization", &bearer.replace("Bearer", "bearer"))]).status, 204);
    assert_eq!(server.post_json("/v1/check", "{}").status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(server.get("/metrics").status, 200);
}

/// DNS rebinding: the name of a foreign page resolves to this machine.
#[test]
fn a_foreign_host_is_refused() {
    let server = Server::start(&[]);
    let status = |host: &str| server.request("GET", "/metrics", &[("host", host)], "").status;
    for own in
        ["localhost", "localhost:8080", "127.0.0.1", "[::1]:8080", "10.0.0.7:80", "api.localhost"]
    {
        assert_eq!(status(own), 200, "{own}");
    }
    for foreign in
        ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io"]
    {
        assert_eq!(status(foreign), 403, "{foreign}");
        // Checks bypass the router.
        let check = server.request("POST", "/v1/check", &[("host", foreign)], "{}");
        assert_eq!(check.status, 403, "{foreign}");
    }
}

#[test]
fn two_hosts_are_none() {
    let server = Server::start(&[]);
    let two = [("host", "localhost"), ("host", "evil.example")];
    assert_eq!(server.request("GET", "/livez", &two, "").status, 400);
}

#[test]
fn a_key_that_is_no_text_is_refused_after_the_token() {
    let server = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", TOKEN).start();
    let delete = |headers: &[_]| server.request("DELETE", "/v1/buckets/%ff", headers, "");
    assert_eq!(delete(&[]).status, 401);
    let response = delete(&[("authorization", &format!("Bearer {TOKEN}"))]);
    assert_eq!((response.status, &response.json()["field"]), (400, &"key".into()));
}

#[test]
fn a_page_of_another_site_is_refused() {
    let server = Server::start(&[]);
    let own = format!("http://{}", server.address);
    let status = |name: &str, value: &str| {
        let headers = [(name, value), ("content-type", "application/json")];
        server.request("POST", "/v1/check", &headers, "{}").status
    };
    assert_eq!(status("origin", &own), 200);
    for foreign in ["http://evil.example", "null", "http://127.0.0.1:1", ""] {
        assert_eq!(status("origin", foreign), 403, "{foreign:?}");
    }
    assert_eq!(status("sec-fetch-site", "cross-site"), 403);
    assert_eq!(status("sec-fetch-site", "same-origin"), 200);
}
