//! Clients behind proxies, case by case.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use sluicegate::client_ip::{ClientIp, ENTRIES_MAX, ForwardedBy};

const PROXY: &str = "10.0.0.1";
const CLIENT: &str = "198.51.100.7";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Trusts `10.0.0.0/8` and `2001:db8:ffff::/48`.
fn behind_proxies() -> ClientIp {
    let networks = ["10.0.0.0/8", "2001:db8:ffff::/48"];
    ClientIp::default().trust(networks.map(|network| network.parse().unwrap()))
}

fn lines(name: &'static str, lines: &[&str]) -> HeaderMap {
    let name = HeaderName::from_static(name);
    let value = |line: &&str| HeaderValue::from_bytes(line.as_bytes()).unwrap();
    lines.iter().map(|line| (name.clone(), value(line))).collect()
}

#[track_caller]
fn check(client_ip: &ClientIp, headers: &HeaderMap, peer: &str, expected: &str) {
    assert_eq!(client_ip.of(headers, ip(peer)), ip(expected), "{headers:?}");
}

#[test]
fn nobody_is_believed_by_default() {
    let nobody = ClientIp::default();
    assert!(!nobody.is_trusted(ip("127.0.0.1")));
    for name in ["x-forwarded-for", "x-real-ip"] {
        check(&nobody, &lines(name, &["1.2.3.4"]), "127.0.0.1", "127.0.0.1");
    }
    check(&behind_proxies(), &lines("x-forwarded-for", &["1.2.3.4"]), CLIENT, CLIENT);
}

