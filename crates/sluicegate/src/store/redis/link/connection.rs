//! An established connection: its flights, and its timers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::prepare::ReadyConnection;
use super::{IDLE_AFTER, IN_FLIGHT_EAGER, IN_FLIGHT_MAX, PROBE_EVERY, STALL_AFTER};
use crate::store::redis::breaker::BreakerState;
use crate::store::redis::connect::Wire;
use crate::store::redis::flight::Flights;
use crate::store::redis::script::Script;
use crate::store::redis::trouble::Trouble;
use crate::store::redis::url::Address;

/// An established connection and its flights.
pub(super) struct LinkConnection {
    pub(super) wire: Wire,
    pub(super) script: Script,
    pub(super) address: Address,
    pub(super) since: Instant,
    /// The server has run a script call.
    pub(super) proven: bool,
    pub(super) flights: Flights,
    pub(super) probe: Probe,
    /// Time of the last write.
    pub(super) used: Instant,
    /// Time from which a flight beyond the eager ones may be sent although it is not full.
    pub(super) paced: Instant,
    pub(super) watch: Watch,
    /// Fires at the next deadline, or earlier.
    pub(super) timer: Pin<Box<Sleep>>,
}

/// Probe of a connection.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// Time of the last probe.
    pub(super) sent: Option<Instant>,
    /// The probe is pending, and within the budget.
    pub(super) awaited: bool,
    /// The probe is pending.
    pub(super) flying: bool,
}

/// Query of the sentinels while their master is connected.
pub(super) struct Watch {
    pub(super) next: Option<Instant>,
    pub(super) asking: Option<Pin<Box<Question>>>,
}

/// A query for another master; resolves to a connection to it, if there is one.
pub(super) type Question = dyn Future<Output = Result<Option<ReadyConnection>, Trouble>> + Send;

/// Time without a reply after which a connection is dropped: not before the callers' timeouts.
pub(super) fn stall_after(budget: Duration) -> Duration {
    STALL_AFTER.max(budget)
}

/// May another flight be sent beside this many? See [`IN_FLIGHT_MAX`].
pub(super) fn may_leave(flying: usize, is_full: bool, is_paced: impl Fn() -> bool) -> bool {
    flying < IN_FLIGHT_EAGER || flying < IN_FLIGHT_MAX && (is_full || is_paced())
}

impl LinkConnection {
    /// May another flight be sent, with this many calls queued?
    pub(super) fn has_room(&self, waiting: usize, full: usize) -> bool {
        may_leave(self.flights.len(), waiting >= full, || Instant::now() >= self.paced)
    }

    /// Time of the next probe.
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

    /// Resets the timer if it would fire too late. An early timer does no harm, and resetting it for every
    /// flight would cost more.
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

    /// Waits for the sentinels' reply; for ever if there is no query.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: the query lives in `self`.
    pub(super) async fn answer(&mut self) -> Result<Option<ReadyConnection>, Trouble> {
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
