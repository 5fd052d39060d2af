//! Shares of the rules in the queue and in the rows written per second: equal ones, of which a rule that needs less
//! leaves the rest to the others.

use std::collections::{BTreeMap, BTreeSet};

/// Rows that each rule holds: queued, or taken and not settled yet.
#[derive(Debug)]
pub(super) struct Shares {
    rows: usize,
    rows_max: usize,
    /// Rows by rule, without rules that hold none.
    by_rule: BTreeMap<u64, usize>,
    /// The same, by number of rows.
    by_rows: BTreeSet<(usize, u64)>,
}

/// Answer to a rule that wants to add a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The row has room, and is counted.
    Room,
    /// The queue is full, and this rule holds more than its share: one of its rows has to go.
    InsteadOf(u64),
    /// The queue is full, and no rule holds more than the one that asked.
    Full,
}

impl Shares {
    /// No rows, of at most `rows_max`.
    pub(super) const fn new(rows_max: usize) -> Self {
        Self { rows: 0, rows_max, by_rule: BTreeMap::new(), by_rows: BTreeSet::new() }
    }

    /// Number of rows of all rules.
    #[cfg(test)]
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Rule that holds the most rows.
    pub(super) fn largest(&self) -> Option<u64> {
        self.by_rows.last().map(|(_, rule_id)| *rule_id)
    }

    /// Counts a row of this rule if there is room.
    pub(super) fn admit(&mut self, rule_id: u64) -> Admission {
        if self.rows < self.rows_max {
            self.rows += 1;
            self.change(rule_id, |rows| rows + 1);
            return Admission::Room;
        }
        let own = self.by_rule.get(&rule_id).copied().unwrap_or_default();
        match self.by_rows.last() {
            // With a difference of one, the two rules would only change places.
            Some((most, largest)) if *most > own + 1 => Admission::InsteadOf(*largest),
            _ => Admission::Full,
        }
    }

    /// Counts a row of `to` that took the place of a row of `from`.
    pub(super) fn exchange(&mut self, from: u64, to: u64) {
        self.change(from, |rows| rows.saturating_sub(1));
        self.change(to, |rows| rows + 1);
    }

    /// Removes a row of this rule.
    pub(super) fn leave(&mut self, rule_id: u64) {
        self.rows = self.rows.saturating_sub(1);
        self.change(rule_id, |rows| rows.saturating_sub(1));
    }

    fn change(&mut self, rule_id: u64, to: impl Fn(usize) -> usize) {
        let before = self.by_rule.get(&rule_id).copied().unwrap_or_default();
        let after = to(before);
        self.by_rows.remove(&(before, rule_id));
        if after == 0 {
            self.by_rule.remove(&rule_id);
        } else {
            self.by_rule.insert(rule_id, after);
            self.by_rows.insert((after, rule_id));
        }
    }
}

/// Distributes up to `rows_max` rows to rules with this many queued rows, one each in turn, beginning with the rule after
/// `last`. Returns the rules in the order of their first turn, and the rule that had the last one.
pub(super) fn turns(
    queued: &BTreeMap<u64, usize>,
    last: u64,
    rows_max: usize,
) -> (Vec<(u64, usize)>, u64) {
    let after = queued.iter().filter(|(rule_id, _)| **rule_id > last);
    let before = queued.iter().filter(|(rule_id, _)| **rule_id <= last);
    let mut given: Vec<(u64, usize)> =
        after.chain(before).map(|(rule_id, _)| (*rule_id, 0)).collect();
    let (mut left, mut last) = (rows_max.min(queued.values().sum()), last);
    while left > 0 {
        for (rule_id, rows) in given.iter_mut().filter(|(id, rows)| *rows < queued[id]).take(left) {
            *rows += 1;
            left -= 1;
            last = *rule_id;
        }
    }
    given.retain(|(_, rows)| *rows > 0);
    (given, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_rows_gets_room_from_the_one_with_most() {
        let mut shares = Shares::new(10);
        for _ in 0..8 {
            assert_eq!(shares.admit(1), Admission::Room);
        }
        for _ in 0..2 {
            assert_eq!(shares.admit(2), Admission::Room);
        }
        assert_eq!((shares.admit(1), shares.largest()), (Admission::Full, Some(1)));
        for rows in 0..3 {
            assert_eq!(shares.admit(2), Admission::InsteadOf(1), "{rows} exchanged");
            shares.exchange(1, 2);
        }
        // Five each: only a third rule gets more.
        assert_eq!((shares.admit(1), shares.admit(2)), (Admission::Full, Admission::Full));
        assert_eq!(shares.admit(3), Admission::InsteadOf(2));
        shares.leave(1);
        assert_eq!((shares.rows(), shares.admit(1)), (9, Admission::Room));
        for (rule_id, rows) in shares.by_rule.clone() {
            for _ in 0..rows {
                shares.leave(rule_id);
            }
        }
        assert_eq!((shares.rows(), shares.largest()), (0, None));
        assert!(shares.by_rule.is_empty());
    }

    #[test]
    fn rules_take_turns() {
        let queued = BTreeMap::from([(1, 1000), (2, 1), (3, 4)]);
        for (last, rows_max, expected, next) in [
            (0, 0, vec![], 0),
            (0, 3, vec![(1, 1), (2, 1), (3, 1)], 3),
            (1, 2, vec![(2, 1), (3, 1)], 3),
            (3, 1, vec![(1, 1)], 1),
            (9, 8, vec![(1, 4), (2, 1), (3, 3)], 1),
            (0, usize::MAX, vec![(1, 1000), (2, 1), (3, 4)], 1),
        ] {
            assert_eq!(turns(&queued, last, rows_max), (expected, next), "{rows_max} after {last}");
        }
        assert_eq!(turns(&BTreeMap::new(), 7, 5), (vec![], 7));
    }
}
