//! Delay of password attempts by client address.
//!
//! ```text
//!   wrong passwords   0 .. 4   5        6        7     8     9 and more
//!   next attempt      at once  250 ms   500 ms   1 s   2 s   4 s            one forgiven every 10 s
//! ```
//!
//! Every attempt waits, with the right password as with a wrong one: otherwise an early answer would tell them apart.
//! Connections that are authenticated already do not wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::{Clock, KeyedLimiter, MemoryStore, Quota, QuotaError, SystemClock};

use super::failures::{ADDRESSES_MAX, network};

/// Wrong passwords of an address that delay nothing.
const FREE: u64 = 5;
/// Wrong passwords counted beyond [`FREE`]; each doubles the delay, the last reaches [`DELAY_MAX`].
const DELAYED: u64 = 5;
/// First delay.
const DELAY_MIN: Duration = Duration::from_millis(250);
/// Longest delay.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(4);
/// Wrong passwords forgiven per minute.
const FORGIVEN_PER_MINUTE: u64 = 6;
/// Maximum number of attempts of one address that wait at once; further ones are refused unchecked.
const WAITING_PER_ADDRESS_MAX: usize = 16;
/// Maximum number of attempts that wait at once, over all addresses.
const WAITING_MAX: usize = 256;

const _: () = assert!(DELAY_MIN.as_millis() << (DELAYED - 1) == DELAY_MAX.as_millis());
const _: () = assert!(WAITING_PER_ADDRESS_MAX <= WAITING_MAX / 4);

/// Recent wrong passwords and waiting attempts by address. An IPv6 network counts as one address.
#[derive(Debug)]
pub(crate) struct PasswordDelays<C: Clock = SystemClock> {
    wrong: KeyedLimiter<IpAddr, C>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Numbers of waiting attempts. An address without any has no entry.
#[derive(Debug, Default)]
struct Waiting {
    by_address: HashMap<IpAddr, usize>,
    total: usize,
}

/// A waiting attempt, until this is dropped.
#[derive(Debug)]
pub(crate) struct WaitingAttempt {
    address: IpAddr,
    waiting: Arc<Mutex<Waiting>>,
}

impl PasswordDelays {
    /// No wrong passwords so far.
    ///
    /// # Errors
    ///
    /// Never: the quota is constant and valid.
    pub(crate) fn new() -> Result<Self, QuotaError> {
        let store = MemoryStore::builder().max_buckets(ADDRESSES_MAX).take_buckets_max(0);
        Self::on(store.build())
    }
}

impl<C: Clock> PasswordDelays<C> {
    fn on(store: MemoryStore<C>) -> Result<Self, QuotaError> {
        let quota = Quota::per_minute(FORGIVEN_PER_MINUTE)?.with_capacity(FREE + DELAYED)?;
        let wrong = KeyedLimiter::on(Arc::new(store), "wrong passwords", quota);
        Ok(Self { wrong, waiting: Arc::default() })
    }

    /// Time that the next attempt of this address must wait; `None` if it may be checked at once.
    pub(crate) fn delay(&self, address: IpAddr) -> Option<Duration> {
        let left = self.wrong.peek(&network(address)).remaining;
        let delayed = DELAYED.checked_sub(left)?;
        Some(DELAY_MIN.saturating_mul(1 << delayed).min(DELAY_MAX))
    }

    /// Begins to wait; `None` if too many attempts wait already.
    pub(crate) fn wait(&self, address: IpAddr) -> Option<WaitingAttempt> {
        let address = network(address);
        let mut waiting = self.waiting.lock();
        let of_address = waiting.by_address.get(&address).copied().unwrap_or(0);
        if of_address == WAITING_PER_ADDRESS_MAX || waiting.total == WAITING_MAX {
            return None;
        }
        waiting.by_address.insert(address, of_address + 1);
        waiting.total += 1;
        Some(WaitingAttempt { address, waiting: Arc::clone(&self.waiting) })
    }

    /// Counts a wrong password of this address.
    pub(crate) fn note(&self, address: IpAddr) {
        // Denied if the longest delay is reached already.
        let _ = self.wrong.take(&network(address), 1);
    }
}

impl Drop for WaitingAttempt {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        waiting.total -= 1;
        if let Some(count) = waiting.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                waiting.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sluicegate::{ManualClock, Micros};

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_delay_grows_to_its_bound_and_is_forgiven() {
        let clock = ManualClock::new(Micros::new(1_000_000));
        let delays =
            PasswordDelays::on(MemoryStore::builder().clock(clock.clone()).build()).unwrap();
        let (guesser, other) = (address("2001:db8::1"), address("2001:db8:0:1::1"));
        for _ in 0..FREE {
            assert_eq!(delays.delay(guesser), None);
            delays.note(guesser);
        }
        for ms in [250, 500, 1_000, 2_000, 4_000, 4_000, 4_000] {
            assert_eq!(delays.delay(guesser), Some(Duration::from_millis(ms)));
            delays.note(guesser);
        }
        // Another address of the network waits too, another network does not.
        assert_eq!(delays.delay(address("2001:db8::2")), Some(DELAY_MAX));
        assert_eq!(delays.delay(other), None);
        clock.advance(Duration::from_secs(50));
        assert_eq!(delays.delay(guesser), Some(DELAY_MIN));
        clock.advance(Duration::from_secs(10));
        assert_eq!(delays.delay(guesser), None);
    }

    #[test]
    fn few_attempts_wait_at_once() {
        let delays = PasswordDelays::new().unwrap();
        let one = address("192.0.2.1");
        let mut waiting: Vec<_> = std::iter::from_fn(|| delays.wait(one)).collect();
        assert_eq!(waiting.len(), WAITING_PER_ADDRESS_MAX);
        for n in 2..=255 {
            let of_another = address(&format!("192.0.2.{n}"));
            waiting.extend(std::iter::from_fn(|| delays.wait(of_another)));
        }
        assert_eq!(waiting.len(), WAITING_MAX);
        waiting.clear();
        let left = delays.waiting.lock();
        assert_eq!((left.total, left.by_address.len()), (0, 0));
    }
}
