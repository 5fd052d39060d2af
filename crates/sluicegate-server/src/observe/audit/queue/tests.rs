use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use sluicegate::{Limiter, Mode};

use super::*;
use crate::observe::audit::test_support::{
    NOON, folded_limiter, limiter, note, queue, request, verdict,
};
use crate::observe::metrics::audit::AuditFigures;

/// A simple model of the queue.
#[derive(Debug, Default)]
struct Model {
    /// User, rule and minute of each queued row, in order, and the row.
    rows: Vec<((u8, u64, i64), ViolationRow)>,
    /// Rules of rows that are taken and not settled.
    taken: Vec<u64>,
    /// Rule whose row was taken last.
    last: u64,
    noted: u64,
    written: u64,
    dropped: u64,
}

#[derive(Clone, Debug)]
enum Step {
    /// A user, a rule, and how many seconds have passed.
    Note(u8, u64, i64),
    Take(usize),
    Settle(bool),
    Forget(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..8u8, 1..=RULES, 0..40i64).prop_map(|(user, rule, pause)| Step::Note(user, rule, pause)),
        2 => (0..6usize).prop_map(Step::Take),
        2 => any::<bool>().prop_map(Step::Settle),
        1 => (0..8u8).prop_map(Step::Forget),
    ]
}

const ROWS_MAX: usize = 6;
const RULES: u64 = 3;

impl Model {
    fn note(&mut self, user: u8, row: ViolationRow, queue: &Queue) {
        self.noted += 1;
        let key = (user, row.rule_id, row.requested_at.micros() / 60_000_000);
        if let Some((_, known)) = self.rows.iter_mut().find(|(known, _)| *known == key) {
            known.count += 1;
            known.last_at = row.last_at;
        } else if self.rows.len() + self.taken.len() < ROWS_MAX || self.evict(row.rule_id, queue) {
            self.rows.push((key, row));
        } else {
            self.dropped += 1;
        }
    }

    /// Rows that a rule holds.
    fn held(&self, rule_id: u64) -> usize {
        let queued = self.rows.iter().filter(|(_, row)| row.rule_id == rule_id).count();
        queued + self.taken.iter().filter(|taken| **taken == rule_id).count()
    }

    /// Drops the row that the queue has dropped for one of this rule. `false` if it had to keep all.
    fn evict(&mut self, rule_id: u64, queue: &Queue) -> bool {
        let largest = (1..=RULES).max_by_key(|rule_id| self.held(*rule_id)).unwrap();
        let mut queued = self.rows.iter().filter(|(_, row)| row.rule_id == largest);
        if self.held(largest) <= self.held(rule_id) + 1 || queued.next().is_none() {
            return false;
        }
        let shards = queue.shards.iter();
        let left: Vec<_> = shards
            .flat_map(|shard| shard.lock().rows.values().cloned().collect::<Vec<_>>())
            .collect();
        let (kept, evicted): (Vec<_>, Vec<_>) =
            self.rows.drain(..).partition(|(_, row)| left.contains(row));
        assert!(evicted.len() == 1 && evicted[0].1.rule_id == largest, "{evicted:?}");
        self.dropped += evicted[0].1.count;
        self.rows = kept;
        true
    }

    /// Takes the oldest row of each rule in turn.
    fn take(&mut self, rows_max: usize) -> Vec<ViolationRow> {
        let mut taken = Vec::new();
        while taken.len() < rows_max && !self.rows.is_empty() {
            let rules: std::collections::BTreeSet<u64> =
                self.rows.iter().map(|(_, row)| row.rule_id).collect();
            let next = rules.iter().find(|rule_id| **rule_id > self.last);
            self.last = *next.or(rules.first()).unwrap();
            let oldest = self.rows.iter().position(|(_, row)| row.rule_id == self.last);
            taken.push(self.rows.remove(oldest.unwrap()).1);
        }
        self.taken.extend(taken.iter().map(|row| row.rule_id));
        taken.sort_by_key(|row| row.requested_at);
        taken
    }

    fn waiting(&self) -> u64 {
        self.rows.iter().map(|(_, row)| row.count).sum()
    }
}

fn sum(rows: &[ViolationRow]) -> u64 {
    rows.iter().map(|row| row.count).sum()
}

proptest! {
    #[test]
    fn sums_up_as_the_model_does(steps in prop::collection::vec(step(), 1..200)) {
        let limiter = limiter(&[Mode::Enforce, Mode::Shadow, Mode::Enforce]);
        let (queue, metrics) = queue(ROWS_MAX);
        let (mut model, mut taken, mut at) = (Model::default(), Vec::new(), NOON);
        for step in steps {
            match step {
                Step::Note(user, rule, seconds) => {
                    // All times differ, so that the order is defined.
                    at = at.plus_micros(seconds * 1_000_000 + 1);
                    let user_id = user.to_string();
                    let verdict = verdict(&limiter, &user_id);
                    let tier = verdict.tiers().find(|tier| tier.rule.rule_id() == rule).unwrap();
                    queue.note(&request(&user_id), &tier, at);
                    let row = record::row(&queue.pseudonyms, &request(&user_id), &tier, at);
                    model.note(user, row, &queue);
                }
                Step::Take(rows) => {
                    let expected = model.take(rows);
                    let rows = queue.take(rows);
                    prop_assert_eq!(&rows, &expected);
                    taken.extend(rows);
                }
                Step::Settle(is_written) => {
                    let result =
                        if is_written { WriteResult::Written } else { WriteResult::Dropped(Dropped::Refused) };
                    queue.settle(&taken, result);
                    *(if is_written { &mut model.written } else { &mut model.dropped }) += sum(&taken);
                    model.taken.clear();
                    taken.clear();
                }
                Step::Forget(user) => {
                    let user_id = Some(user.to_string());
                    queue.forget(|row| row.user_id == user_id);
                    let before = model.waiting();
                    model.rows.retain(|(key, _)| key.0 != user);
                    model.dropped += before - model.waiting();
                }
            }
            prop_assert_eq!(queue.rows(), model.rows.len() + model.taken.len());
            prop_assert_eq!(metrics.waiting.get() as usize, queue.rows());
            let figures = metrics.figures();
            let (noted, written, dropped) = (model.noted, model.written, model.dropped);
            prop_assert_eq!(figures, AuditFigures { noted, written, dropped });
            prop_assert_eq!(figures.waiting(), model.waiting() + sum(&taken));
        }
    }
}

