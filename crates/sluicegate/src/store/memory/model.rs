//! Loom models of reading without the lock, under every interleaving and every reordering that C11 allows.
//!
//! ```text
//! cargo test -p sluicegate-loom model
//! ```
//!
//! Sequence, table and shard are the production types over loom's atomics and locks. `ArcSwap` is not
//! modelled by loom, so no table is swapped here: the `shuttle` tests do that.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use sluicegate_core::{Form, State};

use super::account::{Account, Budget, Place, RoomOwner};
use super::pool::Pool;
use super::sequence::Sequence;
use super::shard::Shard;
use super::table::{Record, Table};

/// Keys whose search begins at the first slot in a table of any size.
const ONE: [u64; 2] = [1, 11];
const TWO: [u64; 2] = [2, 22];

const PER_SECOND: Form = Form::Continuous { n: 1, p: 1_000_000 };
const PER_MINUTE: Form = Form::FixedWindow { p: 60_000_000 };

/// A state whose two words are equal, so that a torn read shows.
fn whole(word: u64) -> State {
    State { a: word, b: word }
}

fn record(word: u64) -> Record {
    Record { form: 0, state: whole(word) }
}

/// Runs a writer and a reader concurrently, in all interleavings.
///
/// Loom finds them by permuting the first one. It records only the last access to an atomic,
/// so that a writer which loads before it stores can hide an earlier reader: each of the two therefore
/// comes first once.
fn race<T: Send + Sync + 'static>(new: fn() -> T, write: fn(&T), read: fn(&T)) {
    for (ahead, behind) in [(write, read), (read, write)] {
        loom::model(move || {
            let shared = Arc::new(new());
            let spawned = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || behind(&shared))
            };
            ahead(&shared);
            spawned.join().unwrap();
        });
    }
}

/// The part of a shard that is visible to readers without the lock.
struct Shown {
    sequence: Sequence,
    table: Table,
}

impl Shown {
    /// Two buckets, the second displaced by one slot.
    fn new() -> Self {
        let table = Table::new(3, 1);
        table.set_form(0, PER_SECOND);
        table.fill(0, ONE, record(1));
        table.fill(1, TWO, record(2));
        Self { sequence: Sequence::new(), table }
    }

    fn change(&self, write: impl FnOnce(&Table)) {
        self.sequence.begin();
        write(&self.table);
        self.sequence.end();
    }

    /// `Shard::glimpse` and `Shard::is_current` in one: `None` if a writer was at work, else the bucket's state
    /// if it is stored under this form.
    fn look(&self, key: [u64; 2], form: Form) -> Option<Option<State>> {
        let number = self.sequence.read()?;
        let found = self.table.find(key).ok().map(|index| self.table.record(index));
        let state =
            found.filter(|record| self.table.is_form(record.form, form)).map(|record| record.state);
        self.sequence.is_current(number).then_some(state)
    }
}

/// A state is seen before or after a change, never half of each.
#[test]
fn no_state_is_torn() {
    let write = |shown: &Shown| {
        shown.change(|table| table.set_record(0, record(3)));
        shown.change(|table| table.set_record(0, record(4)));
        assert_eq!(shown.look(ONE, PER_SECOND), Some(Some(whole(4))));
    };
    race(Shown::new, write, |shown| {
        if let Some(state) = shown.look(ONE, PER_SECOND) {
            assert!([1, 3, 4].map(|word| Some(whole(word))).contains(&state), "{state:?}");
        }
    });
}

/// A bucket that moves back because the one before it goes is not missed, nor are the two mixed up.
#[test]
fn no_bucket_is_missed_while_it_moves() {
    let write = |shown: &Shown| {
        shown.change(|table| table.clear(0));
        assert_eq!(shown.look(ONE, PER_SECOND), Some(None));
    };
    race(Shown::new, write, |shown| {
        if let Some(moved) = shown.look(TWO, PER_SECOND) {
            assert_eq!(moved, Some(whole(2)));
        }
    });
    race(Shown::new, write, |shown| {
        if let Some(gone) = shown.look(ONE, PER_SECOND) {
            assert!(gone.is_none_or(|state| state == whole(1)), "{gone:?}");
        }
    });
}

