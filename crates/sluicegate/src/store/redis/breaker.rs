//! A breaker: says when a server is not worth asking, and when it is again.
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
//! step is atomic, and asking costs one load.

use std::sync::atomic::{AtomicU64, Ordering};

/// As many failures in a row open the breaker.
pub(super) const FAILURES_MAX: u8 = 10;

/// Failures without a success for as long, in microseconds, open it too; two at least.
pub(super) const FAILING_MAX_US: u64 = 250_000;

/// A span of failures has at least so many: one slow answer is no outage.
const FAILURES_MIN: u8 = 2;

/// Whether a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerState {
    /// It is.
    Closed,
    /// A single probe is on its way; nothing else is.
    HalfOpen,
    /// It is not: it lately did not answer.
    Open,
}

impl BreakerState {
    /// Its name in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// A change that is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Change {
    Opened,
    Closed,
    None,
}

/// The breaker of one server. Starts closed.
#[derive(Debug)]
pub(super) struct Breaker(AtomicU64);

/// What the word holds: two bits of state, eight of failures, and 54 of the first one's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    state: BreakerState,
    /// In a row, while closed.
    failures: u8,
    /// When the first of them was, in microseconds.
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

    /// After a failure at `now`.
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

    /// After a success. Only a probe closes: an answer to something sent before it opened proves nothing.
    fn succeeded(self) -> Self {
        if self.state == BreakerState::Closed { Self::CLOSED } else { self }
    }

    /// After the end of a probe. A breaker that opened meanwhile stays open.
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

    /// Whether a request may be tried.
    pub(super) fn is_closed(&self) -> bool {
        self.state() == BreakerState::Closed
    }

    /// A request was answered in time, whatever the answer.
    pub(super) fn success(&self) {
        // Nearly always there is nothing to change, and then nothing is written.
        if self.0.load(Ordering::Relaxed) != Word::CLOSED.pack() {
            let _ = self.step(Word::succeeded);
        }
    }

    /// A request was not answered in time.
    pub(super) fn failure(&self, now: u64) -> Change {
        self.step(|word| word.failed(now))
    }

    /// The connection is lost, or the server says that it does not serve.
    pub(super) fn trip(&self) -> Change {
        self.step(|_| Word::OPEN)
    }

    /// Begins a probe, if the breaker is open and no other is on its way. Whoever is told `true` ends it,
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

/// What is told: not that a probe failed, which would be told ten times a second.
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
        assert_eq!(breaker.failure(5), Change::None, "told once");
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
        let told: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(told, 1);
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
