//! Address of a client behind any number of proxies.
//!
//! Any sender can forge a header, so no header is trusted by default: the client is the peer of the connection. With
//! proxies of your own in front, configure their networks, and [`ClientIp`] follows the header from one to the next:
//!
//! ```text
//!   198.51.100.7  ->  10.0.0.2  ->  10.0.0.1  ->  here          trusted: 10.0.0.0/8
//!
//!   X-Forwarded-For: 1.2.3.4, 198.51.100.7, 10.0.0.2            peer: 10.0.0.1
//!                    forged   added by      added by
//!                    client   10.0.0.2      10.0.0.1            client: 198.51.100.7
//! ```

mod entries;
mod node;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net};

use entries::{Entries, Entry};

/// Most entries that are read, from the right. No request comes through more proxies.
pub const ENTRIES_MAX: usize = 32;

/// Default of [`ClientIp::ipv6_prefix`]: a client with an IPv6 address usually has a network of this size.
pub const IPV6_PREFIX_DEFAULT: u8 = 64;

/// First 96 bits of an IPv4 address that a NAT64 translated, with the well-known prefix of RFC 6052: `64:ff9b::/96`.
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// Prefix length of IPv6 networks that hold all IPv4 addresses, in bits.
const IPV4_INSIDE_BITS: u8 = 96;

/// Header with the clients' addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardedBy {
    /// `X-Forwarded-For`: each proxy appends the address of its peer.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the same, with named parameters.
    Forwarded,
    /// `X-Real-IP`: the proxy writes one address and removes any other.
    XRealIp,
}

/// Finds the address of a request's client. Clones share state.
///
/// By default that is the peer of its connection. A header is read only if the peer is
/// [trusted](Self::is_trusted), from the right, which is where the nearest proxy wrote, and no further than
/// trusted proxies wrote. An entry that is not an address ends the walk: then the client is the last proxy found.
///
/// ```
/// use http::HeaderMap;
/// use sluicegate::client_ip::ClientIp;
///
/// let client_ip = ClientIp::default().trust(["10.0.0.0/8".parse()?]);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", "1.2.3.4, 198.51.100.7, 10.0.0.2".parse()?);
/// assert_eq!(client_ip.of(&headers, "10.0.0.1".parse()?).to_string(), "198.51.100.7");
/// assert_eq!(client_ip.of(&headers, "192.0.2.1".parse()?).to_string(), "192.0.2.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIp {
    trusted: Arc<[IpNet]>,
    hops: u8,
    header: ForwardedBy,
    ipv4_prefix: u8,
    ipv6_prefix: u8,
}

impl ClientIp {
    /// Trusts proxies in these networks, in addition to those given before.
    #[must_use]
    pub fn trust(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        let known = self.trusted.iter().copied();
        self.trusted = known.chain(networks.into_iter().map(canonical_network)).collect();
        self
    }

    /// Sets the number of proxies in a row, including the peer, where clients cannot bypass any of them: the client is
    /// the entry that the farthest one wrote. With fewer entries the client is the peer.
    ///
    /// This is for proxies whose networks are not known. With [networks](Self::trust) too, the peer must be in one of
    /// them; without, every peer is trusted.
    #[must_use]
    pub fn hops(mut self, hops: u8) -> Self {
        self.hops = hops;
        self
    }

    /// Sets the header; `X-Forwarded-For` by default.
    #[must_use]
    pub fn header(mut self, header: ForwardedBy) -> Self {
        self.header = header;
        self
    }

    /// Sets the prefix length, in bits, of the IPv4 network that counts as one client: 32 by default, at most 32.
    #[must_use]
    pub fn ipv4_prefix(mut self, bits: u8) -> Self {
        self.ipv4_prefix = bits.min(32);
        self
    }

