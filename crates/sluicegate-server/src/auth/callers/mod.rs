//! Registry of the callers in force: those of the database or the snapshot that have not expired.

mod uses;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tracing::warn;

use crate::data::{CALLERS_MAX, Right, Rights, StoredCaller};
use crate::time::Timestamp;

pub(crate) use self::uses::UseRecorder;

/// Mark of a URI among the names of certificates. DNS names have none, and are compared without regard to case.
const URI_MARK: char = ':';

/// The callers in force. Connections cache the caller that they have verified together with the epoch, and verify it
/// again when the epoch has changed.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    table: ArcSwap<Table>,
    /// Number of callers that exist, expired ones included: read by every request without a caller.
    existing: AtomicUsize,
    /// Number of changes. Raised after the table is replaced: a result cached under an epoch that was read before
    /// the table is never kept for longer than the callers it was found in.
    epoch: AtomicU64,
}

/// Identity of the data doors.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) caller_id: u64,
    pub(crate) name: Box<str>,
    pub(crate) rights: Rights,
    /// Namespace of its keys and requests; `None` for the common one.
    pub(crate) namespace: Option<Box<str>>,
    /// True if it was used since the flag was last collected.
    was_used: AtomicBool,
}

/// Callers that have not expired.
type Table = Vec<Entry>;

/// A caller with its credentials.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    hash: Option<HashWords>,
    certificate: Option<Box<str>>,
    caller: Arc<Caller>,
}

/// SHA-256 of a token, in words: comparing words takes an eighth of the time of comparing bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct HashWords([u64; 4]);

impl Callers {
    /// Replaces the callers by those of the database that have not expired at `now`. The epoch stays if they are the
    /// same as before.
    pub(crate) fn set(&self, stored: &[StoredCaller], now: Timestamp) {
        let mut in_force: Vec<_> =
            stored.iter().filter(|caller| !is_expired(caller, now)).collect();
        if in_force.len() > CALLERS_MAX {
            let callers = in_force.len();
            warn!(callers, max = CALLERS_MAX, "too many callers: the newest are ignored");
            in_force.sort_by_key(|caller| caller.caller_id);
            in_force.truncate(CALLERS_MAX);
        }
        let before = self.table.load();
        let table: Table = in_force.into_iter().map(|caller| Entry::new(caller, &before)).collect();
        let is_same = table == **before;
        self.table.store(Arc::new(table));
        let existed = self.existing.swap(stored.len(), Ordering::Relaxed);
        if !is_same || existed != stored.len() {
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Number of changes so far. To be read before the lookup whose result is cached with it.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// True if no caller exists. An expired caller exists until it is revoked: its end must not open the doors.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.existing.load(Ordering::Relaxed) == 0
    }

    /// Number of callers in force.
    pub(crate) fn len(&self) -> usize {
        self.table.load().len()
    }

    /// Caller whose token has this hash. Takes the same time for every hash.
    pub(crate) fn by_hash(&self, hash: &[u8; 32]) -> Option<Arc<Caller>> {
        const NONE: u32 = u32::MAX;
        let (table, hash) = (self.table.load(), HashWords::of(hash));
        let mut found = NONE;
        for (position, entry) in (0..NONE).zip(&**table) {
            if let Some(of_entry) = &entry.hash {
                found.conditional_assign(&position, hash.ct_eq(of_entry));
            }
        }
        let entry = usize::try_from(found).ok().and_then(|found| table.get(found));
        entry.map(|entry| Arc::clone(&entry.caller))
    }

    /// Caller of this name whose token has this hash. Takes the same time for every hash; names are no secret.
    pub(crate) fn by_name(&self, name: &[u8], hash: &[u8; 32]) -> Option<Arc<Caller>> {
        let caller = self.by_hash(hash)?;
        (caller.name.as_bytes() == name).then_some(caller)
    }

    /// Caller of this name, which the client has not verified: only for the record of a failed sign-in.
    pub(crate) fn unverified(&self, name: &[u8]) -> Option<Arc<Caller>> {
        let table = self.table.load();
        let found = table.iter().find(|entry| entry.caller.name.as_bytes() == name);
        found.map(|entry| Arc::clone(&entry.caller))
    }

    /// Caller with one of the names of a verified certificate: the first in the order of the names.
    pub(crate) fn by_certificate(&self, names: &[Box<str>]) -> Option<Arc<Caller>> {
        if names.is_empty() {
            return None;
        }
        let table = self.table.load();
        let has = |entry: &&Entry, name: &str| entry.certificate.as_deref() == Some(name);
        let mut found = names.iter().filter_map(|name| {
            let name = certificate_name(name);
            table.iter().find(|entry| has(entry, &name))
        });
        found.next().map(|entry| Arc::clone(&entry.caller))
    }

    /// Ids of the callers that were used since the last call.
    pub(crate) fn take_used(&self) -> Vec<u64> {
        let table = self.table.load();
        let callers = table.iter().map(|entry| &entry.caller);
        let used = callers.filter(|caller| caller.was_used.swap(false, Ordering::Relaxed));
        used.map(|caller| caller.caller_id).collect()
    }

    /// Records that these callers were used.
    fn note_uses(&self, caller_ids: &[u64]) {
        let table = self.table.load();
        let callers = table.iter().map(|entry| &entry.caller);
        callers.filter(|caller| caller_ids.contains(&caller.caller_id)).for_each(|c| c.note_use());
    }
}

impl Caller {
    /// True if it has this right.
    #[inline]
    pub(crate) fn may(&self, right: Right) -> bool {
        self.rights.contains(right)
    }