/// A slot that is emptied and filled again, under another form with the same id: neither is read as
/// the other.
#[test]
fn no_form_is_read_as_the_one_before_it() {
    let write = |shown: &Shown| {
        shown.change(|table| {
            table.clear(1);
            table.set_form(0, PER_MINUTE);
            table.set_record(0, record(5));
        });
    };
    race(Shown::new, write, |shown| {
        if let Some(before) = shown.look(ONE, PER_SECOND) {
            assert!(before.is_none_or(|state| state == whole(1)), "{before:?}");
        }
    });
    race(Shown::new, write, |shown| {
        if let Some(after) = shown.look(ONE, PER_MINUTE) {
            assert!(after.is_none_or(|state| state == whole(5)), "{after:?}");
        }
    });
}

/// Two shards that are changed together, the first released first: a reader of both sees both
/// changes or neither.
#[test]
fn no_charge_of_two_shards_is_seen_in_part() {
    type Shards = [(Sequence, AtomicU64); 2];

    fn read_both(shards: &Shards, order: [usize; 2]) {
        let read = |at: usize| {
            let (sequence, word) = &shards[at];
            Some((at, sequence.read()?, word.load(Ordering::Relaxed)))
        };
        if let [Some(one), Some(two)] = order.map(read)
            && [one, two].iter().all(|(at, number, _)| shards[*at].0.is_current(*number))
        {
            assert_eq!(one.2, two.2);
        }
    }

    let new = || [(); 2].map(|()| (Sequence::new(), AtomicU64::new(0)));
    let write = |shards: &Shards| {
        for (sequence, word) in shards {
            sequence.begin();
            word.store(1, Ordering::Relaxed);
        }
        shards.iter().for_each(|(sequence, _)| sequence.end());
    };
    race(new, write, |shards| read_both(shards, [0, 1]));
    race(new, write, |shards| read_both(shards, [1, 0]));
}

/// Two writers in turn: a reader never sees parts of both changes as one.
#[test]
fn no_two_changes_are_taken_for_one() {
    let write = |(lock, shown): &(Mutex<()>, Shown)| {
        let _held = lock.lock().unwrap();
        shown.change(|table| table.set_record(0, record(3)));
    };
    race(
        || (Mutex::new(()), Shown::new()),
        write,
        |(lock, shown)| {
            if let Some(state) = shown.look(ONE, PER_SECOND) {
                assert!([1, 3].map(|word| Some(whole(word))).contains(&state), "{state:?}");
            }
            // The reader becomes a writer.
            let _held = lock.lock().unwrap();
            shown.change(|table| table.set_record(0, record(4)));
            assert_eq!(shown.look(ONE, PER_SECOND), Some(Some(whole(4))));
        },
    );
}

// ===== whole shards =====

/// A shard with one bucket.
fn shard() -> Shard {
    let shard = Shard::new(Place::Keyless);
    let budget = Arc::new(Budget { buckets: Pool::new(1), logs: Pool::new(1) });
    let account = Account::new(RoomOwner::Other, &budget);
    shard.lock().put(ONE, PER_SECOND, whole(1), Some(&account));
    // A read without a concurrent writer succeeds.
    assert!(shard.glimpse(ONE, PER_SECOND).is_some_and(|glimpse| shard.is_current(glimpse)));
    shard
}

/// Reads the bucket once; without a concurrent writer, it is in one of these states.
fn glimpse(shard: &Shard, states: &[u64]) {
    if let Some(glimpse) = shard.glimpse(ONE, PER_SECOND)
        && shard.is_current(glimpse)
    {
        assert!(states.contains(&glimpse.state.a), "{glimpse:?}");
        assert_eq!(glimpse.state.a, glimpse.state.b);
    }
}

#[test]
fn no_glimpse_of_a_bucket_that_is_updated_is_torn() {
    let write = |shard: &Shard| {
        shard.lock().update(0, whole(2));
        shard.lock().remove(ONE);
        assert!(shard.glimpse(ONE, PER_SECOND).is_none());
    };
    race(shard, write, |shard| glimpse(shard, &[1, 2]));
}

/// All writes under one hold of the lock are one change: no reader sees a part of it.
#[test]
fn no_glimpse_sees_what_is_under_one_hold_of_the_lock() {
    let write = |shard: &Shard| {
        let mut locked = shard.lock();
        locked.update(0, whole(2));
        locked.remove(ONE);
    };
    race(shard, write, |shard| glimpse(shard, &[1]));
}
