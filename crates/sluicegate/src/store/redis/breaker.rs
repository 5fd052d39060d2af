//! Circuit breaker of one server.
//!
//! ```text
//!             ten failures in a row, 250 ms of failures, or a lost connection
//!   Closed ─────────────────────────────────────────────────────────────▶ Open
//!     ▲                                                                  │  ▲
//!     │ the probe is answered                   a probe                  │  │ it fails
//!     └───────────────────────────── HalfOpen ◀──────────────────────────┘  │
//!                                        └──────────────────────────────────┘
//! ```
//!
//! Time is passed in: microseconds of any clock that does not step. The whole state is one word, so every
//! step is atomic, and a check costs one load.
//!
//! No crate: the breakers on the registry wrap a call and read the clock themselves, while this one is
//! tripped by the connection's task, probed by it, and read by callers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of consecutive failures that opens the breaker.
pub(super) const FAILURES_MAX: u8 = 10;

/// Duration of failures without a success that opens the breaker, in microseconds.
pub(super) const FAILING_MAX_US: u64 = 250_000;

/// Minimum of failures in that duration: one slow reply is not an outage.
const FAILURES_MIN: u8 = 2;

/// State of a server's circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerState {
    /// Calls are sent.
    Closed,
    /// A single probe is pending; calls are refused.
    HalfOpen,
    /// Calls are refused: the server recently failed to reply.
    Open,
}

impl BreakerState {
    /// Name in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// Transition that is worth logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Change {
    Opened,
    Closed,
    None,
}

/// Circuit breaker of one server. Starts closed.
#[derive(Debug)]
pub(super) struct Breaker(AtomicU64);

/// The unpacked word: two bits of state, eight of failures, and 54 of the time of the first failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    state: BreakerState,
    /// Consecutive failures while closed.
    failures: u8,
    /// Time of the first of them, in microseconds.
    since: u64,
}

const SINCE_MAX: u64 = (1 << 54) - 1;

impl Word {
    const CLOSED: Self = Self { state: BreakerState::Closed, failures: 0, since: 0 };
    const HALF_OPEN: Self = Self { state: BreakerState::HalfOpen, failures: 0, since: 0 };
    const OPEN: Self = Self { state: BreakerState::Open, failures: 0, since: 0 };

    const fn pack(self) -> u64 {
        let state = match self.state {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        };
        state | (self.failures as u64) << 2 | self.since << 10
    }

    const fn unpack(word: u64) -> Self {
        let state = match word & 0b11 {
            0 => BreakerState::Closed,
            1 => BreakerState::HalfOpen,
            _ => BreakerState::Open,
        };
        Self { state, failures: (word >> 2 & 0xff) as u8, since: word >> 10 }
    }

    /// The word after a failure at `now`.
    fn failed(self, now: u64) -> Self {
        if self.state != BreakerState::Closed {
            return self;
        }
        let now = now.min(SINCE_MAX);
        let since = if self.failures == 0 { now } else { self.since };
        let failures = self.failures.saturating_add(1);
        let long = failures >= FAILURES_MIN && now.saturating_sub(since) >= FAILING_MAX_US;
        if failures >= FAILURES_MAX || long {
            return Self::OPEN;
        }
        Self { state: BreakerState::Closed, failures, since }
    }

    /// The word after a success. Only a probe closes: a reply to a call that was sent before the breaker
    /// opened proves nothing.
    fn succeeded(self) -> Self {
        if self.state == BreakerState::Closed { Self::CLOSED } else { self }
    }

    /// The word after the end of a probe. A breaker that opened meanwhile stays open.
    fn probed(self, answered: bool) -> Self {
        match self.state {
            BreakerState::HalfOpen if answered => Self::CLOSED,
            BreakerState::HalfOpen => Self::OPEN,
            BreakerState::Closed | BreakerState::Open => self,
        }
    }
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(Word::CLOSED.pack()))
    }

    pub(super) fn state(&self) -> BreakerState {
        Word::unpack(self.0.load(Ordering::Acquire)).state
    }

    /// May a call be sent?
    pub(super) fn is_closed(&self) -> bool {
        self.state() == BreakerState::Closed
    }

    /// Records a reply in time, of any kind.
    pub(super) fn success(&self) {
        // Fast path: usually nothing changes, and nothing is written.
        if self.0.load(Ordering::Relaxed) != Word::CLOSED.pack() {
            let _ = self.step(Word::succeeded);
        }
    }

    /// Records a call without a reply in time.
    pub(super) fn failure(&self, now: u64) -> Change {
        self.step(|word| word.failed(now))
    }

    /// Opens the breaker: the connection is lost, or the server refuses to serve.
    pub(super) fn trip(&self) -> Change {
        self.step(|_| Word::OPEN)
    }

    /// Begins a probe, if the breaker is open and no probe is pending. After `true`, the caller has to end it
    /// by [`Breaker::probed`] or [`Breaker::trip`].
    pub(super) fn probe(&self) -> bool {
        let open = Word::OPEN.pack();
        let half_open = Word::HALF_OPEN.pack();
        self.0.compare_exchange(open, half_open, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends a probe.
    pub(super) fn probed(&self, answered: bool) -> Change {
        self.step(|word| word.probed(answered))
    }

    fn step(&self, next: impl Fn(Word) -> Word) -> Change {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let (old, new) = (Word::unpack(word), next(Word::unpack(word)));
            let stored =
                self.0.compare_exchange_weak(word, new.pack(), Ordering::AcqRel, Ordering::Acquire);
            match stored {
                Ok(_) => return change(old.state, new.state),
                Err(now) => word = now,
            }
        }
    }
}

