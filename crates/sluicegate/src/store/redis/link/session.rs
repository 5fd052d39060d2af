//! A connection as far as it has come: what is on its way, and what is due next.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::prepare::Fresh;
use super::{IDLE_AFTER, IN_FLIGHT_EAGER, IN_FLIGHT_MAX, PROBE_EVERY, STALL_AFTER};
use crate::store::redis::breaker::BreakerState;
use crate::store::redis::connect::Wire;
use crate::store::redis::flight::Flights;
use crate::store::redis::script::Script;
use crate::store::redis::trouble::Trouble;
use crate::store::redis::url::Address;

/// A connection, as far as it has come.
pub(super) struct Session {
    pub(super) connection: Wire,
    pub(super) script: Script,
    pub(super) address: Address,
    pub(super) since: Instant,
    /// It ran something.
    pub(super) proven: bool,
    pub(super) flights: Flights,
    pub(super) probe: Probe,
    /// When anything was last sent.
    pub(super) used: Instant,
    /// When a flight beyond the eager ones may leave that is not full.
    pub(super) paced: Instant,
    pub(super) watch: Watch,
    /// Fires at the next thing to do, or before.
    pub(super) timer: Pin<Box<Sleep>>,
}

/// The probe of a connection.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// When the last one was sent.
    pub(super) sent: Option<Instant>,
    /// It is on its way, and within the budget.
    pub(super) awaited: bool,
    /// It is on its way.
    pub(super) flying: bool,
}

/// What sentinels are asked while their master is connected.
pub(super) struct Watch {
    pub(super) next: Option<Instant>,
    pub(super) asking: Option<Pin<Box<Question>>>,
}

/// Whether there is another master: a connection to it then.
pub(super) type Question = dyn Future<Output = Result<Option<Fresh>, Trouble>> + Send;

/// When a connection is given up: not before the callers are.
pub(super) fn stall_after(budget: Duration) -> Duration {
    STALL_AFTER.max(budget)
}

/// Whether another flight may leave with as many on their way: see [`IN_FLIGHT_MAX`].
pub(super) fn may_leave(flying: usize, is_full: bool, is_paced: impl Fn() -> bool) -> bool {
    flying < IN_FLIGHT_EAGER || flying < IN_FLIGHT_MAX && (is_full || is_paced())
}

impl Session {
    /// Whether another flight may leave, with as many calls waiting.
    pub(super) fn has_room(&self, waiting: usize, full: usize) -> bool {
        may_leave(self.flights.len(), waiting >= full, || Instant::now() >= self.paced)
    }

    /// When the next probe is to be sent.
    pub(super) fn probe_due(&self, breaker: BreakerState) -> Instant {
        if self.probe.flying {
            return self.used.max(Instant::now()) + IDLE_AFTER;
        }
        match (breaker, self.probe.sent) {
            (BreakerState::Closed, sent) => self.used.max(sent.unwrap_or(self.used)) + IDLE_AFTER,
            (_, Some(sent)) => sent + PROBE_EVERY,
            (_, None) => self.since,
        }
    }

    /// Sets the timer, if it would fire too late. One that fires early does no harm, and setting it for
    /// every flight would cost more.
    pub(super) fn arm(&mut self, breaker: BreakerState, budget: Duration) {
        let mut due = self.probe_due(breaker);
        if let Some(sent) = self.flights.oldest() {
            due = due.min(sent + stall_after(budget));
        }
        let flying = self.flights.len();
        if (IN_FLIGHT_EAGER..IN_FLIGHT_MAX).contains(&flying) && Instant::now() < self.paced {
            due = due.min(self.paced);
        }
        if let Some(sent) = self.probe.sent.filter(|_| self.probe.awaited) {
            due = due.min(sent + budget);
        }
        if let Some(next) = self.watch.next.filter(|_| self.watch.asking.is_none()) {
            due = due.min(next);
        }
        if self.timer.is_elapsed() || due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
    }
}

impl Probe {
    pub(super) fn is_late(&self, now: Instant, budget: Duration) -> bool {
        self.awaited && self.sent.is_some_and(|sent| now >= sent + budget)
    }
}

impl Watch {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.asking.is_none() && self.next.is_some_and(|next| now >= next)
    }

    /// Waits for the sentinels' answer; for ever if they were not asked.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: the question lives in `self`.
    pub(super) async fn answer(&mut self) -> Result<Option<Fresh>, Trouble> {
        match &mut self.asking {
            Some(asking) => {
                let answer = asking.await;
                self.asking = None;
                answer
            }
            None => std::future::pending().await,
        }
    }
}
