//! Live traffic: a summary of each second, for watchers.
//!
//! A task samples the counters once a second, only while a client watches or did within the last
//! two minutes. All watchers get the same tick, so that they cost next to nothing, and a slow one
//! misses some. Requests do extra work only if they are denied (`most_limited`), and none while
//! live traffic is off.
//!
//! [`Live`] is the interface; `sample` makes the ticks.

mod most_limited;
mod places;
mod sample;
mod shared_tiers;
mod tick;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use sluicegate::{Request, Verdict};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

pub(crate) use self::most_limited::LimitedSubject;
use self::most_limited::MostLimited;
use self::places::{Place, Places};
pub(crate) use self::places::{TooManyWatchers, WATCHERS_MAX, WATCHERS_PER_CLIENT_MAX};
pub(crate) use self::sample::Sources;
use self::sample::{Sampler, Source};
pub(crate) use self::shared_tiers::SharedTier;
pub(crate) use self::tick::{Latency, Requests, RuleCounts, RuleName, Tick, TierCounts, Troubles};
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::Metrics;

/// Interval of ticks.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Number of ticks that a new watcher gets.
pub(crate) const HISTORY_MAX: usize = 120;

/// Time that ticks continue without watchers: one that returns by then misses nothing.
const LINGER: Duration = Duration::from_secs(HISTORY_MAX as u64 * TICK.as_secs());

/// Publisher of live traffic. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// True while ticks are made. Read on the hot path.
    is_on: AtomicBool,
    limited: MostLimited,
    /// Last ticks, shortened, oldest first.
    history: Mutex<VecDeque<Arc<Tick>>>,
    /// Last tick. Sent with the history locked.
    last: watch::Sender<Option<Arc<Tick>>>,
    /// True while ticks are made, for waiting.
    on: watch::Sender<bool>,
    places: Arc<Places>,
    watcher_arrived: Notify,
    watchers: Gauge,
    refused: Counter,
}

/// A watcher, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Ticks before it began, oldest first.
    pub(crate) history: Vec<Arc<Tick>>,
    ticks: watch::Receiver<Option<Arc<Tick>>>,
    watchers: Gauge,
    _place: Place,
}

impl Live {
    /// Live traffic with these metrics. Values of requests are reduced by `pseudonyms`.
    #[must_use]
    pub(crate) fn new(metrics: &Metrics, pseudonyms: Pseudonyms) -> Self {
        Self {
            inner: Arc::new(Inner {
                is_on: AtomicBool::new(false),
                limited: MostLimited::new(pseudonyms),
                history: Mutex::default(),
                last: watch::Sender::new(None),
                on: watch::Sender::new(false),
                places: Arc::default(),
                watcher_arrived: Notify::new(),
                watchers: metrics.live_watchers(),
                refused: metrics.live_refused(),
            }),
        }
    }

    /// Counts denials of a verdict, by enforced and shadow rules. Does nothing without watchers.
    #[inline]
    pub(crate) fn note(&self, request: &Request<'_>, verdict: &Verdict) {
        if self.inner.is_on.load(Relaxed) {
            self.inner.limited.note(request, verdict);
        }
    }

    /// Begins to watch for this client: a token, or an address.
    ///
    /// # Errors
    ///
    /// The limit of the client, or of all clients together, is reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it resolves does not watch.
    pub(crate) async fn watch(&self, client: &str) -> Result<Watcher, TooManyWatchers> {
        let inner = &*self.inner;
        let place = inner.places.take(client).inspect_err(|_| {
            inner.refused.inc();
        })?;
        inner.watcher_arrived.notify_one();
        // The next tick covers everything after this.
        let _ = inner.on.subscribe().wait_for(|is_on| *is_on).await;
        let history = inner.history.lock();
        let ticks = inner.last.subscribe();
        let history = history.iter().cloned().collect();
        inner.watchers.inc();
        Ok(Watcher { history, ticks, watchers: inner.watchers.clone(), _place: place })
    }

    /// Makes ticks while there are watchers. Never returns.
    pub(crate) async fn run(self, sources: Sources) {
        self.publish_ticks(Sampler::new(sources)).await;
    }

    /// Publishes the ticks of a source.
    async fn publish_ticks(self, mut source: impl Source) {
        loop {
            while !self.is_watched() {
                self.inner.watcher_arrived.notified().await;
            }
            // ## Off => On: a watcher arrived.
            source.begin(Instant::now());
            self.inner.is_on.store(true, Relaxed);
            self.inner.on.send_replace(true);
            self.session(&mut source).await;
            // ## On => Off: no watcher returned.
            self.inner.is_on.store(false, Relaxed);
            self.inner.on.send_replace(false);
            self.inner.history.lock().clear();
            self.inner.limited.clear();
        }
    }

    /// Publishes ticks until there was no watcher for a while.
    async fn session(&self, source: &mut impl Source) {
        let mut watched_at = Instant::now();
        let mut ticks = interval_at(watched_at + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let (now, is_watched) = (Instant::now(), self.is_watched());
            if is_watched {
                watched_at = now;
            } else if now - watched_at >= LINGER {
                return;
            }
            let limited = is_watched.then_some(&self.inner.limited);
            self.publish(source.tick(now, limited).await);
        }
    }

    fn publish(&self, mut tick: Tick) {
        let mut history = self.inner.history.lock();
        tick.number = self.inner.last.borrow().as_ref().map_or(1, |last| last.number + 1);
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(Arc::new(tick.in_short()));
        // Under the lock, so that a watcher gets each tick exactly once.
        self.inner.last.send_replace(Some(Arc::new(tick)));
    }

    fn is_watched(&self) -> bool {
        !self.inner.places.is_empty()
    }
}

impl Watcher {
    /// Next tick. Ticks missed since the last call are skipped, except the latest.
    ///
    /// # Cancel safety
    ///
    /// A tick is not lost: the next call returns it.
    pub(crate) async fn next(&mut self) -> Option<Arc<Tick>> {
        self.ticks.changed().await.ok()?;
        self.ticks.borrow_and_update().clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watchers.dec();
    }
}

#[cfg(test)]
mod tests;
