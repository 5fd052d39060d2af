//! Contenders: one file per library, each limiter behind the same small trait.
//!
//! A limiter's whole answer is kept alive (`black_box`), not only its verdict, so that every contender
//! computes the figures that a caller would use.

mod floor;
mod governor;
mod limitador;
mod ratelimit;
mod sluicegate;
mod throttlecrab;

use std::ops::Range;

use self::sluicegate::keyed::Keyed;
use self::sluicegate::overrides::Overridden;
use self::sluicegate::rules::Whole;
use self::sluicegate::store;
use crate::workloads::{Key, Steps};

/// A limiter that knows every key's limit: `BURST` tokens, one more every `PERIOD_SECS`.
pub(crate) trait Limiter: Sync {
    /// Kind of key it accepts.
    type Key: Key;

    /// Takes `cost` tokens; true if granted.
    fn check(&self, key: &Self::Key, cost: u32) -> bool;
}

/// A limiter of any kind of key.
pub(crate) trait Walk: Sync {
    /// Checks the steps of this range, and returns the number of denials.
    fn walk(&self, steps: &Steps, range: Range<usize>) -> usize;

    /// Takes `taken` tokens from each of the first `keys` keys.
    fn populate(&self, keys: u64, taken: &dyn Fn(u64) -> u32);
}

impl<L: Limiter> Walk for L {
    fn walk(&self, steps: &Steps, range: Range<usize>) -> usize {
        let steps = &L::Key::steps(steps)[range];
        steps.iter().filter(|step| !self.check(&step.key, step.cost)).count()
    }

    fn populate(&self, keys: u64, taken: &dyn Fn(u64) -> u32) {
        for id in 0..keys {
            self.check(&L::Key::of(id), taken(id));
        }
    }
}

/// A limiter to measure.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Constructor for this number of keys.
    pub(crate) make: fn(u64) -> Box<dyn Walk>,
}

/// Sluicegate's raw charges, which most targets are about.
pub(crate) const SLUICEGATE: &str = "sluicegate store";
pub(crate) const KEYED: &str = "sluicegate keyed";
pub(crate) const KEYED_U64: &str = "sluicegate keyed u64";
/// The whole check, with as many rules as apply, with ten and with a thousand.
pub(crate) const CHECK: &str = "sluicegate check";
pub(crate) const CHECK_10: &str = "check, 10 rules";
pub(crate) const CHECK_1000: &str = "check, 1,000 rules";
/// The whole check of a service: with a few rules, and with many rules and overrides.
pub(crate) const SERVICE_10: &str = "service, 10 rules";
pub(crate) const SERVICE_1000: &str = "service, 1,000 rules, 100,000 overrides";
/// Contender that all others are compared with.
pub(crate) const GOVERNOR: &str = "governor";
pub(crate) const GOVERNOR_U64: &str = "governor u64";

/// Contenders that limit one bucket per key.
pub(crate) const SINGLE_TIER: &[Contender] = &[
    Contender { name: SLUICEGATE, make: |keys| Box::new(store::Single::new(keys)) },
    Contender { name: KEYED, make: |keys| Box::new(Keyed::<String>::new(keys)) },
    Contender { name: GOVERNOR, make: |_| Box::new(governor::Single::<String, _>::new()) },
    Contender { name: "limitador", make: |keys| Box::new(limitador::Single::new(keys)) },
    Contender { name: "throttlecrab", make: |keys| Box::new(throttlecrab::adaptive(keys)) },
    Contender { name: "floor", make: |keys| Box::new(floor::Floor::new(keys)) },
    Contender { name: KEYED_U64, make: |keys| Box::new(Keyed::<u64>::new(keys)) },
    Contender { name: GOVERNOR_U64, make: |_| Box::new(governor::Single::<u64, _>::new()) },
    Contender {
        name: "sluicegate, clock stopped",
        make: |keys| Box::new(store::Single::with_stopped_clock(keys)),
    },
    Contender {
        name: "governor, clock stopped",
        make: |_| Box::new(governor::Single::<String, _>::with_stopped_clock()),
    },
    Contender {
        name: "throttlecrab periodic",
        make: |keys| Box::new(throttlecrab::periodic(keys)),
    },
    Contender {
        name: "throttlecrab probabilistic",
        make: |keys| Box::new(throttlecrab::probabilistic(keys)),
    },
];

/// Contenders that limit one bucket only.
pub(crate) const UNKEYED: &[Contender] =
    &[Contender { name: "ratelimit", make: |_| Box::new(ratelimit::One::new()) }];

/// Contenders that limit a user, an endpoint and all requests together, in any way.
pub(crate) const THREE_TIERS: &[Contender] = &[
    Contender { name: SLUICEGATE, make: |keys| Box::new(store::Three::new(keys)) },
    Contender { name: CHECK, make: |keys| Box::new(Whole::new(keys, 3)) },
    Contender { name: CHECK_10, make: |keys| Box::new(Whole::new(keys, 10)) },
    Contender { name: CHECK_1000, make: |keys| Box::new(Whole::new(keys, 1000)) },
    Contender { name: GOVERNOR, make: |_| Box::new(governor::Three::new()) },
    Contender { name: "limitador", make: |keys| Box::new(limitador::Three::new(keys)) },
];

/// Limits of a user's plan, an endpoint, an address and all requests, with few rules and with many.
pub(crate) const FOUR_TIERS: &[Contender] = &[
    Contender { name: SERVICE_10, make: |keys| Box::new(Overridden::new(keys, 10, 0)) },
    Contender { name: SERVICE_1000, make: |keys| Box::new(Overridden::new(keys, 1000, 100_000)) },
];

/// The whole check with realistic quotas.
pub(crate) const SERVICE: Contender =
    Contender { name: CHECK, make: |keys| Box::new(Whole::with_real_quotas(keys)) };

/// The contender of this name.
///
/// # Panics
///
/// If there is none.
pub(crate) fn named(contenders: &'static [Contender], name: &str) -> &'static Contender {
    let found = contenders.iter().find(|contender| contender.name == name);
    found.unwrap_or_else(|| panic!("nobody is called {name}"))
}
