//! What happens now: a summary of each second, for whoever watches.
//!
//! A task looks at what is counted anyway, once a second, and only while somebody watches or did until two minutes
//! ago. Everybody is told the same tick, so that watchers cost next to nothing, and whoever is slow misses some. All
//! that requests do for it is done where one is denied (`limited`), and nothing at all while it is off.
//!
//! [`Live`] is what others see; `sample` is where a tick comes from.

mod most_limited;
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
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use self::most_limited::Limited;
pub(crate) use self::most_limited::LimitedSubject;
pub use self::sample::Sources;
use self::sample::{Sampler, Source};
pub(crate) use self::shared_tiers::SharedTier;
pub(crate) use self::tick::{Latency, Requests, RuleCounts, RuleName, Tick, TierCounts, Troubles};
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::Metrics;

/// How much of time a tick sums up.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How many ticks whoever comes is told of.
pub(crate) const HISTORY_MAX: usize = 120;

/// How many may watch at once.
pub(crate) const WATCHERS_MAX: usize = 64;

/// How long it goes on when nobody watches: somebody who comes back by then has missed nothing.
const LINGER: Duration = Duration::from_secs(HISTORY_MAX as u64 * TICK.as_secs());

/// What happens now, for whoever watches. Clones are the same.
#[derive(Clone, Debug)]
pub struct Live {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Whether anything is to be noted: for whoever asks very often.
    is_on: AtomicBool,
    limited: Limited,
    /// The last ticks, in short, oldest first.
    history: Mutex<VecDeque<Arc<Tick>>>,
    /// The last tick. Sent with the history locked.
    last: watch::Sender<Option<Arc<Tick>>>,
    /// Whether ticks are counted from here on.
    on: watch::Sender<bool>,
    places: Arc<Semaphore>,
    somebody_came: Notify,
    watchers: Gauge,
    refused: Counter,
}

/// Somebody who watches, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// What there was before, oldest first.
    pub(crate) history: Vec<Arc<Tick>>,
    ticks: watch::Receiver<Option<Arc<Tick>>>,
    watchers: Gauge,
    _place: OwnedSemaphorePermit,
}

impl Live {
    /// Of a service with these metrics. What it tells of requests is what these pseudonyms leave of them.
    #[must_use]
    pub fn new(metrics: &Metrics, pseudonyms: Pseudonyms) -> Self {
        Self {
            inner: Arc::new(Inner {
                is_on: AtomicBool::new(false),
                limited: Limited::new(pseudonyms),
                history: Mutex::default(),
                last: watch::Sender::new(None),
                on: watch::Sender::new(false),
                places: Arc::new(Semaphore::new(WATCHERS_MAX)),
                somebody_came: Notify::new(),
                watchers: metrics.live_watchers(),
                refused: metrics.live_refused(),
            }),
        }
    }

    /// Takes note of whom a verdict denied, or a rule in shadow mode would have. Nothing is done unless somebody
    /// watches.
    #[inline]
    pub fn note(&self, request: &Request<'_>, verdict: &Verdict) {
        if self.inner.is_on.load(Relaxed) {
            self.inner.limited.note(request, verdict);
        }
    }

    /// Watches, from here on; `None` if too many do.
    ///
    /// # Cancel safety
    ///
    /// Who does not wait for it does not watch.
    pub(crate) async fn watch(&self) -> Option<Watcher> {
        let inner = &*self.inner;
        let Ok(place) = Arc::clone(&inner.places).try_acquire_owned() else {
            inner.refused.inc();
            return None;
        };
        inner.somebody_came.notify_one();
        // What happens after this is in the next tick.
        let _ = inner.on.subscribe().wait_for(|is_on| *is_on).await;
        let history = inner.history.lock();
        let ticks = inner.last.subscribe();
        let history = history.iter().cloned().collect();
        inner.watchers.inc();
        Some(Watcher { history, ticks, watchers: inner.watchers.clone(), _place: place })
    }

    /// Makes ticks while somebody watches. Ends never.
    pub async fn run(self, sources: Sources) {
        self.tell(Sampler::new(sources)).await;
    }

    /// Tells those who watch of the ticks of a source.
    async fn tell(self, mut source: impl Source) {
        loop {
            while !self.is_watched() {
                self.inner.somebody_came.notified().await;
            }
            // ## Off => On: somebody has come.
            source.begin(Instant::now());
            self.inner.is_on.store(true, Relaxed);
            self.inner.on.send_replace(true);
            self.session(&mut source).await;
            // ## On => Off: nobody has come back.
            self.inner.is_on.store(false, Relaxed);
            self.inner.on.send_replace(false);
            self.inner.history.lock().clear();
            self.inner.limited.clear();
        }
    }

    /// Tells of ticks until nobody has watched for a while.
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
        // Under the lock, so that nobody is told of a tick twice, or of none.
        self.inner.last.send_replace(Some(Arc::new(tick)));
    }

    fn is_watched(&self) -> bool {
        self.inner.places.available_permits() < WATCHERS_MAX
    }
}

impl Watcher {
    /// The next tick. Those that came while nobody asked are left out, but for the last.
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
