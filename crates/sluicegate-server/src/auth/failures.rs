//! Limit on wrong tokens by client address.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::client_ip::canonical;
use sluicegate::{Clock, KeyedLimiter, MemoryStore, Quota, QuotaError, SystemClock};

use crate::log_limit::LogLimit;

/// Maximum number of addresses counted individually; further ones share a count.
pub(super) const ADDRESSES_MAX: usize = 65_536;

/// Prefix length of an IPv6 network. A host chooses the remaining bits freely.
const NETWORK_BITS: u32 = 64;

/// Number of slots for the last wrong token of an address. An address whose entry is evicted only pays again for the
/// same token.
const SLOTS: usize = 1_024;

/// Recent wrong tokens by address.
#[derive(Debug)]
pub(crate) struct Failures<C: Clock = SystemClock> {
    wrong_tokens: KeyedLimiter<IpAddr, C>,
    /// By cause and address. A cause is identified by the address of its limit in memory.
    log_lines: KeyedLimiter<(usize, IpAddr), C>,
    last: LastWrong,
}

/// An address and the hash of a wrong token that it sent.
type Guess = (IpAddr, [u8; 32]);

/// Last wrong token of each address.
struct LastWrong {
    slots: Mutex<Vec<Option<Guess>>>,
    /// Randomly seeded, so that a client cannot choose an address that evicts another's entry.
    hasher: RandomState,
}

impl Failures {
    /// Allows `per_minute` wrong tokens from each address.
    pub(crate) fn new(per_minute: u64) -> Result<Self, QuotaError> {
        let store = MemoryStore::builder().max_buckets(ADDRESSES_MAX).take_buckets_max(0);
        Self::on(Arc::new(store.build()), per_minute)
    }
}

impl<C: Clock> Failures<C> {
    fn on(store: Arc<MemoryStore<C>>, per_minute: u64) -> Result<Self, QuotaError> {
        let wrong_tokens = Quota::per_minute(per_minute)?;
        Ok(Self {
            log_lines: KeyedLimiter::on(Arc::clone(&store), "log lines", Quota::per_minute(1)?),
            wrong_tokens: KeyedLimiter::on(store, "wrong tokens", wrong_tokens),
            last: LastWrong::new(),
        })
    }

    /// Time until this address may send a token again; `None` if it may now.
    pub(crate) fn wait(&self, address: IpAddr) -> Option<Duration> {
        let network = network(address);
        if self.wrong_tokens.peek(&network).remaining > 0 {
            return None;
        }
        // The bucket is empty, so this takes nothing and only yields the wait. If it refills in between, one token is
        // spent and there is no wait.
        self.wrong_tokens.take(&network, 1).retry_after().filter(|wait| !wait.is_zero())
    }

    /// Counts a wrong token of this address, and returns the wait if it exceeded the limit, which concurrent requests
    /// may have used up. A repeated token is not a new guess and counts once: clients keep sending a revoked token.
    pub(crate) fn note(&self, address: IpAddr, token: [u8; 32]) -> Option<Duration> {
        let network = network(address);
        if !self.last.is_new(network, token) {
            return None;
        }
        let taken = self.wrong_tokens.take(&network, 1);
        taken.retry_after().filter(|wait| !wait.is_zero())
    }

    /// True if a line of this cause about this address may be logged: once per minute.
    pub(crate) fn may_log(&self, address: IpAddr, cause: &'static LogLimit) -> bool {
        let cause = std::ptr::from_ref(cause).addr();
        self.log_lines.take(&(cause, network(address)), 1).is_granted()
    }
}

impl LastWrong {
    fn new() -> Self {
        Self { slots: Mutex::new(vec![None; SLOTS]), hasher: RandomState::new() }
    }

    /// Stores the token as the address's last; true if it differs from the previous one.
    fn is_new(&self, address: IpAddr, token: [u8; 32]) -> bool {
        let mut slots = self.slots.lock();
        let slot = self.hasher.hash_one(address) as usize % slots.len();
        let guess = Some((address, token));
        std::mem::replace(&mut slots[slot], guess) != guess
    }
}

impl fmt::Debug for LastWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastWrong").finish_non_exhaustive()
    }
}

/// Unit of counting: an IPv4 address, or an IPv6 network.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match canonical(address) {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (u128::BITS - NETWORK_BITS);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use sluicegate::{ManualClock, Micros};

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Hash of the nth guess.
    fn guess(n: u8) -> [u8; 32] {
        [n; 32]
    }

    #[test]
    fn wrong_tokens_are_counted_by_address_and_forgiven_in_time() {
        let clock = ManualClock::new(Micros::new(1_000_000));
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let failures = Failures::on(Arc::new(store), 3).unwrap();
        let (one, other) = (address("203.0.113.9"), address("203.0.113.10"));
        for n in 0..3 {
            assert_eq!(failures.wait(one), None);
            assert_eq!(failures.note(one, guess(n)), None);
        }
        let twenty_seconds = Some(Duration::from_secs(20));
        assert_eq!(failures.wait(one), twenty_seconds);
        assert_eq!(failures.note(one, guess(3)), twenty_seconds);
        assert_eq!(failures.wait(other), None);
        clock.advance(Duration::from_secs(20));
        assert_eq!(failures.wait(one), None);
        assert_eq!(failures.note(one, guess(4)), None);
        assert_eq!(failures.wait(one), twenty_seconds);
    }

    #[test]
    fn the_same_wrong_token_again_counts_once() {
        let failures = Failures::new(3).unwrap();
        let (one, other) = (address("2001:db8:1:2::1"), address("203.0.113.10"));
        for _ in 0..100 {
            assert_eq!(failures.note(one, guess(1)), None);
            assert_eq!(failures.note(other, guess(2)), None);
        }
        assert_eq!(failures.wait(one), None);
        assert_eq!(failures.note(one, guess(2)), None);
        // All addresses of a network share the last token.
        assert_eq!(failures.note(address("2001:db8:1:2::2"), guess(2)), None);
        assert_eq!(failures.note(one, guess(1)), None);
        assert!(failures.wait(one).is_some());
        assert_eq!(failures.wait(other), None);
    }

    #[test]
    fn one_line_of_each_cause_in_a_minute() {
        static CAUSE: LogLimit = LogLimit::new();
        static OTHER_CAUSE: LogLimit = LogLimit::new();
        let clock = ManualClock::new(Micros::new(1_000_000));
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let failures = Failures::on(Arc::new(store), 3).unwrap();
        let one = address("203.0.113.9");
        assert!(failures.may_log(one, &CAUSE));
        assert!(!failures.may_log(one, &CAUSE));
        assert!(failures.may_log(one, &OTHER_CAUSE), "no cause hides another");
        assert!(!failures.may_log(one, &OTHER_CAUSE));
        assert!(failures.may_log(address("203.0.113.10"), &CAUSE));
        clock.advance(Duration::from_secs(60));
        assert!(failures.may_log(one, &CAUSE));
    }

    #[test]
    fn addresses_that_one_can_choose_are_one() {
        let same = |one, other| network(address(one)) == network(address(other));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(same("::ffff:203.0.113.9", "203.0.113.9"));
        assert!(same("64:ff9b::203.0.113.9", "203.0.113.9"));
        assert!(!same("64:ff9b::203.0.113.9", "64:ff9b::203.0.113.10"));
        assert!(!same("203.0.113.9", "203.0.113.10"));
    }
}
