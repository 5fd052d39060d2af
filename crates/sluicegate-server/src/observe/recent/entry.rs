//! A recent request as it is kept in memory.

use std::borrow::Cow;

use sluicegate::rules::Attribute;
use sluicegate::{Micros, Request};

use crate::observe::audit::Pseudonyms;

/// Longest request that is kept: bytes of all attribute names and values.
pub(crate) const REQUEST_BYTES_MAX: usize = 512;

// Ends of names and values are `u16`.
const _: () = assert!(REQUEST_BYTES_MAX <= u16::MAX as usize);

/// A recent request: its attributes, plan, cost and time, and whether it was allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecentRequest {
    at: Micros,
    cost: u64,
    was_allowed: bool,
    /// Names and values in turn, without separators.
    text: String,
    /// End offsets of each name and its value in `text`.
    ends: Vec<(u16, u16)>,
    /// Number of the request, from 1; zero for an empty slot.
    pub(super) sequence: u64,
}

impl RecentRequest {
    /// Arrival time.
    #[must_use]
    pub(crate) fn at(&self) -> Micros {
        self.at
    }

    /// Returns whether it was allowed when it was decided.
    #[must_use]
    pub(crate) fn was_allowed(&self) -> bool {
        self.was_allowed
    }

    /// The request.
    #[must_use]
    pub(crate) fn request(&self) -> Request<'_> {
        let mut start = 0;
        let mut request = Request::new().cost(self.cost);
        for (name_end, value_end) in &self.ends {
            let (middle, end) = (usize::from(*name_end), usize::from(*value_end));
            request = request.attribute(&self.text[start..middle], &self.text[middle..end]);
            start = end;
        }
        request
    }

    /// Overwrites this with `request`, as the privacy setting allows; `false` if it is too long to
    /// be kept.
    pub(super) fn fill(&mut self, request: &Request<'_>, pseudonyms: &Pseudonyms) -> bool {
        self.text.clear();
        self.ends.clear();
        self.cost = request.get_cost();
        let id = |value| pseudonyms.id(value);
        let known = [
            (Attribute::UserId, request.get(&Attribute::UserId).map(id)),
            (Attribute::Ip, request.get(&Attribute::Ip).map(|ip| pseudonyms.ip(ip))),
            (Attribute::Endpoint, request.get(&Attribute::Endpoint).map(Cow::Borrowed)),
            (Attribute::Method, request.get(&Attribute::Method).map(Cow::Borrowed)),
            (Attribute::Plan, request.get(&Attribute::Plan).map(Cow::Borrowed)),
        ];
        let known = known.iter().filter_map(|(name, value)| Some((name.name(), value.as_ref()?)));
        for (name, value) in known {
            if !self.push(name, value) {
                return false;
            }
        }
        request.others().all(|(name, value)| self.push(name, &id(value)))
    }

    /// Sets the time and the decision.
    pub(super) fn set(&mut self, at: Micros, was_allowed: bool) {
        (self.at, self.was_allowed) = (at, was_allowed);
    }

    #[expect(clippy::cast_possible_truncation, reason = "within REQUEST_BYTES_MAX")]
    fn push(&mut self, name: &str, value: &str) -> bool {
        let middle = self.text.len() + name.len();
        let end = middle + value.len();
        if end > REQUEST_BYTES_MAX {
            return false;
        }
        self.text.push_str(name);
        self.text.push_str(value);
        self.ends.push((middle as u16, end as u16));
        true
    }
}
