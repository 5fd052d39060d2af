//! Keys of the memory store: 128-bit hashes under a key drawn once per process.
//!
//! The table keeps nothing of a bucket's name but its hash, so two names with one hash would share a
//! bucket. `SipHash` with a secret key makes that a matter of chance, 2^-128 a pair, for names that an
//! attacker chooses too.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use siphasher::sip128::{Hasher128, SipHasher13};
use sluicegate_core::Quota;

use super::table::encode;
use crate::store::Space;

/// Names up to this many bytes, lengths included, are hashed from the stack in one go.
const INLINE_BYTES: usize = 192;

/// The secret of this process.
static SECRET: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let draw = || RandomState::new().build_hasher().finish();
    [draw(), draw()]
});

/// The key of a bucket in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKey {
    /// The hash of its name; the first half is never zero.
    pub(super) hash: [u64; 2],
    /// Which overflow bucket it shares with the rest of its space when the store is full.
    pub(super) space: u64,
}

impl MemoryKey {
    /// The key of a name. Every space hashes under a key of its own, so only the parts are hashed.
    #[inline]
    pub(super) fn new(space: Space<'_>, parts: &[&[u8]]) -> Self {
        let space = match space {
            // A rule has placeholders or it has none: both are never asked for.
            Space::Rule(id) => id << 2 | u64::from(!parts.is_empty()),
            Space::Take => 2,
            Space::Named(name) => hash_under(*SECRET, &[name.as_bytes()])[0] | 3,
        };
        let [first, second] = *SECRET;
        Self { hash: sound(hash_under([first ^ space, second], parts)), space }
    }

    /// The key of anything hashable in the space of a named limiter, whose own hash is the key that its
    /// keys are hashed under.
    #[inline]
    pub(crate) fn of<K: Hash + ?Sized>(limiter: &Self, key: &K) -> Self {
        let mut hasher = SipHasher13::new_with_keys(limiter.hash[0], limiter.hash[1]);
        key.hash(&mut hasher);
        let hash = hasher.finish128();
        Self { hash: sound([hash.h1, hash.h2]), space: limiter.space }
    }

    /// Is it the one bucket of a rule without placeholders?
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.space & 3 == 0
    }

    /// The key of the bucket that all new keys of this one's space and quota share when the store is full. A
    /// rule has one quota, and those of the subjects that have another.
    pub(super) fn overflow(&self, quota: &Quota) -> Self {
        let (n, rest) = encode(quota.form());
        let words = [self.space, n, rest, quota.capacity()].map(u64::to_le_bytes);
        let hash = hash_under(*SECRET, &[words.as_flattened()]);
        Self { hash: sound(hash), space: self.space }
    }
}

/// The hash of parts. All but the last stand behind their lengths, so that no choice of parts can
/// imitate another of as many; how many there are is part of the key.
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

/// The pieces of a name in order, each part but the last behind its length.
fn each_piece(parts: &[&[u8]], last: &[u8], mut write: impl FnMut(&[u8])) {
    for part in parts {
        write(&(part.len() as u64).to_le_bytes());
        write(part);
    }
    write(last);
}

/// A first half of zero would mark an empty slot.
fn sound([h1, h2]: [u64; 2]) -> [u64; 2] {
    [h1.max(1), h2]
}
