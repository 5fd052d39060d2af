//! The keys and their order.

use sluicegate::{RedisStore, Space, Store};
use tokio::runtime::Runtime;

/// Number of subjects: as many keys for each contender and tier.
pub(crate) const SUBJECTS: usize = 100_000;

/// Number of rules whose keys are prepared.
const RULES: u64 = 5;

pub(crate) struct Keys {
    /// Keys of the library, by subject and rule.
    ours: Vec<String>,
    walk: Vec<u32>,
}

impl Keys {
    pub(crate) fn new(url: &str) -> Self {
        // The store is used only to make the keys.
        let runtime = Runtime::new().expect("threads can be started");
        let _inside = runtime.enter();
        let store = RedisStore::builder(url).expect("the URL is one").build();
        let store = store.expect("the settings are right");
        let key = |subject: usize, rule| {
            let subject = subject.to_string();
            store.key(Space::Rule(rule), &[subject.as_bytes()]).as_str().to_owned()
        };
        let ours = (0..SUBJECTS)
            .flat_map(|subject| (1..=RULES).map(move |rule| (subject, rule)))
            .map(|(subject, rule)| key(subject, rule))
            .collect();
        let mut walk: Vec<_> = (0..SUBJECTS as u32).collect();
        fastrand::Rng::with_seed(11).shuffle(&mut walk);
        Self { ours, walk }
    }

    /// Key of a rule's bucket; rules are numbered from 1.
    pub(crate) fn ours(&self, subject: u32, rule: u64) -> &str {
        &self.ours[subject as usize * RULES as usize + rule as usize - 1]
    }

    /// All subjects, in the same order for every contender.
    pub(crate) fn walk(&self) -> impl Iterator<Item = u32> {
        self.walk.iter().copied()
    }
}
