//! Free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// First port: below the kernel's range for outgoing connections, so that no client occupies the port of a
/// server that is being restarted. A cluster node's second port is [`BUS_OFFSET`] above its first, and below
/// that range too.
const FIRST: u16 = 11_000;
const COUNT: u16 = 10_000;

/// Distance of a cluster node's bus port from its port.
pub(super) const BUS_OFFSET: u16 = 10_000;

const _: () = assert!(FIRST + COUNT - 1 + BUS_OFFSET < 32_768);

/// A loopback port without a listener that this process has not used recently.
///
/// Another process may take it before the caller does: the caller retries then.
///
/// # Panics
///
/// If all are taken.
pub fn free_port() -> u16 {
    // Concurrent test processes start at different ports.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = (std::process::id() % 97) as u16 * 103;
    for _ in 0..COUNT {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + offset.wrapping_add(turn) % COUNT;
        if is_free(port) && is_free(port + BUS_OFFSET) {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
