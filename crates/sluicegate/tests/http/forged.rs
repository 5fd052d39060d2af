//! S3: headers of a client do not change its address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::client_ip::{ClientIp, ForwardedBy, canonical};

use crate::http::support::cases;

/// Text that begins like what proxies write, and goes wrong in every way.
fn forged_line() -> impl Strategy<Value = Vec<u8>> {
    let parts = [
        "for=",
        "1.2.3.4",
        "10.0.0.9",
        "\"",
        "\\",
        ",",
        ";",
        " ",
        "[2001:db8::1]",
        ":80",
        "unknown",
        "host=\"",
        "=",
        "\"\"",
        "\\\"",
        "_x",
        "for=10.0.0.9, ",
        "\t",
    ];
    let pieces = vec(select(parts.to_vec()), 0..12).prop_map(|parts| parts.concat().into_bytes());
    let bytes = vec(any::<u8>(), 0..40);
    prop_oneof![pieces, bytes].prop_filter("a field", |line| HeaderValue::from_bytes(line).is_ok())
}

/// An address outside the trusted networks.
fn stranger() -> impl Strategy<Value = IpAddr> {
    let ipv4 = any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    let ipv6 = any::<u128>().prop_map(|bits| canonical(Ipv6Addr::from_bits(bits).into()));
    prop_oneof![ipv4, ipv6].prop_filter("outside", |address| !is_ours(*address))
}

fn is_ours(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10)
}

fn proxy() -> impl Strategy<Value = IpAddr> {
    any::<[u8; 3]>().prop_map(|[a, b, c]| IpAddr::V4(Ipv4Addr::new(10, a, b, c)))
}

/// Address in a form that proxies write.
fn written(header: ForwardedBy, address: IpAddr, style: u8) -> String {
    let bare = match (header, address, style % 2) {
        (ForwardedBy::XForwardedFor, IpAddr::V6(v6), 0) => v6.to_string(),
        (_, IpAddr::V6(v6), 0) => format!("[{v6}]"),
        (_, IpAddr::V6(v6), _) => format!("[{v6}]:4711"),
        (_, IpAddr::V4(v4), 0) => v4.to_string(),
        (_, IpAddr::V4(v4), _) => format!("{v4}:4711"),
    };
    match (header, style % 3) {
        (ForwardedBy::Forwarded, 0) => format!("for=\"{bare}\""),
        (ForwardedBy::Forwarded, 1) => format!("For=\"{bare}\";proto=https"),
        (ForwardedBy::Forwarded, _) => {
            format!("by=_me;for=\"{bare}\";host=\"x\\\", for=1.2.3.4, \\\\\"")
        }
        _ => bare,
    }
}

/// Appends a proxy's entry to the last line of a header, or as a line of its own.
fn add(lines: &mut Vec<Vec<u8>>, entry: &str, on_its_own: bool) {
    match lines.last_mut() {
        Some(last) if !on_its_own => last.extend([b", ", entry.as_bytes()].concat()),
        _ => lines.push(entry.into()),
    }
}

fn headers(header: ForwardedBy, lines: &[Vec<u8>]) -> HeaderMap {
    let name = match header {
        ForwardedBy::Forwarded => FORWARDED,
        _ => HeaderName::from_static("x-forwarded-for"),
    };
    lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line).unwrap())).collect()
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Through any proxies of ours, a client is who it is; by networks and by hops.
    #[test]
    fn behind_proxies(
        is_forwarded in any::<bool>(),
        forged in vec(forged_line(), 0..4),
        client in stranger(),
        proxies in vec((proxy(), any::<u8>(), any::<bool>()), 1..6),
    ) {
        let header = if is_forwarded { ForwardedBy::Forwarded } else { ForwardedBy::XForwardedFor };
        let (mut lines, mut speaker) = (forged, client);
        for (proxy, style, on_its_own) in &proxies {
            add(&mut lines, &written(header, speaker, *style), *on_its_own);
            speaker = *proxy;
        }
        let headers = headers(header, &lines);
        let by_networks = ClientIp::default().header(header).trust(["10.0.0.0/8".parse().unwrap()]);
        prop_assert_eq!(by_networks.of(&headers, speaker), client);
        let by_hops = ClientIp::default().header(header).hops(proxies.len() as u8);
        prop_assert_eq!(by_hops.of(&headers, speaker), client);
    }

    /// A client that bypasses all proxies keeps its own address, whatever its headers are.
    #[test]
    fn past_all_proxies(forged in vec(forged_line(), 0..4), client in stranger()) {
        for header in [ForwardedBy::XForwardedFor, ForwardedBy::Forwarded] {
            let headers = headers(header, &forged);
            let by_networks = ClientIp::default().header(header).trust(["10.0.0.0/8".parse().unwrap()]);
            prop_assert_eq!(by_networks.of(&headers, client), client);
            prop_assert_eq!(ClientIp::default().header(header).of(&headers, client), client);
        }
    }
}
