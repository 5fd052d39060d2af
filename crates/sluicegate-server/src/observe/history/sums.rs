//! Sums per minute of what clients do, in a bounded map.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use parking_lot::Mutex;
use serde_json::json;

use crate::config::Door;
use crate::data::{Act, HistoryRow};
use crate::network::network;
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::history::HistoryMetrics;
use crate::time::Timestamp;

const MINUTE_US: i64 = 60_000_000;

/// Maximum number of sums of sources that found no room, beyond the maximum of the map.
const OTHERS_MAX: usize = 64;

/// Author of failed sign-ins without the name of a caller.
const UNKNOWN: &str = "unknown";

/// Source of events that are added up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    SignIn { door: &'static str, network: Option<IpNet>, name: Option<Box<str>> },
    Refund { caller: Option<Box<str>> },
}

/// Events of one source in one minute.
#[derive(Clone, Copy, Debug)]
struct Sum {
    first: Timestamp,
    count: u64,
    tokens: u64,
}

/// Sums by minute and source.
#[derive(Debug)]
pub(super) struct Sums {
    sums: Mutex<BTreeMap<(i64, Source), Sum>>,
    max: usize,
    metrics: HistoryMetrics,
}

impl Source {
    /// Source of failed sign-ins: the network of the peer, and the caller if it is known.
    pub(super) fn sign_in(door: Door, peer: IpAddr, name: Option<&str>) -> Self {
        let (network, name) = (Some(network(peer)), name.map(Into::into));
        Self::SignIn { door: door.name(), network, name }
    }

    /// Source of refunds; `None` for those without a caller.
    pub(super) fn refund(caller: Option<&str>) -> Self {
        Self::Refund { caller: caller.map(Into::into) }
    }

    /// All sources of the same kind together.
    fn others(&self) -> Self {
        match self {
            Self::SignIn { door, .. } => Self::SignIn { door, network: None, name: None },
            Self::Refund { .. } => Self::Refund { caller: None },
        }
    }
}

impl Sums {
    /// Sums of at most `max` sources and minutes.
    pub(super) fn new(max: usize, metrics: HistoryMetrics) -> Self {
        Self { sums: Mutex::default(), max, metrics }
    }

    /// Adds an event. Without room for its source, it is added to the sum of all others, and counted as dropped.
    pub(super) fn add(&self, source: Source, tokens: u64, at: Timestamp) {
        let minute = at.micros().div_euclid(MINUTE_US);
        let mut sums = self.sums.lock();
        let mut key = (minute, source);
        if !sums.contains_key(&key) && sums.len() >= self.max {
            self.metrics.dropped(1);
            key.1 = key.1.others();
            if !sums.contains_key(&key) && sums.len() >= self.max + OTHERS_MAX {
                return;
            }
        }
        let sum = sums.entry(key).or_insert(Sum { first: at, count: 0, tokens: 0 });
        sum.count = sum.count.saturating_add(1);
        sum.tokens = sum.tokens.saturating_add(tokens);
    }

    /// Takes at most `limit` sums of minutes that ended before this time, oldest first.
    pub(super) fn take(
        &self,
        before: Timestamp,
        limit: usize,
        pseudonyms: &Pseudonyms,
    ) -> Vec<HistoryRow> {
        let minute = before.micros().div_euclid(MINUTE_US);
        let mut taken = Vec::new();
        let mut sums = self.sums.lock();
        while taken.len() < limit
            && let Some(entry) = sums.first_entry()
            && entry.key().0 < minute
        {
            taken.push(entry.remove_entry());
        }
        drop(sums);
        // Pseudonyms cost a hash each: requests do not wait for them.
        taken.into_iter().map(|((_, source), sum)| row(source, sum, pseudonyms)).collect()
    }

    /// Drops all sums, and returns the number of events.
    pub(super) fn clear(&self) -> u64 {
        std::mem::take(&mut *self.sums.lock()).into_values().map(|sum| sum.count).sum()
    }
}

