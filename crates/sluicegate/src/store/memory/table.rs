//! The table of one shard: open addressing over 32-byte slots of atomics, two to a cache line.
//!
//! Written under its shard's lock, and read with or without it: every word is an atomic, so a
//! reader never sees a torn word, and the shard's sequence number tells it whether the
//! words it read are consistent (see `shard`). This needs no `unsafe`, and no word costs more
//! than a plain load or store.
//!
//! ```text
//!   slot   key 64 | key 64 | id' 11 : a 53 | id" 11 : b 53
//! ```
//!
//! The two halves of `id` name the form that the state was written under: an index into `forms`, which
//! holds each form once per table. Probing is linear and removal shifts back, so there are no
//! tombstones and a lookup never walks past the first empty slot.

use std::sync::Arc;

use sluicegate_core::{EXACT_MAX, Form, State};

use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Bits of a state word, which leaves eleven bits of each for the form.
const WORD_BITS: u32 = EXACT_MAX.trailing_zeros();
const WORD_MASK: u64 = EXACT_MAX - 1;
const ID_BITS: u32 = u64::BITS - WORD_BITS;
const ID_MASK: u32 = (1 << ID_BITS) - 1;

/// Maximum of forms in a table.
pub(super) const FORMS_MAX: usize = 1 << (2 * ID_BITS);

/// One bucket; empty if the first word is zero.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Slot([AtomicU64; 4]);

/// Content of a slot: a state and the id of its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) form: u32,
    pub(super) state: State,
}

/// Hash table of a shard; see the module's documentation. Clones share the slots, which saves readers one
/// indirection.
#[derive(Clone, Debug)]
pub(super) struct Table {
    slots: Arc<[Slot]>,
    forms: Arc<[[AtomicU64; 2]]>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(slots: usize, forms: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            forms: (0..forms).map(|_| Default::default()).collect(),
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn forms(&self) -> usize {
        self.forms.len()
    }

    /// The slot where the search for a key begins: its hash, scaled to the table, of any size.
    #[inline]
    fn home(&self, first_half: u64) -> usize {
        let scaled = (u128::from(first_half) * self.slots.len() as u128) >> 64;
        scaled as usize
    }

    #[inline]
    fn next(&self, index: usize) -> usize {
        if index + 1 == self.slots.len() { 0 } else { index + 1 }
    }

    /// The slot of this key, else the empty one for inserting it.
    ///
    /// A table that is being written may look full to a reader without the lock: the search ends
    /// after one round with `Err(None)`.
    #[inline]
    pub(super) fn find(&self, key: [u64; 2]) -> Result<usize, Option<usize>> {
        if self.slots.is_empty() {
            return Err(None);
        }
        let mut index = self.home(key[0]);
        for _ in 0..self.slots.len() {
            let [first, second, ..] = &self.slots[index].0;
            match first.load(Relaxed) {
                0 => return Err(Some(index)),
                word if word == key[0] && second.load(Relaxed) == key[1] => return Ok(index),
                _ => index = self.next(index),
            }
        }
        Err(None)
    }

    /// The key in a slot; `None` if it is empty.
    pub(super) fn key(&self, index: usize) -> Option<[u64; 2]> {
        let [first, second, ..] = &self.slots[index].0;
        match first.load(Relaxed) {
            0 => None,
            word => Some([word, second.load(Relaxed)]),
        }
    }

    /// The record in a slot.
    #[inline]
    pub(super) fn record(&self, index: usize) -> Record {
        let [.., a, b] = &self.slots[index].0;
        let (a, b) = (a.load(Relaxed), b.load(Relaxed));
        let form = ((a >> WORD_BITS) << ID_BITS | b >> WORD_BITS) as u32;
        Record { form, state: State { a: a & WORD_MASK, b: b & WORD_MASK } }
    }

    /// Replaces the record in a slot, leaving its key.
    #[inline]
    pub(super) fn set_record(&self, index: usize, Record { form, state }: Record) {
        let [.., a, b] = &self.slots[index].0;
        a.store(u64::from(form >> ID_BITS) << WORD_BITS | state.a & WORD_MASK, Relaxed);
        b.store(u64::from(form & ID_MASK) << WORD_BITS | state.b & WORD_MASK, Relaxed);
    }

    /// Fills an empty slot.
    pub(super) fn fill(&self, index: usize, key: [u64; 2], record: Record) {
        let [first, second, ..] = &self.slots[index].0;
        second.store(key[1], Relaxed);
        first.store(key[0], Relaxed);
        self.set_record(index, record);
    }

    /// Empties a slot, and shifts back the entries that were displaced by it.
    pub(super) fn clear(&self, index: usize) {
        let mut hole = index;
        let mut index = self.next(hole);
        while let Some(key) = self.key(index) {
            let home = self.home(key[0]);
            // Cyclic distances from the home slot: an entry may shift back unless its home lies behind the hole.
            let slots = self.slots.len();
            if (index + slots - home) % slots >= (index + slots - hole) % slots {
                self.fill(hole, key, self.record(index));
                hole = index;
            }
            index = self.next(index);
        }
        self.slots[hole].0[0].store(0, Relaxed);
    }

    /// The form with this id; `None` if a reader without the lock saw a stale id.
    #[inline]
    pub(super) fn form(&self, id: u32) -> Option<Form> {
        let [n, rest] = self.forms.get(id as usize)?;
        decode(n.load(Relaxed), rest.load(Relaxed))
    }

    /// Is the form with this id `form`?
    #[inline]
    pub(super) fn is_form(&self, id: u32, form: Form) -> bool {
        let (n, rest) = encode(form);
        self.forms
            .get(id as usize)
            .is_some_and(|words| words[0].load(Relaxed) == n && words[1].load(Relaxed) == rest)
    }

    /// Assigns an id to a form.
    pub(super) fn set_form(&self, id: u32, form: Form) {
        let (n, rest) = encode(form);
        let words = &self.forms[id as usize];
        words[0].store(n, Relaxed);
        words[1].store(rest, Relaxed);
    }
}

/// Encodes a form as two words; no form is (0, 0).
#[inline]
pub(super) fn encode(form: Form) -> (u64, u64) {
    let (kind, n, p) = match form {
        Form::Continuous { n, p } => (1, n, p),
        Form::Interval { n, p } => (2, n, p),
        Form::FixedWindow { p } => (3, 0, p),
        Form::SlidingWindow { p } => (4, 0, p),
        Form::SlidingCounter { p } => (5, 0, p),
        Form::LeakyBucket { n, p } => (6, n, p),
    };
    (n, kind << WORD_BITS | p)
}

fn decode(n: u64, rest: u64) -> Option<Form> {
    let p = rest & WORD_MASK;
    // An inconsistent read may show a period or a rate of zero, for which no decision can be made.
    if p == 0 {
        return None;
    }
    let rated = n > 0;
    match rest >> WORD_BITS {
        1 if rated => Some(Form::Continuous { n, p }),
        2 if rated => Some(Form::Interval { n, p }),
        3 => Some(Form::FixedWindow { p }),
        4 => Some(Form::SlidingWindow { p }),
        5 => Some(Form::SlidingCounter { p }),
        6 if rated => Some(Form::LeakyBucket { n, p }),
        _ => None,
    }
}
