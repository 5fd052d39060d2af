//! Who a client is, behind any number of proxies.
//!
//! A header says what its sender likes, so that nobody is believed by default: the client is the peer of the
//! connection. Where proxies of your own stand in front, say which they are, and [`ClientIp`] goes from one to the
//! next:
//!
//! ```text
//!   198.51.100.7  ->  10.0.0.2  ->  10.0.0.1  ->  here          trusted: 10.0.0.0/8
//!
//!   X-Forwarded-For: 1.2.3.4, 198.51.100.7, 10.0.0.2            peer: 10.0.0.1
//!                    said by  seen by       seen by
//!                    client   10.0.0.2      10.0.0.1            client: 198.51.100.7
//! ```

mod entries;
mod node;

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net};

use entries::{Entries, Entry};

/// The most entries that are looked at, from the right. No request comes through more proxies than that.
pub const ENTRIES_MAX: usize = 32;

/// The default of [`ClientIp::ipv6_prefix`]: whoever has an IPv6 address has a network of this size.
pub const IPV6_PREFIX_DEFAULT: u8 = 64;

/// Which header proxies write clients' addresses to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardedBy {
    /// `X-Forwarded-For`: each proxy adds the address it was asked by.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the same, with names.
    Forwarded,
    /// `X-Real-IP`: the proxy writes one address, and nobody else's stays.
    XRealIp,
}

/// Who a request is from. Clones share everything.
///
/// By default that is the peer of its connection. A header is read only if the peer is
/// [trusted](Self::is_trusted), from the right, which is where the nearest proxy wrote, and no further than
/// trusted proxies wrote. What is no address ends the walk: then the client is the last proxy that was seen.
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
    /// Believes proxies in these networks, besides those given before.
    #[must_use]
    pub fn trust(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        let known = self.trusted.iter().copied();
        self.trusted = known.chain(networks.into_iter().map(unmapped)).collect();
        self
    }

    /// There are so many proxies in a row, the peer among them, and clients cannot come past any of them: the
    /// client is the entry that the farthest one wrote. If there are fewer entries the client is the peer.
    ///
    /// This is for proxies whose networks are not known. With [networks](Self::trust) too, the peer must be in one
    /// of them; without, every peer is believed.
    #[must_use]
    pub fn hops(mut self, hops: u8) -> Self {
        self.hops = hops;
        self
    }

    /// Reads this header; `X-Forwarded-For` if nothing is said.
    #[must_use]
    pub fn header(mut self, header: ForwardedBy) -> Self {
        self.header = header;
        self
    }

    /// IPv4 addresses that share so many bits are one client: 32 by default, and at most.
    #[must_use]
    pub fn ipv4_prefix(mut self, bits: u8) -> Self {
        self.ipv4_prefix = bits.min(32);
        self
    }

    /// IPv6 addresses that share so many bits are one client: [`IPV6_PREFIX_DEFAULT`] by default, at most 128.
    #[must_use]
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        self.ipv6_prefix = bits.min(128);
        self
    }

    /// Is this peer believed about whom it speaks for?
    #[must_use]
    pub fn is_trusted(&self, peer: IpAddr) -> bool {
        if self.trusted.is_empty() {
            self.hops > 0
        } else {
            self.is_in_trusted(peer.to_canonical())
        }
    }

    /// The client's address, whole.
    #[must_use]
    pub fn of(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.is_trusted(peer) {
            return peer;
        }
        let mut entries = Entries::new(self.header, headers);
        match (self.header, self.hops) {
            // One proxy alone says who it is.
            (ForwardedBy::XRealIp, _) => match entries.next() {
                Some(Entry::Address(address)) => address,
                Some(Entry::Garbage) | None => peer,
            },
            (_, 0) => self.by_networks(entries, peer),
            (_, hops) => by_hops(entries, peer, hops),
        }
    }

    /// The first address of the network that counts as one client with this address: what the attribute `ip` is.
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
        let address = address.to_canonical();
        let prefix = if address.is_ipv4() { self.ipv4_prefix } else { self.ipv6_prefix };
        IpNet::new(address, prefix).map_or(address, |network| network.network())
    }

    /// As long as it is a proxy of ours that speaks, what it says is so.
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

/// The entry that the farthest of so many proxies wrote.
fn by_hops(mut entries: Entries<'_>, peer: IpAddr, hops: u8) -> IpAddr {
    let mut speaker = peer;
    for _ in 0..hops {
        match entries.next() {
            Some(Entry::Address(address)) => speaker = address,
            Some(Entry::Garbage) => break,
            // It did not come through all of them, and so nobody knows who wrote what there is.
            None => return peer,
        }
    }
    speaker
}

/// The same network in IPv4, if it is one that IPv6 has a place for: addresses are compared without that.
fn unmapped(network: IpNet) -> IpNet {
    const MAPPED_BITS: u8 = 96;
    match network {
        IpNet::V6(v6) if v6.prefix_len() >= MAPPED_BITS => v6
            .addr()
            .to_ipv4_mapped()
            .and_then(|address| Ipv4Net::new(address, v6.prefix_len() - MAPPED_BITS).ok())
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
