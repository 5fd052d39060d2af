//! S1, S8: a bucket is its space and its parts, of any bytes. Keys are 128-bit hashes under a secret of the
//! process, so that a client cannot choose names that collide.

use std::collections::HashSet;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sluicegate::{LocalStore, MemoryKey, MemoryStore, Space, Store};

use crate::store::support::{config, part, tokens};

/// Any store: keys are the same in all stores of a process.
static STORE: LazyLock<MemoryStore> = LazyLock::new(MemoryStore::new);

/// A name that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    space: Owned,
    parts: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Rule(u64),
    Take,
    Named(String),
}

impl Name {
    fn key(&self) -> MemoryKey {
        let parts: Vec<_> = self.parts.iter().map(Vec::as_slice).collect();
        let space = match &self.space {
            Owned::Rule(id) => Space::Rule(*id),
            Owned::Take => Space::Take,
            Owned::Named(name) => Space::Named(name),
        };
        STORE.key(space, &parts)
    }
}

/// Difficult bytes: separators, lengths, terminators, and invalid UTF-8.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"\0\x01\x02\x03\x08:|{}\r\nab\xff".to_vec()),
        1 => any::<u8>(),
    ];
    // A name of more than 192 bytes is hashed in another way.
    prop_oneof![4 => vec(byte.clone(), 0..10), 1 => vec(byte, 100..200)]
}

fn space() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (0..3u64).prop_map(Owned::Rule),
        (0..1u64 << 62).prop_map(Owned::Rule),
        Just(Owned::Take),
        "[\0a:]{0,10}".prop_map(Owned::Named),
    ]
}

fn names() -> impl Strategy<Value = Name> {
    (space(), vec(bytes(), 0..5)).prop_map(|(space, parts)| Name { space, parts })
}

/// The same bytes, split at other positions.
fn cut(text: &[u8], at: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<_> = at.iter().map(|at| at.index(text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| text[ends[0]..ends[1]].to_vec()).collect()
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn s1_two_names_two_keys(one in names(), two in names()) {
        prop_assert_eq!(one.key() == two.key(), one == two);
        prop_assert_eq!(one.key(), one.clone().key());
    }

    /// A text split into parts at any positions is a bucket of its own.
    #[test]
    fn s1_two_cuts_two_keys(
        text in bytes(),
        one in vec(any::<prop::sample::Index>(), 0..4),
        two in vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let name = |at| Name { space: Owned::Take, parts: cut(&text, at) };
        let (one, two) = (name(&one), name(&two));
        prop_assert_eq!(one.key() == two.key(), one == two);
    }

    /// A key in a namespace is the bucket of no other key and of no other namespace.
    #[test]
    fn s1_two_namespaces_two_keys(
        one in ("[\0ab:]{0,3}", option::of("[\0ab:]{0,3}")),
        two in ("[\0ab:]{0,3}", option::of("[\0ab:]{0,3}")),
    ) {
        let key = |(key, namespace): &(String, Option<String>)| {
            STORE.take_key(key.as_bytes(), namespace.as_deref())
        };
        prop_assert_eq!(key(&one) == key(&two), one == two);
        if one.1.is_none() {
            prop_assert_eq!(key(&one), STORE.key(Space::Take, &[one.0.as_bytes()]));
        }
    }
}

#[test]
fn s1_names_that_look_alike() {
    let store = MemoryStore::new();
    let eight_zeros = [0; 8];
    let names: [(Space<'_>, &[&[u8]]); 14] = [
        (Space::Take, &[]),
        (Space::Take, &[b""]),
        (Space::Take, &[b"", b""]),
        (Space::Take, &[b"a", b"bc"]),
        (Space::Take, &[b"ab", b"c"]),
        (Space::Take, &[b"abc"]),
        (Space::Take, &[b"abc\0"]),
        (Space::Take, &[b"\0abc"]),
        (Space::Take, &[&eight_zeros]),
        (Space::Rule(0), &[b"abc"]),
        (Space::Rule(1), &[b"abc"]),
        (Space::Named(""), &[b"abc"]),
        (Space::Named("abc"), &[]),
        (Space::Named("abc"), &[b""]),
    ];
    let quota = tokens(1);
    // Each of them has a token of its own.
    for (space, parts) in names {
        let key = store.key(space, parts);
        assert!(store.charge_one_now(part(&key, &quota, 1)).is_granted(), "{space:?} {parts:?}");
    }
    assert_eq!(store.stats().buckets, names.len());
}

/// A million consecutive names: no two keys are equal.
#[test]
fn s8_a_million_names_a_million_keys() {
    let key = |number: u32| STORE.key(Space::Rule(1), &[&number.to_le_bytes()]);
    let keys: HashSet<_> = (0..1_000_000).map(|number| format!("{:?}", key(number))).collect();
    assert_eq!(keys.len(), 1_000_000);
}
