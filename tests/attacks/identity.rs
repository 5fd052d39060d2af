//! Attempts to be another client.

use std::net::{IpAddr, Ipv4Addr};

use crate::common::{Client, Launch, Server, with_rules};

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
