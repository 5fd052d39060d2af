//! Attempts to be another client.

use std::net::{IpAddr, Ipv4Addr};

use crate::common::{Client, Launch, Server, check, with_rules};

/// Peer in no network of proxies.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 9));

/// Five per client address; users of the plan `gold` have a hundred, and no other limit.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "ip:{ip}"
name = "ip"
tokens = 1
period = "1d"
burst_capacity = 5

[[rule]]
rule_id = 2
key_pattern = "gold:{user_id}"
plan = "gold"
replaces = ["ip"]
tokens = 1
period = "1d"
burst_capacity = 100

[[rule]]
rule_id = 3
key_pattern = "tenant:{tenant}"
tokens = 1
period = "1d"
burst_capacity = 3
"#;

/// Sluicegate with headers for users, plans and tenants, and these proxies.
fn launch(proxies: &str) -> Launch {
    with_rules(RULES)
        .args(&["--authorize-user-header", "x-user-id", "--authorize-plan-header", "x-plan"])
        .args(&["--authorize-attribute-headers", "tenant=x-tenant", "--proxies-trusted", proxies])
}

/// Requests of a peer that `/v1/authorize` allows, of `count` in a row.
fn allowed(server: &Server, peer: IpAddr, count: usize, headers: &[(&str, &str)]) -> usize {
    let mut client = Client::connect_from(peer, server.address).unwrap();
    let mut ask = || client.request("GET", "/v1/authorize", headers, b"").unwrap().status;
    (0..count).filter(|_| ask() == 200).count()
}

#[test]
fn a09_a_stranger_cannot_choose_its_user_plan_or_tenant() {
    let server = launch("127.0.0.1").start();
    let gold = [("x-user-id", "ann"), ("x-plan", "gold")];
    let forged = allowed(&server, STRANGER, 20, &gold);
    eprintln!("a stranger in the plan of another user: {forged} of 20 allowed, 5 of its own");
    assert_eq!(forged, 5, "as without the headers");
    // It spends no tokens of the user and the tenant that it names.
    allowed(&server, STRANGER, 20, &[("x-tenant", "acme")]);
    let proxy = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(allowed(&server, proxy, 101, &gold), 100);
    assert_eq!(allowed(&server, proxy, 4, &[("x-tenant", "acme")]), 3);
    // A header with two values is ignored as well, not a contradiction.
    let twice = [("x-user-id", "ann"), ("x-user-id", "bob")];
    assert_eq!(allowed(&server, IpAddr::from([127, 0, 1, 10]), 20, &twice), 5);
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_authorize_untrusted_total 60"), "{metrics}");
    server.wait_for_log("headers of a peer outside proxies.trusted ignored");
}

/// A NAT64 in front of the service shows every IPv4 client as an address in `64:ff9b::/96`, which is within one /64.
#[test]
fn a15_clients_behind_a_nat64_do_not_share_a_bucket() {
    let server = launch("127.0.0.1").start();
    let proxy = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let as_client = |address: &str| allowed(&server, proxy, 10, &[("x-forwarded-for", address)]);
    let flood = as_client("64:ff9b::198.51.100.7");
    let other = as_client("64:ff9b::198.51.100.8");
    eprintln!("of 10 requests each: {flood} of one client allowed, then {other} of another");
    assert_eq!((flood, other), (5, 5));
    // The same client without the NAT64, and in every spelling.
    for spelling in ["198.51.100.7", "64:FF9B::c633:6407", "[64:ff9b::c633:6407]:80"] {
        assert_eq!(as_client(spelling), 0, "{spelling}");
    }
    // A proxy behind the NAT64 is the proxy.
    assert_eq!(as_client("198.51.100.9, 64:ff9b::127.0.0.1"), 5);
    assert_eq!(as_client("198.51.100.9"), 0);
    // The other doors for an address.
    let left = |ip: &str| check(&server, &serde_json::json!({"ip": ip}))["remaining"].clone();
    assert_eq!((left("203.0.113.1"), left("64:ff9b::203.0.113.1")), (4.into(), 3.into()));
}
