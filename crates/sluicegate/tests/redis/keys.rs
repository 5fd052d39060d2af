//! S1, S2: keys are distinct for names of any bytes, and names choose nothing.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate::{RedisStore, Space, Store};

fn store() -> RedisStore {
    RedisStore::builder("redis://127.0.0.1:1").unwrap().build().unwrap()
}

/// Delimiter bytes and any others.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(
            prop_oneof![Just(b':'), Just(b'{'), Just(b'}'), Just(0), Just(b'\n'), Just(b'a')],
            0..6
        ),
        vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn s1_names_that_differ_have_keys_that_differ(
        one in vec(part(), 0..4),
        other in vec(part(), 0..4),
        rules in (0..20_u64, 0..20_u64),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let store = store();
        let key = |rule, parts: &[Vec<u8>]| {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            store.key(Space::Rule(rule), &parts)
        };
        let (first, second) = (key(rules.0, &one), key(rules.1, &other));
        prop_assert_eq!(first == second, rules.0 == rules.1 && one == other);
        // One subject, one slot; and a key contains nothing of a name but its hash.
        if one.first() == other.first() {
            prop_assert_eq!(first.slot(), second.slot());
        }
        let text = first.as_str();
        prop_assert!(text.is_ascii());
        prop_assert_eq!(text.find('{'), Some(3));
        prop_assert_eq!(text.matches(['{', '}']).count(), 2);
    }
}
