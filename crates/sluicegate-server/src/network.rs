//! Networks of clients, by which their use of shared memory and connections is limited.

use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate::client_ip::canonical;

/// Lengths of the networks: about the addresses that one client can have.
const IPV4_BITS: u8 = 24;
const IPV6_BITS: u8 = 64;

/// Network of an address.
pub(crate) fn network(address: IpAddr) -> IpNet {
    let address = canonical(address);
    let bits = if address.is_ipv4() { IPV4_BITS } else { IPV6_BITS };
    // Both lengths are valid for their family.
    IpNet::new(address, bits).map_or_else(|_| address.into(), |network| network.trunc())
}