/// The transition to log. A failed probe is not one: it would be logged ten times a second.
fn change(old: BreakerState, new: BreakerState) -> Change {
    match (old, new) {
        (BreakerState::Closed, BreakerState::Open) => Change::Opened,
        (BreakerState::HalfOpen, BreakerState::Closed) => Change::Closed,
        _ => Change::None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn fail(breaker: &Breaker, times: u8, now: u64) -> Change {
        (0..times).fold(Change::None, |_, _| breaker.failure(now))
    }

    fn opened() -> Breaker {
        let breaker = Breaker::new();
        assert_eq!(breaker.trip(), Change::Opened);
        breaker
    }

    #[test]
    fn ten_failures_in_a_row_open_it() {
        let breaker = Breaker::new();
        assert_eq!(fail(&breaker, 9, 5), Change::None);
        assert!(breaker.is_closed());
        assert_eq!(breaker.failure(5), Change::Opened);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(breaker.failure(5), Change::None, "reported once");
    }

    #[test]
    fn a_success_starts_the_count_again() {
        let breaker = Breaker::new();
        assert_eq!(fail(&breaker, 9, 0), Change::None);
        breaker.success();
        assert_eq!(fail(&breaker, 9, FAILING_MAX_US), Change::None);
        assert!(breaker.is_closed());
    }

    #[test]
    fn failing_for_a_quarter_second_opens_it() {
        let breaker = Breaker::new();
        assert_eq!(breaker.failure(1_000), Change::None);
        assert_eq!(breaker.failure(1_000 + FAILING_MAX_US - 1), Change::None);
        assert_eq!(breaker.failure(1_000 + FAILING_MAX_US), Change::Opened);
    }

    #[test]
    fn one_failure_never_opens_it() {
        let breaker = Breaker::new();
        assert_eq!(breaker.failure(u64::MAX), Change::None);
        assert!(breaker.is_closed());
    }

    #[test]
    fn a_failure_at_time_zero_counts_from_zero() {
        let breaker = Breaker::new();
        assert_eq!(breaker.failure(0), Change::None);
        assert_eq!(breaker.failure(FAILING_MAX_US), Change::Opened);
    }

    #[test]
    fn only_the_probe_closes_it() {
        let breaker = opened();
        breaker.success();
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(breaker.probed(true), Change::None, "there was no probe");
        assert!(breaker.probe());
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        breaker.success();
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert_eq!(breaker.probed(true), Change::Closed);
        assert!(breaker.is_closed());
    }

    #[test]
    fn one_probe_at_a_time() {
        let breaker = opened();
        assert!(breaker.probe());
        assert!(!breaker.probe());
        assert_eq!(breaker.probed(false), Change::None);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.probe());
        assert!(!Breaker::new().probe(), "a closed one needs none");
    }

    #[test]
    fn a_connection_lost_during_the_probe_wins() {
        let breaker = opened();
        assert!(breaker.probe());
        assert_eq!(breaker.trip(), Change::None);
        assert_eq!(breaker.probed(true), Change::None);
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn a_closed_breaker_has_forgotten_old_failures() {
        let breaker = Breaker::new();
        assert_eq!(fail(&breaker, 10, 0), Change::Opened);
        assert!(breaker.probe());
        assert_eq!(breaker.probed(true), Change::Closed);
        assert_eq!(fail(&breaker, 9, 10), Change::None);
        assert_eq!(fail(&breaker, 1, 10), Change::Opened);
    }

    #[test]
    fn many_threads_open_it_once() {
        let breaker = Arc::new(Breaker::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let breaker = Arc::clone(&breaker);
                std::thread::spawn(move || {
                    (0..100).filter(|_| breaker.failure(7) == Change::Opened).count()
                })
            })
            .collect();
        let opened: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(opened, 1);
    }

    proptest! {
        #[test]
        fn words_survive_packing(state in 0..3_u64, failures: u8, since in 0..=SINCE_MAX) {
            let state = Word::unpack(state).state;
            let word = Word { state, failures, since };
            prop_assert_eq!(Word::unpack(word.pack()), word);
        }
    }
}
