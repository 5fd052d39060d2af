//! Keys of the memory store: 128-bit hashes under a key drawn once per process.
//!
//! The table stores only the hash of a bucket's name, so two names with one hash would share a
//! bucket. `SipHash` with a secret key makes the probability of that 2^-128 a pair, also for names that an
//! attacker chooses.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use siphasher::sip128::{Hasher128, SipHasher13};
use sluicegate_core::Quota;

use super::table::encode;
use crate::store::Space;

/// Names of up to this many bytes, lengths included, are hashed from the stack in one call.
const INLINE_BYTES: usize = 192;

/// Number of the space of buckets without a rule. Those of rules end in 0 or 1, those of named limiters in 3.
const TAKE: u64 = 2;

/// Hash key of this process.
static SECRET: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let draw = || RandomState::new().build_hasher().finish();
    [draw(), draw()]
});

/// The key of a bucket in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKey {
    /// Hash of its name; the first half is never zero.
    pub(super) hash: [u64; 2],
    /// Number of its space, which determines the overflow bucket that it shares when the store is full.
    pub(super) space: u64,
}

impl MemoryKey {
    /// The key of a name. Every space hashes under a key of its own, so only the parts are hashed.
    #[inline]
    pub(super) fn new(space: Space<'_>, parts: &[&[u8]]) -> Self {
        let space = match space {
            Space::Rule(id) => rule_space(id, !parts.is_empty()),
            Space::Take => TAKE,
            Space::Named(name) => hash_under(*SECRET, &[name.as_bytes()])[0] | 3,
        };
        let [first, second] = *SECRET;
        Self { hash: sound(hash_under([first ^ space, second], parts)), space }
    }

    /// The key of any hashable value in the space of a named limiter. The limiter's own hash is the hash key
    /// of its keys.
    #[inline]
    pub(crate) fn of<K: Hash + ?Sized>(limiter: &Self, key: &K) -> Self {
        let mut hasher = SipHasher13::new_with_keys(limiter.hash[0], limiter.hash[1]);
        key.hash(&mut hasher);
        let hash = hasher.finish128();
        Self { hash: sound([hash.h1, hash.h2]), space: limiter.space }
    }

    /// The key of a rule without values: of its only bucket, or one that merely names its space.
    pub(super) fn of_rule(id: u64, is_keyed: bool) -> Self {
        let [first, second] = *SECRET;
        let space = rule_space(id, is_keyed);
        Self { hash: sound(hash_under([first ^ space, second], &[])), space }
    }

    /// Is it a bucket without a rule?
    pub(super) fn is_take(&self) -> bool {
        self.space == TAKE
    }

    /// Is it the one bucket of a rule without placeholders?
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.space & 3 == 0
    }

    /// The key of the overflow bucket that all new keys of this space and quota share when the store is full. A
    /// rule has its own quota and those of its overrides.
    pub(super) fn overflow(&self, quota: &Quota) -> Self {
        let (n, rest) = encode(quota.form());
        let words = [self.space, n, rest, quota.capacity()].map(u64::to_le_bytes);
        let hash = hash_under(*SECRET, &[words.as_flattened()]);
        Self { hash: sound(hash), space: self.space }
    }
}

/// Number of a rule's space. A rule either has placeholders or has none, so the bit is a property of the rule.
#[inline]
fn rule_space(id: u64, is_keyed: bool) -> u64 {
    id << 2 | u64::from(is_keyed)
}

/// Hashes parts. All but the last are preceded by their lengths, so that different parts of the same number
/// never hash the same bytes; their number is part of the hash key.
#[inline]
fn hash_under([first, second]: [u64; 2], parts: &[&[u8]]) -> [u64; 2] {
    let mut hasher = SipHasher13::new_with_keys(first, second ^ parts.len() as u64);
    let hash = match parts {
        [] => hasher.finish128(),
        [part] => hasher.hash(part),
        [parts @ .., last] => {
            let length: usize = parts.iter().map(|part| 8 + part.len()).sum();
            if length + last.len() <= INLINE_BYTES {
                let mut buffer = [0; INLINE_BYTES];
                let mut used = 0;
                each_piece(parts, last, |piece| {
                    buffer[used..used + piece.len()].copy_from_slice(piece);
                    used += piece.len();
                });
                hasher.hash(&buffer[..used])
            } else {
                each_piece(parts, last, |piece| hasher.write(piece));
                hasher.finish128()
            }
        }
    };
    [hash.h1, hash.h2]
}

/// Writes the pieces of a name in order, each part but the last preceded by its length.
fn each_piece(parts: &[&[u8]], last: &[u8], mut write: impl FnMut(&[u8])) {
    for part in parts {
        write(&(part.len() as u64).to_le_bytes());
        write(part);
    }
    write(last);
}

/// Avoids a first half of zero, which would mark an empty slot.
fn sound([h1, h2]: [u64; 2]) -> [u64; 2] {
    [h1.max(1), h2]
}