    /// Sets the prefix length, in bits, of the IPv6 network that counts as one client: [`IPV6_PREFIX_DEFAULT`] by
    /// default, at most 128.
    #[must_use]
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        self.ipv6_prefix = bits.min(128);
        self
    }

    /// Returns whether the header of this peer is trusted.
    #[must_use]
    pub fn is_trusted(&self, peer: IpAddr) -> bool {
        if self.trusted.is_empty() { self.hops > 0 } else { self.is_in_trusted(canonical(peer)) }
    }

    /// The client's full address.
    #[must_use]
    pub fn of(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let peer = canonical(peer);
        if !self.is_trusted(peer) {
            return peer;
        }
        let mut entries = Entries::new(self.header, headers);
        match (self.header, self.hops) {
            // One proxy alone writes this header.
            (ForwardedBy::XRealIp, _) => match entries.next() {
                Some(Entry::Address(address)) => address,
                Some(Entry::Garbage) | None => peer,
            },
            (_, 0) => self.by_networks(entries, peer),
            (_, hops) => by_hops(entries, peer, hops),
        }
    }

    /// First address of the network that counts as one client with this address: the value of the attribute `ip`.
    ///
    /// ```
    /// # use sluicegate::client_ip::ClientIp;
    /// let client_ip = ClientIp::default();
    /// assert_eq!(client_ip.group("2001:db8:1:2:3:4:5:6".parse()?).to_string(), "2001:db8:1:2::");
    /// assert_eq!(client_ip.group("::ffff:203.0.113.9".parse()?).to_string(), "203.0.113.9");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn group(&self, address: IpAddr) -> IpAddr {
        let address = canonical(address);
        let prefix = if address.is_ipv4() { self.ipv4_prefix } else { self.ipv6_prefix };
        IpNet::new(address, prefix).map_or(address, |network| network.network())
    }

    /// Follows the entries as long as the last address is a trusted proxy.
    fn by_networks(&self, mut entries: Entries<'_>, peer: IpAddr) -> IpAddr {
        let mut speaker = peer;
        while self.is_in_trusted(speaker) {
            match entries.next() {
                Some(Entry::Address(address)) => speaker = address,
                Some(Entry::Garbage) | None => break,
            }
        }
        speaker
    }

    fn is_in_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// The entry that the farthest of the configured number of proxies wrote.
fn by_hops(mut entries: Entries<'_>, peer: IpAddr, hops: u8) -> IpAddr {
    let mut speaker = peer;
    for _ in 0..hops {
        match entries.next() {
            Some(Entry::Address(address)) => speaker = address,
            Some(Entry::Garbage) => break,
            // The request did not come through all of them, so the author of the entries is unknown.
            None => return peer,
        }
    }
    speaker
}

/// The IPv4 address inside an IPv6 address, if there is one: IPv4-mapped, or translated by a NAT64 with the well-known
/// prefix `64:ff9b::/96`. Other addresses are returned unchanged.
///
/// [`ClientIp`] treats every address like this. Without it all IPv4 clients behind a NAT64 would be one IPv6 network, and
/// so one client. Prefixes that a network chose itself cannot be recognised.
///
/// ```
/// # use sluicegate::client_ip::canonical;
/// assert_eq!(canonical("64:ff9b::203.0.113.9".parse()?).to_string(), "203.0.113.9");
/// assert_eq!(canonical("::ffff:203.0.113.9".parse()?).to_string(), "203.0.113.9");
/// assert_eq!(canonical("2001:db8::1".parse()?).to_string(), "2001:db8::1");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => ipv4_inside(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The IPv4 address inside an IPv6 address.
fn ipv4_inside(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let translated = address.octets();
    let translated =
        translated.strip_prefix(&NAT64).and_then(|rest| <[u8; 4]>::try_from(rest).ok());
    address.to_ipv4_mapped().or(translated.map(Ipv4Addr::from))
}

/// The IPv4 network inside an IPv6 network, if there is one: addresses are compared in their IPv4 form.
fn canonical_network(network: IpNet) -> IpNet {
    match network {
        IpNet::V6(v6) if v6.prefix_len() >= IPV4_INSIDE_BITS => ipv4_inside(v6.addr())
            .and_then(|address| Ipv4Net::new(address, v6.prefix_len() - IPV4_INSIDE_BITS).ok())
            .map_or(network, IpNet::V4),
        _ => network,
    }
}

impl Default for ClientIp {
    fn default() -> Self {
        Self {
            trusted: Arc::default(),
            hops: 0,
            header: ForwardedBy::default(),
            ipv4_prefix: 32,
            ipv6_prefix: IPV6_PREFIX_DEFAULT,
        }
    }
}
