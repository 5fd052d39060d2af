//! Attempts to be another client.

use std::net::{IpAddr, Ipv4Addr};

use crate::common::{Client, Launch, Server, check, suite_line, with_rules};

/// Peer in no network of proxies.
const UNTRUSTED_PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 9));

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
fn a09_an_untrusted_peer_cannot_choose_its_user_plan_or_tenant() {
    let server = launch("127.0.0.1").start();
    let gold = [("x-user-id", "ann"), ("x-plan", "gold")];
    let forged = allowed(&server, UNTRUSTED_PEER, 20, &gold);
    eprintln!(
        "an untrusted peer in the plan of another user: {forged} of 20 allowed, 5 of its own"
    );
    assert_eq!(forged, 5, "as without the headers");
    // It spends no tokens of the user and the tenant that it names.
    allowed(&server, UNTRUSTED_PEER, 20, &[("x-tenant", "acme")]);
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

/// Fields in which proxies name their client, with an address in place of `?`.
const FORWARDING: [&str; 9] = [
    "x-forwarded-for: ?",
    "forwarded: for=?",
    "x-real-ip: ?",
    "x-client-ip: ?",
    "true-client-ip: ?",
    "cf-connecting-ip: ?",
    "x-original-forwarded-for: ?",
    "x-forwarded-for: ?\r\nx-forwarded-for: 127.0.0.1",
    "x-forwarded-for: 127.0.0.1, ?\r\nforwarded: for=?;by=127.0.0.1\r\nx-real-ip: ?",
];

/// Requests to `/v1/authorize` that are allowed, each with another forged client.
fn allowed_as_others(server: &Server, peer: IpAddr, fields: impl Fn(usize) -> String) -> usize {
    let mut client = Client::connect_from(peer, server.address).unwrap();
    let mut ask = |number| {
        let (caller, fields) = (suite_line("/v1/authorize"), fields(number));
        let head = format!("GET /v1/authorize HTTP/1.1\r\nhost: x\r\n{caller}{fields}\r\n\r\n");
        client.send(head.as_bytes()).unwrap();
        client.read_response().unwrap().status
    };
    (0..20).filter(|number| ask(*number) == 200).count()
}

#[test]
fn no_forwarding_field_makes_an_untrusted_peer_another_client() {
    for (number, field) in (1..).zip(FORWARDING) {
        let server = launch("127.0.0.1").start();
        let peer = IpAddr::from([127, 0, 1, number]);
        let forged = |n: usize| field.replace('?', &format!("203.0.113.{n}"));
        assert_eq!(allowed_as_others(&server, peer, forged), 5, "{field}");
    }
    eprintln!("20 forged clients by each of {} fields: 5 allowed", FORWARDING.len());
}

/// A proxy appends the address of its peer to what the peer has sent.
#[test]
fn entries_of_a_client_do_not_count_however_many() {
    let server = launch("127.0.0.1").start();
    let behind = |entries: String| format!("x-forwarded-for: {entries}, 198.51.100.7");
    let proxy = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let hostile = |n: usize| match n % 5 {
        // As long as a header may be.
        0 => behind(vec!["1.2.3.4"; 6_000].join(",")),
        1 => behind("127.0.0.1,".repeat(5_000)),
        2 => behind(format!("{}203.0.113.{n}", "\", \"".repeat(1_000))),
        3 => format!("{}x-forwarded-for: 198.51.100.7", "x-forwarded-for: 1.2.3.4\r\n".repeat(100)),
        _ => behind(format!("203.0.113.{n}")),
    };
    assert_eq!(allowed_as_others(&server, proxy, hostile), 5);
    // Ten thousand are more than a header may have: refused, which is no permission.
    let mut client = server.connect();
    let long = vec!["203.0.113.9"; 10_000].join(", ");
    let head = format!("GET /v1/authorize HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {long}\r\n\r\n");
    // The service may answer and close before it has read all of it.
    let _ = client.send(head.as_bytes());
    let answer = client.read_to_end();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_proxy_header_is_believed_only_where_it_is_expected_and_of_trusted_peers() {
    const HEADER: &str = "PROXY TCP4 203.0.113.9 127.0.0.1 5000 80\r\n";
    let ask = |server: &Server, before: &str| {
        let mut client = Client::connect_from(UNTRUSTED_PEER, server.address).unwrap();
        let caller = suite_line("/v1/authorize");
        let request =
            format!("GET /v1/authorize HTTP/1.1\r\nhost: x\r\n{caller}connection: close\r\n\r\n");
        let _ = client.send(format!("{before}{request}").as_bytes());
        client.read_to_end()
    };
    let plain = launch("127.0.0.1").start();
    assert!(!ask(&plain, HEADER).starts_with("HTTP/1.1 2"));
    let expecting = |proxies: &str| {
        launch(proxies)
            .args(&["--listen-proxy-protocol", "http", "--listen-anonymous", "true"])
            .env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple")
            .start()
    };
    let distrustful = expecting("127.0.0.1");
    assert_eq!(ask(&distrustful, HEADER), "");
    // Only the first header is the proxy's: a second one is the client's.
    let trusting = expecting("127.0.1.0/24");
    assert!(ask(&trusting, HEADER).starts_with("HTTP/1.1 200 "));
    let twice = ask(&trusting, &[HEADER, "PROXY TCP4 203.0.113.10 127.0.0.1 1 2\r\n"].concat());
    assert!(!twice.starts_with("HTTP/1.1 2"), "{twice}");
}
