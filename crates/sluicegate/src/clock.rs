//! Sources of time. No other module of the library reads the system's clock.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluicegate_core::Micros;

/// A source of time for stores that keep their own.
///
/// # Time
///
/// Readings are compared across threads. A later reading should not show an earlier time; if it does, by more than
/// [`SKEW_US`](Self::SKEW_US), buckets treat it as a clock that stepped back: no credit is given and no bucket
/// stalls.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Microseconds by which a reading may precede one taken earlier on another core. A store treats such readings as
    /// simultaneous.
    const SKEW_US: u64 = 0;

    /// Current time.
    fn now(&self) -> Micros;
}

/// The machine's monotonic time, anchored to wall time when the clock was made.
///
/// It never steps back and does not follow later corrections of the wall clock, so limits hold whatever happens to
/// that. Where the processor has a reliable counter it is read directly, in a third of the time of a system call; its
/// rate is measured once, to a few parts in a million.
#[derive(Clone, Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    started: u64,
    started_at_us: u64,
}

impl SystemClock {
    /// A clock anchored to the wall time of this call. Making one takes far longer than reading it: for the wall time
    /// alone, use [`wall`](Self::wall).
    #[must_use]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let started_at_us = Self::wall().get();
        Self { started: counter.raw(), counter, started_at_us }
    }

    /// Current wall time, which steps with every correction of the system's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this module is where time comes from")]
    pub fn wall() -> Micros {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Micros::new(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    // The counter may be read slightly early, while its core still waits for a lock, and the counters of two cores
    // differ slightly. Both are far below this.
    const SKEW_US: u64 = 10;

    #[inline]
    fn now(&self) -> Micros {
        let elapsed_us = self.counter.delta_as_nanos(self.started, self.counter.raw()) / 1000;
        Micros::new(self.started_at_us.saturating_add(elapsed_us))
    }
}

/// A clock that only its methods move. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Clock, ManualClock, Micros};
///
/// let clock = ManualClock::new(Micros::new(1_000_000));
/// clock.advance(Duration::from_millis(1500));
/// clock.step_back(Duration::from_millis(500));
/// assert_eq!(clock.now(), Micros::new(2_000_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    now_us: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at `now`.
    #[must_use]
    pub fn new(now: Micros) -> Self {
        let clock = Self::default();
        clock.set(now);
        clock
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: Micros) {
        self.now_us.store(now.get(), Ordering::SeqCst);
    }

    /// Moves the clock forwards.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().after(by));
    }

    /// Moves the clock backwards, as a corrected wall clock or a failed-over server may.
    pub fn step_back(&self, by: Duration) {
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.set(Micros::new(self.now().get().saturating_sub(by_us)));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Micros {
        Micros::new(self.now_us.load(Ordering::SeqCst))
    }
}