#[test]
fn x_forwarded_for_from_the_right() {
    let cases: &[(&[&str], &str)] = &[
        (&[], PROXY),
        (&[""], PROXY),
        (&["198.51.100.7"], CLIENT),
        (&["1.2.3.4, 198.51.100.7"], CLIENT),
        (&["1.2.3.4,198.51.100.7,10.0.0.2"], CLIENT),
        (&["1.2.3.4", "198.51.100.7", "10.0.0.2"], CLIENT),
        (&["1.2.3.4", "198.51.100.7, 10.0.0.2", "10.0.0.3"], CLIENT),
        (&["198.51.100.7,,\t ,10.0.0.2,"], CLIENT),
        (&["198.51.100.7:50123"], CLIENT),
        (&["::ffff:198.51.100.7"], CLIENT),
        (&["::ffff:198.51.100.7, ::ffff:10.0.0.2"], CLIENT),
        (&["64:ff9b::198.51.100.7, 64:ff9b::10.0.0.2"], CLIENT),
        (&["[64:ff9b::c633:6407]:443"], CLIENT),
        (&["[2001:db8::1]:443, 10.0.0.2"], "2001:db8::1"),
        (&["2001:db8::1, [2001:db8:ffff::5]"], "2001:db8::1"),
        // All entries are trusted proxies: the farthest one is the client.
        (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // An entry that is not an address ends the walk.
        (&["198.51.100.7, unknown, 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7, _hidden"], PROXY),
        (&["198.51.100.7, 10.0.0.256, 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7, fe80::1%eth0, 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7:, 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7:99999, 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7:+80, 10.0.0.2"], "10.0.0.2"),
        (&["[198.51.100.7], 10.0.0.2"], "10.0.0.2"),
        (&["[2001:db8::1, 10.0.0.2"], "10.0.0.2"),
        (&["[2001:db8::1]80, 10.0.0.2"], "10.0.0.2"),
        (&["\"198.51.100.7\", 10.0.0.2"], "10.0.0.2"),
        (&["198.51.100.7 1.2.3.4, 10.0.0.2"], "10.0.0.2"),
        (&["Zürich, 10.0.0.2"], "10.0.0.2"),
    ];
    for (entries, expected) in cases {
        check(&behind_proxies(), &lines("x-forwarded-for", entries), PROXY, expected);
    }
}

#[test]
fn forwarded_from_the_right() {
    let cases: &[(&[&str], &str)] = &[
        (&["for=198.51.100.7"], CLIENT),
        (&["For=198.51.100.7;proto=https;by=203.0.113.43"], CLIENT),
        (&["proto=https; for=\"198.51.100.7:4711\" ;host=a"], CLIENT),
        (&["for=1.2.3.4, for=198.51.100.7;host=\"a, b\", for=10.0.0.2"], CLIENT),
        (&["for=1.2.3.4", "for=198.51.100.7", "for=10.0.0.2"], CLIENT),
        (&["for=\"[2001:db8::1]:4711\""], "2001:db8::1"),
        (&["for=\"[2001:db8::1]\";proto=http"], "2001:db8::1"),
        (&["for=\"[2001:db8::1]:_port\", for=\"10.0.0.2:_x.y-z\""], "2001:db8::1"),
        (&["for=\"[::ffff:198.51.100.7]\""], CLIENT),
        // Not by the letter, but written.
        (&["for=[2001:db8::1]:80"], "2001:db8::1"),
        (&["for=198.51.100.7:80"], CLIENT),
        // Whose quotes have a comma, or a quote, in them.
        (&["for=198.51.100.7;host=\"a\\\", for=1.2.3.4, \\\"b\""], CLIENT),
        (&["for=198.51.100.7;host=\"a\\\\\", for=10.0.0.2"], CLIENT),
        // A client's open quote does not reach into what a proxy added.
        (&["for=1.2.3.4;host=\", for=198.51.100.7"], CLIENT),
        (&["for=1.2.3.4;host=\"", "for=198.51.100.7;host=\"b\""], CLIENT),
        (&["for=1.2.3.4;host=\", for=\"198.51.100.7\""], CLIENT),
        (&["for=unknown"], PROXY),
        (&["for=198.51.100.7, for=_hidden, for=10.0.0.2"], "10.0.0.2"),
        (&["for=198.51.100.7, proto=https"], PROXY),
        (&["for=198.51.100.7;for=1.2.3.4"], PROXY),
        (&["for=198.51.100.7;"], PROXY),
        (&["for=\"198.51.100.7\"1"], PROXY),
        (&["for=\"198.51.100.7"], PROXY),
        (&["for"], PROXY),
        (&["for="], PROXY),
        (&["=198.51.100.7"], PROXY),
        (&["198.51.100.7"], PROXY),
    ];
    let forwarded = behind_proxies().header(ForwardedBy::Forwarded);
    for (entries, expected) in cases {
        check(&forwarded, &lines("forwarded", entries), PROXY, expected);
        // The other header says nothing then.
        check(&forwarded, &lines("x-forwarded-for", entries), PROXY, PROXY);
    }
}

#[test]
fn x_real_ip_is_one_address() {
    let real_ip = behind_proxies().header(ForwardedBy::XRealIp);
    let cases: &[(&[&str], &str)] = &[
        (&["198.51.100.7"], CLIENT),
        (&[" 198.51.100.7 "], CLIENT),
        // A trusted proxy may be the client.
        (&["10.0.0.9"], "10.0.0.9"),
        (&["1.2.3.4", "198.51.100.7"], CLIENT),
        (&["1.2.3.4, 198.51.100.7"], PROXY),
        (&["unknown"], PROXY),
        (&[], PROXY),
    ];
    for (entries, expected) in cases {
        check(&real_ip, &lines("x-real-ip", entries), PROXY, expected);
    }
    check(&real_ip, &lines("x-real-ip", &["1.2.3.4"]), CLIENT, CLIENT);
}

#[test]
fn hops_are_counted_from_the_right() {
    let headers = lines("x-forwarded-for", &["1.2.3.4, 198.51.100.7", "192.0.2.9, 192.0.2.8"]);
    let expected = ["192.0.2.1", "192.0.2.8", "192.0.2.9", CLIENT, "1.2.3.4"];
    for (hops, expected) in (0..).zip(expected) {
        check(&ClientIp::default().hops(hops), &headers, "192.0.2.1", expected);
    }
    // Fewer entries than proxies: it came past some of them.
    check(&ClientIp::default().hops(5), &headers, "192.0.2.1", "192.0.2.1");
    let with_garbage = lines("x-forwarded-for", &["198.51.100.7, unknown, 192.0.2.8"]);
    check(&ClientIp::default().hops(3), &with_garbage, "192.0.2.1", "192.0.2.8");
}

#[test]
fn hops_within_networks() {
    let client_ip = behind_proxies().hops(2);
    let headers = lines("x-forwarded-for", &["1.2.3.4, 198.51.100.7, 192.0.2.8"]);
    assert!(client_ip.is_trusted(ip(PROXY)) && !client_ip.is_trusted(ip("192.0.2.1")));
    check(&client_ip, &headers, PROXY, CLIENT);
    check(&client_ip, &headers, "192.0.2.1", "192.0.2.1");
    assert!(ClientIp::default().hops(1).is_trusted(ip("192.0.2.1")));
}

#[test]
fn ipv4_in_ipv6_is_ipv4() {
    for network in ["::ffff:10.0.0.0/104", "64:ff9b::10.0.0.0/104", "10.0.0.0/8"] {
        let client_ip = ClientIp::default().trust([network.parse().unwrap()]);
        for peer in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1"] {
            assert!(client_ip.is_trusted(ip(peer)), "{network} {peer}");
            check(&client_ip, &lines("x-forwarded-for", &["198.51.100.7"]), peer, CLIENT);
        }
        check(&client_ip, &HeaderMap::new(), "::ffff:192.0.2.1", "192.0.2.1");
        check(&client_ip, &HeaderMap::new(), "64:ff9b::192.0.2.1", "192.0.2.1");
    }
    // A prefix that a network chose itself cannot be recognised, nor can bits beside the well-known one.
    for other in ["64:ff9b:1::192.0.2.1", "64:ff9b::1:c000:201", "64:ff9c::192.0.2.1"] {
        check(&ClientIp::default(), &HeaderMap::new(), other, other);
    }
}

