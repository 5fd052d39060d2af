//! The client's address.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use http::{Request, StatusCode};
use sluicegate::Rule;
use sluicegate::client_ip::{ClientIp, ForwardedBy};
use sluicegate::middleware::{OnMissing, Peer};

use crate::middleware::support::{App, call, get, guarded, layer, rule, statuses};

fn per_ip() -> Vec<Rule> {
    vec![rule(1, "ip:{ip}", "1/hour")]
}

fn from(peer: &str, forwarded_for: &[&str]) -> Request<String> {
    let mut request = get("/");
    request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    for line in forwarded_for {
        request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
    }
    request
}

async fn passes(app: &App, request: Request<String>) -> bool {
    call(app, request).await.status() == StatusCode::OK
}

#[tokio::test]
async fn by_default_it_is_the_peers() {
    let app = guarded(&layer(per_ip()).0);
    assert!(passes(&app, from("203.0.113.1", &[])).await);
    assert!(!passes(&app, from("203.0.113.1", &[])).await);
    assert!(passes(&app, from("203.0.113.2", &[])).await);
}

/// `tower_governor`'s `SmartIp` trusts every client's claim of its address.
#[tokio::test]
async fn a_client_cannot_choose_its_address() {
    let trusted = ClientIp::default().trust(["10.0.0.0/8".parse().unwrap()]);
    for layer in [layer(per_ip()).0, layer(per_ip()).0.client_ip(trusted)] {
        let app = guarded(&layer);
        assert!(passes(&app, from("203.0.113.1", &["198.51.100.1"])).await);
        for n in 2..20 {
            let mut request = from("203.0.113.1", &[&format!("198.51.100.{n}")]);
            for name in
                ["x-real-ip", "forwarded", "x-client-ip", "true-client-ip", "cf-connecting-ip"]
            {
                request.headers_mut().insert(name, format!("198.51.100.{n}").parse().unwrap());
            }
            assert!(!passes(&app, request).await, "{n}");
        }
    }
}

#[tokio::test]
async fn trusted_proxies_are_believed_from_the_right() {
    let trusted = ClientIp::default().trust(["10.0.0.0/8".parse().unwrap()]);
    let app = guarded(&layer(per_ip()).0.client_ip(trusted));
    assert!(passes(&app, from("10.0.0.1", &["1.1.1.1, 198.51.100.7", "10.0.0.2"])).await);
    // Entries left of it are written by the client.
    assert!(!passes(&app, from("10.0.0.1", &["2.2.2.2", "198.51.100.7, 10.0.0.2"])).await);
    assert!(passes(&app, from("10.0.0.1", &["1.1.1.1, 198.51.100.8"])).await);
}

#[tokio::test]
async fn other_fields_can_be_chosen() {
    let real_ip =
        ClientIp::default().trust(["10.0.0.0/8".parse().unwrap()]).header(ForwardedBy::XRealIp);
    let app = guarded(&layer(per_ip()).0.client_ip(real_ip));
    let with = |ip: &str| {
        let mut request = from("10.0.0.1", &["1.1.1.1"]);
        request.headers_mut().insert("x-real-ip", ip.parse().unwrap());
        request
    };
    assert!(passes(&app, with("198.51.100.7")).await && !passes(&app, with("198.51.100.7")).await);
    assert!(passes(&app, with("198.51.100.8")).await);
}

#[tokio::test]
async fn one_network_is_one_client_and_one_spelling_one_address() {
    let app = guarded(&layer(per_ip()).0);
    assert!(passes(&app, from("2001:db8:1:2::1", &[])).await);
    assert!(!passes(&app, from("2001:db8:1:2:ffff::9", &[])).await, "one /64");
    assert!(passes(&app, from("2001:db8:1:3::1", &[])).await);
    assert!(passes(&app, from("203.0.113.1", &[])).await);
    assert!(!passes(&app, from("::ffff:203.0.113.1", &[])).await, "mapped");
    assert!(passes(&app, from("::ffff:203.0.113.2", &[])).await, "not all in one bucket");
    assert!(!passes(&app, from("64:ff9b::203.0.113.2", &[])).await, "translated by a NAT64");
    assert!(passes(&app, from("64:ff9b::203.0.113.3", &[])).await, "not all in one bucket");

    let whole = ClientIp::default().ipv6_prefix(128);
    let app = guarded(&layer(per_ip()).0.client_ip(whole));
    assert!(passes(&app, from("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1", &[])).await);
    assert!(passes(&app, from("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff2", &[])).await);
}

#[tokio::test]
async fn peers_are_found_in_several_places() {
    let socket: SocketAddr = "203.0.113.1:5000".parse().unwrap();
    let app = guarded(&layer(per_ip()).0);
    let connected = || {
        let mut request = get("/");
        request.extensions_mut().insert(ConnectInfo(socket));
        request
    };
    assert!(passes(&app, connected()).await && !passes(&app, connected()).await);
    assert!(!passes(&app, from("203.0.113.1", &[])).await);

    #[derive(Clone)]
    struct Mine(IpAddr);
    let app = guarded(&layer(per_ip()).0.peer(|request| Some(request.extensions.get::<Mine>()?.0)));
    let mine = |ip: &str| {
        let mut request = get("/");
        request.extensions_mut().insert(Mine(ip.parse().unwrap()));
        request
    };
    assert!(passes(&app, mine("203.0.113.1")).await && !passes(&app, mine("203.0.113.1")).await);
    assert!(passes(&app, mine("203.0.113.2")).await);
}

/// A server without `into_make_service_with_connect_info` must not be unlimited, nor answer 500.
#[tokio::test]
async fn addresses_that_are_not_known_are_one() {
    let app = guarded(&layer(per_ip()).0);
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    let app = guarded(&layer(per_ip()).0.on_missing("ip", OnMissing::Skip));
    assert_eq!(statuses(&app, "/", 2).await, [200, 200]);
    let refuse = OnMissing::Refuse(StatusCode::BAD_REQUEST);
    let app = guarded(&layer(per_ip()).0.on_missing("ip", refuse));
    assert_eq!(statuses(&app, "/", 1).await, [400]);
    assert!(passes(&app, from("203.0.113.1", &[])).await);
}

#[tokio::test]
async fn an_ip_of_ones_own_finding_counts() {
    let app = guarded(&layer(per_ip()).0.attribute("ip", |_| Some("198.51.100.1".into())));
    assert!(passes(&app, from("203.0.113.1", &[])).await);
    assert!(!passes(&app, from("203.0.113.2", &[])).await);
}