    /// Records that it was used. Writes only the first time, so that threads do not compete for the flag.
    #[inline]
    pub(crate) fn note_use(&self) {
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }
}

/// Without the flag of its use.
impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        let fields = |caller: &Self| (caller.caller_id, caller.rights);
        fields(self) == fields(other)
            && self.name == other.name
            && self.namespace == other.namespace
    }
}

impl Eq for Caller {}

impl Entry {
    /// Entry of a stored caller. The flag of its use is carried over from the table before.
    fn new(stored: &StoredCaller, before: &Table) -> Self {
        let caller = Caller {
            caller_id: stored.caller_id,
            name: stored.name.as_str().into(),
            rights: stored.rights,
            namespace: stored.namespace.as_deref().map(Into::into),
            was_used: AtomicBool::new(false),
        };
        let mut entries = before.iter();
        let caller = match entries.find(|entry| entry.caller.caller_id == caller.caller_id) {
            Some(same) if *same.caller == caller => Arc::clone(&same.caller),
            Some(changed) => {
                if changed.caller.was_used.load(Ordering::Relaxed) {
                    caller.note_use();
                }
                Arc::new(caller)
            }
            None => Arc::new(caller),
        };
        Self {
            hash: stored.hash.as_ref().map(HashWords::of),
            certificate: stored.certificate.as_deref().map(certificate_name),
            caller,
        }
    }
}

/// Without the hash.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.caller).finish()
    }
}

impl HashWords {
    fn of(hash: &[u8; 32]) -> Self {
        let (words, _) = hash.as_chunks::<8>();
        Self(std::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }
}

impl ConstantTimeEq for HashWords {
    fn ct_eq(&self, other: &Self) -> Choice {
        let words = self.0.iter().zip(&other.0);
        let difference = words.fold(0, |difference, (one, other)| difference | (one ^ other));
        difference.ct_eq(&0)
    }
}

fn is_expired(caller: &StoredCaller, now: Timestamp) -> bool {
    caller.expires_at.is_some_and(|at| at <= now)
}

/// Name of a certificate as it is compared: DNS names in lower case, URIs as they are.
fn certificate_name(name: &str) -> Box<str> {
    if name.contains(URI_MARK) { name.into() } else { name.to_ascii_lowercase().into() }
}

#[cfg(test)]
mod tests;