/// Ten thousand entries are as good as the nearest ones.
#[test]
fn the_walk_is_bounded() {
    let forwarded = vec!["10.0.0.2"; 10_000].join(", ");
    let headers = lines("x-forwarded-for", &["198.51.100.7", &forwarded]);
    check(&behind_proxies(), &headers, PROXY, "10.0.0.2");
    let most = vec!["10.0.0.2"; ENTRIES_MAX - 1].join(", ");
    check(&behind_proxies(), &lines("x-forwarded-for", &[CLIENT, &most]), PROXY, CLIENT);
    check(
        &behind_proxies(),
        &lines("x-forwarded-for", &[CLIENT, &most, "10.0.0.2"]),
        PROXY,
        "10.0.0.2",
    );
    let long = format!("{}{CLIENT}", " ".repeat(1000));
    check(&behind_proxies(), &lines("x-forwarded-for", &[&long, "10.0.0.2"]), PROXY, "10.0.0.2");
}

#[test]
fn a_group_is_its_first_address() {
    let cases = [
        (32, 64, "203.0.113.9", "203.0.113.9"),
        (24, 64, "203.0.113.9", "203.0.113.0"),
        (24, 64, "::ffff:203.0.113.9", "203.0.113.0"),
        (32, 64, "64:ff9b::203.0.113.9", "203.0.113.9"),
        (24, 64, "64:ff9b::203.0.113.9", "203.0.113.0"),
        (32, 64, "64:ff9b:1::203.0.113.9", "64:ff9b:1::"),
        (32, 64, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (32, 56, "2001:db8:1:2ff:3:4:5:6", "2001:db8:1:200::"),
        (32, 128, "2001:db8::6", "2001:db8::6"),
        (99, 200, "2001:db8::6", "2001:db8::6"),
        (99, 200, "203.0.113.9", "203.0.113.9"),
    ];
    for (ipv4, ipv6, address, expected) in cases {
        let client_ip = ClientIp::default().ipv4_prefix(ipv4).ipv6_prefix(ipv6);
        assert_eq!(client_ip.group(ip(address)), ip(expected));
    }
}
