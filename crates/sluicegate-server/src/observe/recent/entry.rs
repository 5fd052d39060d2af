//! One request, as it is remembered.

use std::borrow::Cow;

use sluicegate::rules::Attribute;
use sluicegate::{Micros, Request};

use crate::observe::audit::Pseudonyms;

/// The longest request that is remembered: the bytes of its attributes, names and values together.
pub const REQUEST_BYTES_MAX: usize = 512;

// The ends of names and values are counted in sixteen bits.
const _: () = assert!(REQUEST_BYTES_MAX <= u16::MAX as usize);

/// A request that is remembered: its attributes, plan, cost and time, and whether it was allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    at: Micros,
    cost: u64,
    was_allowed: bool,
    /// Names and values in turn, without anything between them.
    text: String,
    /// Where each name and its value end.
    ends: Vec<(u16, u16)>,
    /// The number of the request, from 1; zero if this is none.
    pub(super) sequence: u64,
}

impl Kept {
    /// When it came.
    #[must_use]
    pub fn at(&self) -> Micros {
        self.at
    }

    /// Was it allowed then?
    #[must_use]
    pub fn was_allowed(&self) -> bool {
        self.was_allowed
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> Request<'_> {
        let mut start = 0;
        let mut request = Request::new().cost(self.cost);
        for (name_end, value_end) in &self.ends {
            let (middle, end) = (usize::from(*name_end), usize::from(*value_end));
            request = request.attribute(&self.text[start..middle], &self.text[middle..end]);
            start = end;
        }
        request
    }

    /// Becomes this request, as privacy allows; `false` if it is too long to be remembered.
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

    /// Is of this time, and was allowed or not.
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
