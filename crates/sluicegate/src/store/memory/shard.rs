//! One shard: a table behind a lock that can also be read without it.
//!
//! # How it works
//!
//! Writers hold the lock. All that they write under one hold of it is one change to a reader: the
//! first write begins the change and releasing the lock ends it (see `sequence`). So a charge of several
//! buckets, whose locks are held together, is never seen in part, and a bucket that moves to another
//! slot or another form is never missed in between.
//!
//! Reading without the lock is for denials: they change nothing, so many threads that hammer one
//! exhausted bucket share its cache line instead of invalidating it for each other.
//!
//! Every bucket belongs to the account whose room it takes (see `room`). The account is not in the slot: a form id names a
//! form together with an account, so that a charge of a stored bucket reads no more than before, and evicting the bucket
//! finds the account under the lock.
//!
//! A table that grows or shrinks is copied and swapped. Old tables live until their last reader has
//! finished (`arc-swap`). Shards are small, so a copy takes microseconds.

use std::sync::Arc;

use arc_swap::ArcSwap;
use sluicegate_core::sliding_window::{self, Edit, Log};
use sluicegate_core::{Form, Micros, Quota, State, is_full};

use super::account::{Account, Place};
use super::logs::Logs;
use super::sequence::Sequence;
use super::table::{FORMS_MAX, Record, Table};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// Maximum load. A table above it grows by a quarter: between 64 and 80 percent of slots are used.
const LOAD_MAX: (usize, usize) = (4, 5);
/// Slots of the smallest table that is not empty.
const SLOTS_MIN: usize = 8;
/// Forms of the smallest table that is not empty.
const FORMS_MIN: usize = 4;

/// A table behind a lock; see the module's documentation.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard {
    sequence: Sequence,
    /// The last charge under the lock was denied. The next one probably is too, so the read without a lock is tried.
    denied_last: AtomicBool,
    /// Place of all its buckets.
    place: Place,
    shown: ArcSwap<Table>,
    inner: Mutex<Inner>,
}

/// Data that the lock protects.
#[derive(Debug)]
struct Inner {
    /// The same table as in `shown`.
    table: Table,
    /// Time of the latest charge in this shard.
    latest: Micros,
    buckets: usize,
    /// Buckets written under each form, by form id.
    users: Vec<Users>,
    logs: Logs,
    /// Slot at which the next sweep continues.
    swept_to: usize,
}

/// Buckets of one form and one account.
#[derive(Clone, Debug, Default)]
struct Users {
    buckets: u32,
    /// `None` if there are no buckets.
    account: Option<Arc<Account>>,
}

/// A shard whose lock is held.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    shard: &'a Shard,
    inner: MutexGuard<'a, Inner>,
    /// A change has begun: readers without the lock fail until the lock is released.
    changing: bool,
}

/// Stored content of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored<'a> {
    /// Two integers, for all algorithms but the exact sliding window.
    State(State),
    /// Log of an exact sliding window.
    Log(Log<'a>),
}

/// Optimistic read of one bucket, without the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glimpse {
    sequence: u64,
    pub(super) state: State,
}

// ===== impl Shard =====

impl Shard {
    pub(super) fn new(place: Place) -> Self {
        let table = Table::new(0, 0);
        let inner = Inner {
            table: table.clone(),
            latest: Micros::default(),
            buckets: 0,
            users: Vec::new(),
            logs: Logs::default(),
            swept_to: 0,
        };
        Self {
            sequence: Sequence::new(),
            denied_last: AtomicBool::new(false),
            place,
            shown: ArcSwap::from_pointee(table),
            inner: Mutex::new(inner),
        }
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { shard: self, inner: self.inner.lock(), changing: false }
    }

    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked { shard: self, inner: self.inner.try_lock()?, changing: false })
    }

    /// Was the last charge under the lock denied?
    #[inline]
    pub(super) fn denied_last(&self) -> bool {
        self.denied_last.load(Ordering::Relaxed)
    }

    /// Reads a bucket without the lock. `None` if there is no bucket of this form, or a writer is at
    /// work. The result is valid only if [`is_current`](Self::is_current) is true afterwards.
    #[inline]
    pub(super) fn glimpse(&self, key: [u64; 2], form: Form) -> Option<Glimpse> {
        let sequence = self.sequence.read()?;
        let table = self.shown.load();
        let record = table.record(table.find(key).ok()?);
        let state = table.is_form(record.form, form).then_some(record.state)?;
        Some(Glimpse { sequence, state })
    }

    /// Has nothing been written since the glimpse began?
    #[inline]
    pub(super) fn is_current(&self, glimpse: Glimpse) -> bool {
        self.sequence.is_current(glimpse.sequence)
    }
}