fn row(source: Source, sum: Sum, pseudonyms: &Pseudonyms) -> HistoryRow {
    let row = HistoryRow {
        at: sum.first,
        who: UNKNOWN.into(),
        act: Act::SignInFailed,
        rule_id: None,
        subject: None,
        target: None,
        before: None,
        after: None,
        address: None,
        reason: String::new(),
        count: sum.count,
    };
    let named = |name: &str| format!("caller:{name}");
    match source {
        Source::SignIn { door, network, name } => HistoryRow {
            who: name.map_or(row.who, |name| named(&name)),
            target: Some(door.into()),
            address: network.map(|network| pseudonyms.network(network)),
            ..row
        },
        Source::Refund { caller } => HistoryRow {
            who: caller.as_ref().map_or(row.who, |caller| named(caller)),
            act: Act::CallerRefund,
            target: caller.map(Into::into),
            after: Some(json!({"tokens": sum.tokens})),
            ..row
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Audit, Privacy};

    fn pseudonyms(privacy: Privacy) -> Pseudonyms {
        Pseudonyms::new(&Audit { privacy, ..Audit::default() })
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_micros(minute * MINUTE_US + 5)
    }

    fn wrong(sums: &Sums, ip: &str, minute: i64) {
        sums.add(Source::sign_in(Door::Http, ip.parse().unwrap(), None), 0, at(minute));
    }

    #[test]
    fn a_flood_leaves_one_row_per_network_and_minute() {
        let metrics = HistoryMetrics::default();
        let sums = Sums::new(10, metrics.clone());
        for n in 0..10_000 {
            wrong(&sums, &format!("203.0.113.{}", n % 256), 7);
            wrong(&sums, "2001:db8::7", 8);
        }
        let raw = pseudonyms(Privacy::Raw);
        assert_eq!(sums.take(at(7), 100, &raw), [], "its minute goes on");
        let rows = sums.take(at(8), 100, &raw);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].at, rows[0].act), (10_000, at(7), Act::SignInFailed));
        assert_eq!((&*rows[0].who, rows[0].target.as_deref()), ("unknown", Some("http")));
        assert_eq!(rows[0].address.as_deref(), Some("203.0.113.0/24"));
        let rows = sums.take(at(9), 100, &pseudonyms(Privacy::Truncated));
        assert_eq!(rows[0].address.as_deref(), Some("2001:db8::/48"));
        assert_eq!(metrics.dropped_so_far(), 0);
    }

    #[test]
    fn sources_without_room_are_added_up_together() {
        let metrics = HistoryMetrics::default();
        let sums = Sums::new(10, metrics.clone());
        for n in 0..100 {
            wrong(&sums, &format!("10.0.{n}.1"), 7);
        }
        let rows = sums.take(at(8), 100, &pseudonyms(Privacy::Raw));
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 100, "none is lost");
        assert_eq!(rows.len(), 11);
        assert_eq!(rows[0].address, None, "the others");
        assert_eq!(metrics.dropped_so_far(), 90, "addresses");
        // During an outage the minutes add up to a bounded number of sums as well.
        for minute in 0..1000 {
            (0..20).for_each(|n| wrong(&sums, &format!("10.0.{n}.1"), minute));
        }
        assert_eq!(sums.take(at(1001), usize::MAX, &pseudonyms(Privacy::Raw)).len(), 74);
    }

    #[test]
    fn refunds_are_added_up_by_caller() {
        let sums = Sums::new(10, HistoryMetrics::default());
        for (caller, tokens) in [("a", 3), ("b", 1), ("a", 4)] {
            sums.add(Source::refund(Some(caller)), tokens, at(1));
        }
        let rows = sums.take(at(2), 100, &pseudonyms(Privacy::Raw));
        let shown = |row: &HistoryRow| (row.who.clone(), row.count, row.after.clone().unwrap());
        let shown: Vec<_> = rows.iter().map(shown).collect();
        let expected = [("caller:a", 2, 7), ("caller:b", 1, 1)];
        let expected =
            expected.map(|(who, count, tokens)| (who.to_owned(), count, json!({"tokens": tokens})));
        assert_eq!(shown, expected);
        assert_eq!(sums.clear(), 0);
    }
}
