//! The last requests, to try rules on.
//!
//! They are kept in memory only, as the audit's privacy setting has them, and within bounds: so many, none
//! older than so long, and none that is longer than [`REQUEST_BYTES_MAX`]. Noting one takes no memory in the
//! long run and waits for nobody: where another thread is at the same place, it is left out, and counted.

mod entry;
mod replay;
mod ring;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::{Clock, Micros, Request, SystemClock};

pub use self::entry::{Kept, REQUEST_BYTES_MAX};
pub(crate) use self::replay::timestamp;
pub use self::replay::{Figures, TOP_MAX, TopSubject, replay};
use self::ring::Ring;
use crate::config;
use crate::observe::audit::Pseudonyms;

/// The last requests, within bounds. Clones are the same; the default remembers nothing.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    ring: Ring,
    age_max: Duration,
    pseudonyms: Pseudonyms,
    clock: SystemClock,
    /// Requests that were left out since the start.
    left_out: AtomicU64,
}

/// What is remembered, in the order in which it came.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The requests.
    pub requests: Vec<Kept>,
    /// How many were left out since the start: too long, or too many at the same moment.
    pub left_out: u64,
    /// What to know about them; nothing if they are remembered as they were.
    pub note: Option<&'static str>,
}

thread_local! {
    /// What is made ready here changes places with what is forgotten: no memory is taken for either.
    static NEXT: RefCell<Kept> = RefCell::default();
}

impl Recent {
    /// Remembers as much as the settings say, and of each request what privacy allows.
    #[must_use]
    pub fn new(config: &config::Recent, pseudonyms: Pseudonyms) -> Self {
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

    /// Remembers a request, and whether it was allowed.
    pub fn note(&self, request: &Request<'_>, was_allowed: bool) {
        if let Some(inner) = &self.inner {
            inner.note(request, was_allowed, inner.clock.now());
        }
    }

    /// What is remembered now; nothing if that is switched off.
    #[must_use]
    pub fn remembered(&self) -> Remembered {
        match &self.inner {
            Some(inner) => inner.remembered(inner.clock.now()),
            None => Remembered { note: Some(OFF), ..Remembered::default() },
        }
    }
}

/// What to know where nothing is remembered,
const OFF: &str = "requests are not remembered: [recent] requests_max is 0";
/// where ids are hashed,
const HASHED: &str = "ids and addresses are remembered as hashes ([audit] privacy): subjects are told apart, \
    but conditions on user_id, ip and other attributes cannot match";
/// and where addresses are cut.
const CUT: &str = "addresses are remembered as their networks ([audit] privacy): all of a network counts as \
    one subject, and is denied sooner";

impl Inner {
    fn note(&self, request: &Request<'_>, was_allowed: bool, now: Micros) {
        let is_kept = NEXT.with_borrow_mut(|next| {
            next.fill(request, &self.pseudonyms) && {
                next.set(now, was_allowed);
                self.ring.push(next)
            }
        });
        if !is_kept {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remembered(&self, now: Micros) -> Remembered {
        let oldest_us = now.get().saturating_sub(self.age_max.as_micros() as u64);
        Remembered {
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
