//! limitador: its in-memory storage, with a limit per user and, for three tiers, two without variables.
//! Its limits are fixed windows. Building the context is part of a check, as it is for its callers.

use std::collections::HashMap;
use std::hint::black_box;

use limitador::RateLimiter;
use limitador::limit::{Context, Expression, Limit, Namespace, Predicate};

use super::Limiter;
use crate::workloads::BURST;

/// Length of the windows, longer than any run: at its end a window is reset.
const WINDOW_SECS: u64 = 24 * 60 * 60;

/// One counter per user.
pub(super) struct Single {
    limiter: RateLimiter,
    namespace: Namespace,
}

/// A user's counter, an endpoint's and the global one.
pub(super) struct Three(Single);

impl Single {
    pub(super) fn new(keys: u64) -> Self {
        let limiter = RateLimiter::new(keys * 2);
        let namespace = Namespace::from("bench");
        let user = Expression::parse("user").expect("`user` is an expression");
        limiter.add_limit(Limit::new(namespace.clone(), BURST.into(), WINDOW_SECS, [], [user]));
        Self { limiter, namespace }
    }

    fn check(&self, values: HashMap<String, String>, cost: u32) -> bool {
        let context = Context::from(values);
        let checked =
            self.limiter.check_rate_limited_and_update(&self.namespace, &context, cost.into());
        !black_box(checked).expect("memory does not fail").limited
    }
}

impl Three {
    pub(super) fn new(keys: u64) -> Self {
        let single = Single::new(keys);
        let search = Predicate::parse("endpoint == '/api/search'").expect("a sound condition");
        let limit = |conditions: Option<Predicate>| {
            let namespace = single.namespace.clone();
            Limit::new(namespace, BURST.into(), WINDOW_SECS, conditions, [])
        };
        single.limiter.add_limit(limit(Some(search)));
        single.limiter.add_limit(limit(None));
        Self(single)
    }
}

impl Limiter for Single {
    type Key = String;

    fn check(&self, key: &String, cost: u32) -> bool {
        self.check(HashMap::from([("user".to_owned(), key.clone())]), cost)
    }
}

impl Limiter for Three {
    type Key = String;

    fn check(&self, key: &String, cost: u32) -> bool {
        let values = HashMap::from([
            ("user".to_owned(), key.clone()),
            ("endpoint".to_owned(), "/api/search".to_owned()),
        ]);
        self.0.check(values, cost)
    }
}
