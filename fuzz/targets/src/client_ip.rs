//! S3: no header field sent by a client changes its address behind proxies that append the addresses of their peers.
//! Parsing arbitrary fields never panics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::{Arbitrary, Unstructured};
use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};
use sluicegate::client_ip::{ClientIp, ForwardedBy, canonical};

#[derive(Arbitrary, Debug)]
struct Input {
    forged: Vec<Vec<u8>>,
    client: u128,
    /// Last three bytes of each proxy's address; true if it adds a separate field line.
    proxies: Vec<([u8; 3], bool)>,
    is_forwarded: bool,
}

/// Maximum number of proxies.
const PROXIES_MAX: usize = 16;

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let header =
        if input.is_forwarded { ForwardedBy::Forwarded } else { ForwardedBy::XForwardedFor };
    let by_networks = ClientIp::default().header(header).trust(["10.0.0.0/8".parse().unwrap()]);
    let client = canonical(Ipv6Addr::from_bits(input.client).into());
    let mut lines = input.forged;
    lines.retain(|line| HeaderValue::from_bytes(line).is_ok());

    let forged = headers(header, &lines);
    for header in [header, ForwardedBy::XRealIp] {
        let anywhere = ClientIp::default().header(header).trust(["::/0".parse().unwrap()]);
        let _ = anywhere.group(anywhere.of(&forged, client));
    }
    if by_networks.is_trusted(client) {
        return;
    }
    assert_eq!(by_networks.of(&forged, client), client);

    let proxies = &input.proxies[..input.proxies.len().min(PROXIES_MAX)];
    let mut speaker = client;
    for ([a, b, c], on_its_own) in proxies {
        let entry = written(header, speaker);
        match lines.last_mut() {
            Some(last) if !on_its_own => last.extend([b", ", entry.as_bytes()].concat()),
            _ => lines.push(entry.into()),
        }
        speaker = IpAddr::V4(Ipv4Addr::new(10, *a, *b, *c));
    }
    let headers = headers(header, &lines);
    assert_eq!(by_networks.of(&headers, speaker), client);
    let by_hops = ClientIp::default().header(header).hops(proxies.len() as u8);
    assert_eq!(by_hops.of(&headers, speaker), client);
}

fn written(header: ForwardedBy, address: IpAddr) -> String {
    match (header, address) {
        (ForwardedBy::Forwarded, IpAddr::V6(v6)) => format!("for=\"[{v6}]:80\";proto=http"),
        (ForwardedBy::Forwarded, IpAddr::V4(v4)) => format!("for={v4}"),
        (_, address) => address.to_string(),
    }
}

fn headers(header: ForwardedBy, lines: &[Vec<u8>]) -> HeaderMap {
    let name = match header {
        ForwardedBy::Forwarded => FORWARDED,
        _ => HeaderName::from_static("x-forwarded-for"),
    };
    let value = |line: &Vec<u8>| HeaderValue::from_bytes(line).unwrap();
    lines.iter().map(|line| (name.clone(), value(line))).collect()
}
