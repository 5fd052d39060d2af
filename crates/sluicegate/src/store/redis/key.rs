//! Keys in Redis, encoding version 1: `<prefix>:{<p>}:<rule>`, and `:<h>` for every further part.
//!
//! `p` and `h` are the base64url of the first 128 bits of SHA-256 over a part preceded by its length (eight
//! bytes, little-endian). So no user's text can forge another key or choose a slot, and all buckets of one
//! subject share a slot across rules. Buckets without a subject share `p` = `g`. Those without a rule have the key as `p`,
//! `t` as rule, and their namespace, if they have one, as further part.
//!
//! The slot's CRC16 is written by hand, in eight lines: redis-rs has it only behind its feature `cluster`,
//! with a cluster client that is not used here.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::store::Space;

/// Maximum length of the prefix.
pub(super) const PREFIX_BYTES_MAX: usize = 64;

/// Characters of a hashed part.
const HASH_CHARS: usize = 22;

/// Hash tag of buckets that all subjects share.
const SHARED_TAG: &str = "g";

/// Number of slots in a cluster.
pub(super) const SLOTS: u16 = 16_384;

/// The key of a bucket in Redis.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RedisKey {
    text: Arc<str>,
    /// Slot in a cluster.
    slot: u16,
    owner: KeyOwner,
}

/// Space of a key, without a name: the local bucket that replaces it takes its room there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum KeyOwner {
    /// The rule with this id, which has placeholders or not.
    Rule { id: u64, is_keyed: bool },
    /// Buckets without a rule.
    Take,
    /// A named limiter, or a key that is never stored.
    Other,
}

impl RedisKey {
    /// The key of a name under a prefix.
    pub(super) fn new(prefix: &str, space: Space<'_>, parts: &[&[u8]]) -> Self {
        let capacity = prefix.len() + (parts.len() + 1) * (HASH_CHARS + 3) + 20;
        let mut text = String::with_capacity(capacity);
        text.push_str(prefix);
        text.push_str(":{");
        let tag = text.len();
        match parts.first() {
            Some(subject) => push_hash(&mut text, subject),
            None => text.push_str(SHARED_TAG),
        }
        let slot = slot_of(&text.as_bytes()[tag..]);
        text.push_str("}:");
        let owner = match space {
            Space::Rule(id) => {
                push_number(&mut text, id);
                KeyOwner::Rule { id, is_keyed: !parts.is_empty() }
            }
            Space::Take => {
                text.push('t');
                KeyOwner::Take
            }
            Space::Named(name) => {
                text.push_str("n:");
                push_hash(&mut text, name.as_bytes());
                KeyOwner::Other
            }
        };
        for part in parts.iter().skip(1) {
            text.push(':');
            push_hash(&mut text, part);
        }
        Self { text: text.into(), slot, owner }
    }

    /// A key in the same slot under which nothing is ever stored: stored keys have a number there, `t` or
    /// `n`.
    pub(super) fn reserved(&self) -> Self {
        let end = self.text.find("}:").map_or(self.text.len(), |brace| brace + 2);
        let text = format!("{}p", &self.text[..end]).into();
        Self { text, slot: self.slot, owner: KeyOwner::Other }
    }

    /// Its space.
    pub(super) fn owner(&self) -> KeyOwner {
        self.owner
    }

    /// The key as stored in Redis.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Slot in a cluster.
    #[must_use]
    pub fn slot(&self) -> u16 {
        self.slot
    }
}

impl fmt::Debug for RedisKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisKey({})", self.text)
    }
}

fn push_number(text: &mut String, number: u64) {
    // Writing to a string cannot fail.
    let _ = fmt::Write::write_fmt(text, format_args!("{number}"));
}

fn push_hash(text: &mut String, part: &[u8]) {
    let hash =
        Sha256::new().chain_update((part.len() as u64).to_le_bytes()).chain_update(part).finalize();
    let mut encoded = [0; HASH_CHARS];
    // 16 bytes are 22 characters: they always fit.
    if URL_SAFE_NO_PAD.encode_slice(&hash[..16], &mut encoded).is_ok() {
        text.extend(encoded.map(char::from));
    }
}

/// The slot of a hash tag: its CRC-16/XMODEM, modulo the number of slots.
fn slot_of(tag: &[u8]) -> u16 {
    let crc = tag.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn key(space: Space<'_>, parts: &[&[u8]]) -> String {
        RedisKey::new("sg", space, parts).as_str().into()
    }

    #[test]
    fn keys_have_the_documented_form() {
        // printf '\2\0\0\0\0\0\0\00042' | sha256sum, its first 16 bytes in base64url
        assert_eq!(key(Space::Rule(1), &[b"42"]), "sg:{Efuaq_GNqGEupKOwtjcQrg}:1");
        assert_eq!(key(Space::Rule(9), &[]), "sg:{g}:9");
        assert!(key(Space::Take, &[b"user:123"]).ends_with("}:t"));
        assert_eq!(RedisKey::new("sg", Space::Take, &[b"k"]).slot(), {
            let key = key(Space::Take, &[b"k"]);
            let tag = key.split(['{', '}']).nth(1).unwrap();
            slot_of(tag.as_bytes())
        });
    }

    #[test]
    fn tiers_of_one_subject_share_a_slot_and_nothing_else() {
        let slot = |space, parts: &[&[u8]]| RedisKey::new("sg", space, parts).slot();
        let one = slot(Space::Rule(1), &[b"42"]);
        assert_eq!(one, slot(Space::Rule(7), &[b"42", b"/search"]));
        assert_eq!(one, slot(Space::Take, &[b"42"]));
        assert_ne!(key(Space::Rule(1), &[b"a", b"bc"]), key(Space::Rule(1), &[b"a", b"b"]));
    }

    proptest! {
        /// A namespace is a part of its own, after the key: the key alone determines the slot, so one namespace is
        /// spread.
        #[test]
        fn a_namespace_is_a_part_of_its_own(
            (one, in_one) in ("[\0a:}t]{0,3}", option::of("[\0a:}t]{0,3}")),
            (two, in_two) in ("[\0a:}t]{0,3}", option::of("[\0a:}t]{0,3}")),
        ) {
            let key = |key: &str, namespace: Option<&str>| {
                let parts: Vec<_> = [Some(key), namespace].into_iter().flatten().map(str::as_bytes).collect();
                RedisKey::new("sg", Space::Take, &parts)
            };
            let is_same = one == two && in_one == in_two;
            let (first, second) = (key(&one, in_one.as_deref()), key(&two, in_two.as_deref()));
            prop_assert_eq!(first == second, is_same);
            prop_assert_eq!(first.slot(), key(&one, None).slot());
        }
    }

    #[test]
    fn a_reserved_key_shares_the_slot() {
        let key = RedisKey::new("sg", Space::Named("n"), &[b"42", b"/search"]);
        assert_eq!(key.reserved().as_str(), "sg:{Efuaq_GNqGEupKOwtjcQrg}:p");
        assert_eq!(key.reserved().slot(), key.slot());
        assert_eq!(key.reserved().reserved(), key.reserved());
        let shared = RedisKey::new("sg", Space::Rule(0), &[]);
        assert_eq!(shared.reserved().as_str(), "sg:{g}:p");
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot_of(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"g"), slot_of(SHARED_TAG.as_bytes()));
    }
}
