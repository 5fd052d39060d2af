//! Keys of the memory store: 128-bit hashes under a key drawn once per process.
//!
//! The table keeps nothing of a bucket's name but its hash, so two names with one hash would share a
//! bucket. `SipHash` with a secret key makes that a matter of chance, 2^-128 a pair, for names that an
//! attacker chooses too.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::store::Space;

/// Names up to this many bytes, lengths included, are hashed from the stack in one go.
const INLINE_BYTES: usize = 192;

/// The secret of this process.
static HASHER: LazyLock<SipHasher13> = LazyLock::new(|| {
    let draw = || RandomState::new().build_hasher().finish();
    SipHasher13::new_with_keys(draw(), draw())
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
    /// The key of a name: what stands in front of the parts says how many bytes each of them has, so
    /// that no choice of parts can imitate another.
    pub(super) fn new(space: Space<'_>, parts: &[&[u8]]) -> Self {
        let (tag, number, name) = match space {
            Space::Rule(id) => (1, id, ""),
            Space::Take => (2, 0, ""),
            Space::Named(name) => (3, 0, name),
        };
        let length = 17 + name.len() + parts.iter().map(|part| 8 + part.len()).sum::<usize>();
        let mut head = [0; 17];
        head[0] = tag;
        head[1..9].copy_from_slice(&number.to_le_bytes());
        head[9..].copy_from_slice(&(name.len() as u64).to_le_bytes());
        let hash = if length <= INLINE_BYTES {
            let mut buffer = [0; INLINE_BYTES];
            let mut used = 0;
            each_piece(&head, name, parts, |piece| {
                buffer[used..used + piece.len()].copy_from_slice(piece);
                used += piece.len();
            });
            HASHER.hash(&buffer[..used])
        } else {
            let mut hasher = *HASHER;
            each_piece(&head, name, parts, |piece| hasher.write(piece));
            hasher.finish128()
        };
        let space = match space {
            Space::Rule(_) | Space::Take => number << 2 | u64::from(tag),
            Space::Named(name) => HASHER.hash(name.as_bytes()).h1 | 3,
        };
        Self { hash: sound([hash.h1, hash.h2]), space }
    }

    /// The key of anything hashable in the space of a named limiter, whose own hash comes first.
    #[inline]
    pub(crate) fn of<K: Hash + ?Sized>(limiter: &Self, key: &K) -> Self {
        let mut hasher = *HASHER;
        hasher.write_u64(limiter.hash[0]);
        hasher.write_u64(limiter.hash[1]);
        key.hash(&mut hasher);
        let hash = hasher.finish128();
        Self { hash: sound([hash.h1, hash.h2]), space: limiter.space }
    }

    /// The key of the bucket that all new keys of this one's space share when the store is full.
    pub(super) fn overflow(&self) -> Self {
        Self { hash: sound([self.space, u64::MAX]), space: self.space }
    }
}

/// The pieces of a name in order, each part behind its length.
fn each_piece(head: &[u8], name: &str, parts: &[&[u8]], mut write: impl FnMut(&[u8])) {
    write(head);
    write(name.as_bytes());
    for part in parts {
        write(&(part.len() as u64).to_le_bytes());
        write(part);
    }
}

/// A first half of zero would mark an empty slot.
fn sound([h1, h2]: [u64; 2]) -> [u64; 2] {
    [h1.max(1), h2]
}
