//! Ring buffer of the most recent requests, for trying rules on them.
//!
//! Requests are kept in memory only, as the audit's privacy setting allows, and within bounds:
//! their number, their age, and `REQUEST_BYTES_MAX` each. Adding one allocates nothing in the
//! long run and never waits: if another thread holds the same shard's lock, the request is skipped
//! and counted.

mod entry;
mod replay;
mod ring;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::{Clock, Micros, Request, SystemClock};

pub(crate) use self::entry::RecentRequest;
pub(crate) use self::replay::{Figures, replay, timestamp};
use self::ring::Ring;
use crate::config;
use crate::observe::audit::Pseudonyms;

/// The most recent requests, within bounds. Clones share state; the default keeps nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    ring: Ring,
    age_max: Duration,
    pseudonyms: Pseudonyms,
    clock: SystemClock,
    /// Requests skipped since the start.
    left_out: AtomicU64,
}

/// The requests kept, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentRequests {
    /// The requests.
    pub requests: Vec<RecentRequest>,
    /// Requests skipped since the start: too long, or their shard's lock was held.
    pub left_out: u64,
    /// Effect of the privacy setting on replays; `None` if requests are kept unchanged.
    pub note: Option<&'static str>,
}

thread_local! {
    /// Buffer for the next request. It is swapped with the evicted one, so that neither allocates.
    static NEXT: RefCell<RecentRequest> = RefCell::default();
}

impl Recent {
    /// Keeps as many requests as the settings say, and of each what the privacy setting allows.
    #[must_use]
    pub(crate) fn new(config: &config::Recent, pseudonyms: Pseudonyms) -> Self {
        if config.requests_max == 0 {
            return Self::default();
        }
        Self {
            inner: Some(Arc::new(Inner {
                ring: Ring::new(config.requests_max),
                age_max: config.age_max,
                pseudonyms,
                clock: SystemClock::new(),
                left_out: AtomicU64::new(0),
            })),
        }
    }

    /// Adds a request and whether it was allowed.
    pub(crate) fn note(&self, request: &Request<'_>, was_allowed: bool) {
        if let Some(inner) = &self.inner {
            inner.note(request, was_allowed, inner.clock.now());
        }
    }

    /// Copies the requests kept now; none if that is switched off.
    #[must_use]
    pub(crate) fn list(&self) -> RecentRequests {
        match &self.inner {
            Some(inner) => inner.list(inner.clock.now()),
            None => RecentRequests { note: Some(OFF), ..RecentRequests::default() },
        }
    }
}

/// Note where requests are not kept,
const OFF: &str = "requests are not kept: [recent] requests_max is 0";
/// where ids are hashed,
const HASHED: &str = "ids and addresses are kept as hashes ([audit] privacy): subjects stay distinct, \
    but conditions on user_id, ip and other attributes cannot match";
/// and where addresses are truncated.
const CUT: &str = "addresses are kept as their networks ([audit] privacy): a whole network counts as \
    one subject, and is denied sooner";

impl Inner {
    fn note(&self, request: &Request<'_>, was_allowed: bool, now: Micros) {
        let was_added = NEXT.with_borrow_mut(|next| {
            next.fill(request, &self.pseudonyms) && {
                next.set(now, was_allowed);
                self.ring.push(next)
            }
        });
        if !was_added {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn list(&self, now: Micros) -> RecentRequests {
        let oldest_us = now.get().saturating_sub(self.age_max.as_micros() as u64);
        RecentRequests {
            requests: self.ring.since(Micros::new(oldest_us)),
            left_out: self.left_out.load(Ordering::Relaxed),
            note: self.privacy_note(),
        }
    }

    fn privacy_note(&self) -> Option<&'static str> {
        let (id, ip) = ("id", "192.0.2.1");
        if self.pseudonyms.id(id) != id {
            return Some(HASHED);
        }
        (self.pseudonyms.ip(ip) != ip).then_some(CUT)
    }
}

#[cfg(test)]
mod tests;