// ===== impl Locked =====

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.changing {
            self.shard.sequence.end();
        }
    }
}

impl Locked<'_> {
    /// Place of all its buckets.
    pub(super) fn place(&self) -> Place {
        self.shard.place
    }

    /// Account of the bucket in a slot.
    pub(super) fn account(&self, index: usize) -> Option<&Arc<Account>> {
        let form = self.inner.table.record(index).form;
        self.inner.users.get(form as usize)?.account.as_ref()
    }

    /// The table for writing. Begins a change, so that reads without the lock fail from here on.
    #[inline]
    fn table_to_change(&mut self) -> &Table {
        if !self.changing {
            self.changing = true;
            self.shard.sequence.begin();
        }
        &self.inner.table
    }

    /// The time, raised to that of the latest charge in this shard if it is earlier by no more than the skew
    /// between two clock readings.
    #[inline]
    pub(super) fn no_earlier(&self, now: Micros, skew_us: u64) -> Micros {
        let latest = self.inner.latest;
        if latest > now && latest.get() - now.get() <= skew_us { latest } else { now }
    }

    /// Records the time of a charge.
    #[inline]
    pub(super) fn set_latest(&mut self, now: Micros) {
        self.inner.latest = now;
    }

    /// The slot of a bucket and its record, if it was written under this quota's form and keeps no log.
    #[inline]
    pub(super) fn record_of(&self, key: [u64; 2], quota: &Quota) -> Option<(usize, Record)> {
        let index = self.inner.table.find(key).ok()?;
        let record = self.inner.table.record(index);
        let is_usual = self.inner.table.is_form(record.form, quota.form()) && !quota.keeps_log();
        is_usual.then_some((index, record))
    }

    /// Replaces the record of a slot.
    #[inline]
    pub(super) fn set_record(&mut self, index: usize, record: Record) {
        self.table_to_change().set_record(index, record);
    }

    /// The slot of a bucket, if it is stored.
    #[inline]
    pub(super) fn find(&self, key: [u64; 2]) -> Option<usize> {
        self.inner.table.find(key).ok()
    }

    /// The content of a slot, if it was written under this form.
    #[inline]
    pub(super) fn stored_as(&self, index: usize, form: Form) -> Option<Stored<'_>> {
        let record = self.inner.table.record(index);
        self.inner.table.is_form(record.form, form).then(|| self.read(form, record.state))
    }

    /// The content of a slot, and the form it was written under.
    pub(super) fn stored(&self, index: usize) -> Option<(Form, Stored<'_>)> {
        let record = self.inner.table.record(index);
        let form = self.inner.table.form(record.form)?;
        Some((form, self.read(form, record.state)))
    }

    #[inline]
    fn read(&self, form: Form, state: State) -> Stored<'_> {
        match form {
            Form::SlidingWindow { .. } => {
                Stored::Log(Log { base: state.b, entries: self.inner.logs.entries(state.a) })
            }
            _ => Stored::State(state),
        }
    }

    /// Records whether the charge was denied. Stored only when it changes, to keep the cache line shared.
    #[inline]
    pub(super) fn set_denied_last(&self, denied: bool) {
        if self.shard.denied_last() != denied {
            self.shard.denied_last.store(denied, Ordering::Relaxed);
        }
    }

    /// Replaces the state in a slot that was written under the same form.
    pub(super) fn update(&mut self, index: usize, state: State) {
        let form = self.inner.table.record(index).form;
        self.set_record(index, Record { form, state });
    }

    /// Changes the logs of an account, and counts its entries.
    fn change_logs<T>(&mut self, account: &Account, change: impl FnOnce(&mut Logs) -> T) -> T {
        let before = self.inner.logs.len();
        let result = change(&mut self.inner.logs);
        account.log_changed(self.shard.place, before, self.inner.logs.len());
        result
    }

    /// Edits the log of a slot that was written under the same form.
    pub(super) fn edit(&mut self, index: usize, edit: &Edit) {
        let Record { form, state: State { a: number, .. } } = self.inner.table.record(index);
        let Inner { logs, users, .. } = &mut *self.inner;
        let before = logs.len();
        logs.apply(number, edit);
        // Borrowed, not cloned: this is the common case of an exact sliding window.
        if let Some(account) = users.get(form as usize).and_then(|users| users.account.as_ref()) {
            account.log_changed(self.shard.place, before, logs.len());
        }
        self.update(index, State { a: number, b: edit.base });
    }

    /// Stores a bucket, or one under another form, which stays with its account. A new one goes to the given account;
    /// without one it is not stored. Returns whether a bucket was added.
    pub(super) fn put(
        &mut self,
        key: [u64; 2],
        form: Form,
        state: State,
        account: Option<&Arc<Account>>,
    ) -> bool {
        let stored = self.find(key).map(|index| self.clear(index));
        let is_new = stored.is_none();
        let Some(account) = stored.flatten().or_else(|| account.cloned()) else { return false };
        self.reserve(form, &account);
        if is_new {
            account.added(self.shard.place);
        }
        let id = self.adopt(form, account);
        // After `reserve` there is an empty slot, and the search for a new key ends at it.
        if let Err(Some(index)) = self.inner.table.find(key) {
            self.table_to_change().fill(index, key, Record { form: id, state });
            self.inner.buckets += 1;
        }
        is_new
    }

    /// Stores a new log, or one that replaces a state of another form. Returns whether a bucket was added.
    pub(super) fn put_log(
        &mut self,
        key: [u64; 2],
        form: Form,
        edit: &Edit,
        account: Option<&Arc<Account>>,
    ) -> bool {
        let stored = self.find(key).and_then(|index| self.account(index));
        let Some(account) = stored.or(account).cloned() else { return false };
        let entries = edit.tail.into_iter().collect();
        let number = self.change_logs(&account, |logs| logs.insert(entries));
        self.put(key, form, State { a: number, b: edit.base }, Some(&account))
    }

    /// Removes a bucket and releases its room. False if there was none.
    pub(super) fn remove(&mut self, key: [u64; 2]) -> bool {
        let Some(index) = self.find(key) else { return false };
        self.evict(index);
        true
    }

    /// Empties a slot and releases the room of its bucket.
    fn evict(&mut self, index: usize) {
        if let Some(account) = self.clear(index) {
            account.removed(self.shard.place);
        }
    }

    /// Empties a slot. Returns the account of its bucket, whose room is still taken; that of its log is released.
    fn clear(&mut self, index: usize) -> Option<Arc<Account>> {
        let Record { form, state } = self.inner.table.record(index);
        let account = self.account(index).cloned();
        if let (Some(Form::SlidingWindow { .. }), Some(account)) =
            (self.inner.table.form(form), &account)
        {
            self.change_logs(account, |logs| logs.remove(state.a));
        }
        let users = &mut self.inner.users[form as usize];
        users.buckets -= 1;
        if users.buckets == 0 {
            users.account = None;
        }
        self.table_to_change().clear(index);
        self.inner.buckets -= 1;
        account
    }

    /// Evicts the full buckets among the next `slots` slots and returns their number.
    pub(super) fn sweep(&mut self, now: Micros, slots: usize) -> usize {
        let mut forgotten = 0;
        for _ in 0..slots.min(self.inner.table.slots()) {
            let index = self.inner.swept_to;
            if self.inner.table.key(index).is_some() && self.is_full(index, now) {
                // Another bucket may move into the slot, so the sweep does not advance.
                self.evict(index);
                forgotten += 1;
            } else {
                self.inner.swept_to = (index + 1) % self.inner.table.slots();
            }
        }
        self.shrink();
        forgotten
    }

    fn is_full(&self, index: usize, now: Micros) -> bool {
        match self.stored(index) {
            Some((form, Stored::State(state))) => is_full(form, state, now),
            Some((form, Stored::Log(log))) => sliding_window::spent(form, log, now) == 0,
            None => false,
        }
    }

    /// Shrinks a table that is less than a quarter full.
    fn shrink(&mut self) {
        let (buckets, slots) = (self.inner.buckets, self.inner.table.slots());
        let forms = self.inner.table.forms();
        if buckets == 0 && (slots > SLOTS_MIN || forms > FORMS_MIN) {
            self.show(Table::new(SLOTS_MIN, FORMS_MIN));
        } else if slots > SLOTS_MIN && buckets * 4 < slots {
            self.resize(slots_for(buckets), forms);
        }
    }

    /// Makes room for one more bucket of this form and account.
    fn reserve(&mut self, form: Form, account: &Arc<Account>) {
        let (slots, forms) = (self.inner.table.slots(), self.inner.table.forms());
        let no_slot = (self.inner.buckets + 1) * LOAD_MAX.1 > slots * LOAD_MAX.0;
        let no_form = self.form_id(form, account).is_none()
            && !self.inner.users.iter().any(|users| users.buckets == 0);
        if no_slot || no_form {
            let slots = if no_slot { slots_for(self.inner.buckets + 1) } else { slots };
            let forms = if no_form { (forms * 2).clamp(FORMS_MIN, FORMS_MAX) } else { forms };
            self.resize(slots, forms);
        }
    }

    /// Copies the table into one of another size and publishes that.
    fn resize(&mut self, slots: usize, forms: usize) {
        let (old, new) = (&self.inner.table, Table::new(slots, forms));
        for id in 0..old.forms() as u32 {
            if let Some(form) = old.form(id) {
                new.set_form(id, form);
            }
        }
        for index in 0..old.slots() {
            if let Some(key) = old.key(index)
                && let Err(Some(empty)) = new.find(key)
            {
                new.fill(empty, key, old.record(index));
            }
        }
        self.show(new);
    }

    /// Publishes another table to readers.
    fn show(&mut self, table: Table) {
        let (slots, slots_before) = (table.slots(), self.table_to_change().slots());
        // Buckets keep their order, so the sweep continues at the same relative position.
        self.inner.swept_to = self.inner.swept_to * slots / slots_before.max(1);
        self.inner.users.resize(table.forms(), Users::default());
        self.inner.users.shrink_to_fit();
        self.inner.table = table.clone();
        self.shard.shown.store(Arc::new(table));
    }

    fn form_id(&self, form: Form, account: &Arc<Account>) -> Option<u32> {
        let (table, users) = (&self.inner.table, &self.inner.users);
        let is_same = |id: &u32| {
            let held_by = users[*id as usize].account.as_ref();
            table.is_form(*id, form) && held_by.is_some_and(|held_by| Arc::ptr_eq(held_by, account))
        };
        (0..table.forms() as u32).find(is_same)
    }

    /// Counts one more bucket of a form and account, and returns their id. `reserve` has made sure that
    /// an id is free.
    fn adopt(&mut self, form: Form, account: Arc<Account>) -> u32 {
        let id = self.form_id(form, &account).unwrap_or_else(|| {
            let unused = self.inner.users.iter().position(|users| users.buckets == 0);
            unused.unwrap_or_default() as u32
        });
        self.table_to_change().set_form(id, form);
        let users = &mut self.inner.users[id as usize];
        users.buckets += 1;
        users.account = Some(account);
        id
    }
}

/// Number of slots for a table of this many buckets: a quarter more than the maximum load needs.
fn slots_for(buckets: usize) -> usize {
    let needed = (buckets * LOAD_MAX.1).div_ceil(LOAD_MAX.0);
    (needed + needed / 4).max(SLOTS_MIN)
}