#[test]
fn a_row_has_the_first_and_the_last_time_whatever_the_order() {
    let limiter = limiter(&[Mode::Enforce]);
    let (queue, _) = queue(16);
    for micros in [5, 2, 9, 7] {
        note(&queue, &limiter, "42", NOON.plus_micros(micros));
    }
    let rows = queue.take(16);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.requested_at, row.last_at), (NOON.plus_micros(2), NOON.plus_micros(9)));
    assert_eq!((row.count, row.tokens_at_time, row.is_shadow), (4, 1, false));
    assert_eq!(row.bucket_key, "enforce1:42");
    let sample = [&row.user_id, &row.ip_address, &row.endpoint, &row.method];
    assert_eq!(
        sample.map(|text| text.as_deref().unwrap()),
        ["42", "203.0.113.9", "/login", "POST"]
    );
}

#[test]
fn spellings_of_a_folded_path_are_one_row() {
    let (queue, limiter) = (queue(16).0, folded_limiter());
    for path in ["/login", "/LOGIN"] {
        let request = Request::new().endpoint(path).cost(2);
        queue.note(&request, &limiter.check_now(&request).violated().unwrap(), NOON);
    }
    let rows = queue.take(16);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.count, &*row.bucket_key), (2, "e:/login"));
}

#[test]
fn violations_after_close_are_dropped() {
    let limiter = limiter(&[Mode::Enforce]);
    let (queue, metrics) = queue(16);
    note(&queue, &limiter, "1", NOON);
    queue.close();
    for user in ["1", "2"] {
        note(&queue, &limiter, user, NOON);
    }
    assert_eq!((metrics.dropped_for(Dropped::Shutdown), queue.rows()), (3, 0));
}

/// At 50,000 a second and more from many users with a slow writer, the queue stays within its
/// maximum and every violation is counted once.
#[test]
fn a_storm_is_held_and_counted() {
    const THREADS: u64 = 4;
    const NOTES: u64 = 50_000;
    const ROWS_MAX: usize = 500;
    let (queue, metrics) = queue(ROWS_MAX);
    let limiter = limiter(&[Mode::Enforce]);
    let storm = |thread: u64, queue: &Queue, limiter: &Limiter| {
        for number in 0..NOTES {
            // Some users over and over, others once.
            let id = if number % 3 == 0 { number % 100 } else { thread * NOTES + number };
            note(queue, limiter, &id.to_string(), NOON.plus_micros(number as i64));
            assert!(queue.rows() <= ROWS_MAX);
        }
    };
    let written = thread::scope(|scope| {
        let storms: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (queue, limiter) = (Arc::clone(&queue), limiter.clone());
                scope.spawn(move || storm(thread, &queue, &limiter))
            })
            .collect();
        let mut written = 0;
        while !storms.iter().all(thread::ScopedJoinHandle::is_finished) {
            let rows = queue.take(7);
            written += sum(&rows);
            queue.settle(&rows, WriteResult::Written);
            thread::yield_now();
        }
        written
    });
    let figures = metrics.figures();
    assert_eq!((figures.noted, figures.written), (THREADS * NOTES, written));
    assert!(figures.dropped > 0 && figures.dropped == metrics.dropped_for(Dropped::Full));
    let left = queue.take(usize::MAX);
    assert_eq!(sum(&left), figures.waiting());
    assert!(left.len() <= ROWS_MAX);
}

/// A flood of new users of one rule, while the queue is full of them: a violation of another rule is
/// kept, and among the next that are written.
#[test]
fn a_flood_of_one_rule_drops_no_violation_of_another() {
    const ROWS_MAX: usize = 100;
    let (queue, metrics) = queue(ROWS_MAX);
    let limiter = limiter(&[Mode::Enforce, Mode::Shadow]);
    let note = |rule_id: u64, user_id: &str, at: i64| {
        let verdict = verdict(&limiter, user_id);
        let tier = verdict.tiers().find(|tier| tier.rule.rule_id() == rule_id).unwrap();
        queue.note(&request(user_id), &tier, NOON.plus_micros(at));
    };
    for number in 0..1000 {
        note(1, &number.to_string(), number);
    }
    for number in 0..40 {
        note(2, &number.to_string(), 2000 + number);
        note(1, "one more", 2000 + number);
    }
    assert_eq!((queue.rows(), queue.largest_rule()), (ROWS_MAX, Some(1)));
    let rows = queue.take(20);
    let of = |rule_id| rows.iter().filter(|row| row.rule_id == rule_id).count();
    assert_eq!((of(1), of(2)), (10, 10), "both in turn");
    queue.settle(&rows, WriteResult::Written);
    let rest = queue.take(usize::MAX);
    assert_eq!(rest.iter().filter(|row| row.rule_id == 2).count(), 30, "none was dropped");
    let figures = metrics.figures();
    assert_eq!(figures.noted, figures.written + figures.dropped + sum(&rest));
    assert_eq!(figures.dropped, metrics.dropped_for(Dropped::Full));
}
