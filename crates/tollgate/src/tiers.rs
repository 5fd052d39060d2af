//! The tiers of a request: which rules apply, by which quota each is charged, and to which bucket.

use std::sync::Arc;

use arc_swap::Guard;
use smallvec::SmallVec;
use tollgate_core::{Decision, Outcome};

use crate::request::Request;
use crate::rules::{Mode, Number, Override, RuleSet};
use crate::store::{Charge, Charged, Space, Store};
use crate::verdict::{Judged, Verdict};

/// What the rule of a blocked subject answers.
const BLOCKED: Decision =
    Decision { outcome: Outcome::Never, limit: 0, remaining: 0, reset_after: 0 };

/// The tiers of a request, ready to be charged.
pub(crate) struct Tiers<K> {
    pub(crate) rules: Guard<Arc<RuleSet>>,
    /// Those whose buckets are asked.
    pub(crate) charged: SmallVec<[Charging<K>; 4]>,
    /// Those that answer without. If one of them is enforced, no bucket is asked.
    blocked: SmallVec<[(u32, Number); 4]>,
    /// Whether there are others, that limit nothing.
    is_unlimited: bool,
}

/// A tier whose bucket is charged.
pub(crate) struct Charging<K> {
    /// The position of its rule.
    pub(crate) rule: u32,
    pub(crate) overridden: Option<Number>,
    pub(crate) key: K,
}

impl<K> Tiers<K> {
    /// The tiers of a request under these rules.
    #[inline]
    pub(crate) fn new<S: Store<Key = K>>(
        store: &S,
        rules: Guard<Arc<RuleSet>>,
        request: &Request<'_>,
    ) -> Self {
        let (mut charged, mut blocked) = (SmallVec::new(), SmallVec::new());
        let mut is_unlimited = false;
        for rule in rules.applying(request) {
            if rules.rule(rule).mode() == Mode::Unlimited {
                is_unlimited = true;
                continue;
            }
            let overridden = rules.overridden(rule, request);
            match (rules.numbered(overridden), overridden) {
                (None | Some(Override::Quota(_)), _) => {
                    let key = key(store, &rules, rule, request);
                    charged.push(Charging { rule, overridden, key });
                }
                (Some(Override::Blocked), Some(number)) => blocked.push((rule, number)),
                _ => is_unlimited = true,
            }
        }
        let is_enforced = |(rule, _): &(u32, _)| rules.rule(*rule).mode() == Mode::Enforce;
        if blocked.iter().any(is_enforced) {
            charged.clear();
        }
        Self { rules, charged, blocked, is_unlimited }
    }

    /// What to charge for a request of this cost.
    #[inline]
    pub(crate) fn charges(&self, cost: u64) -> SmallVec<[Charge<'_, K>; 4]> {
        self.charged
            .iter()
            .map(|tier| {
                let rule = self.rules.rule(tier.rule);
                let quota = self.rules.quota(tier.rule, tier.overridden);
                let (mode, on_error) = (rule.mode(), rule.on_error());
                Charge { key: &tier.key, quota, cost, mode, on_error }
            })
            .collect()
    }

    /// The verdict, once the buckets have answered.
    #[inline]
    pub(crate) fn verdict(self, charged: Charged) -> Verdict {
        let asked = self.charged.iter().zip(charged.decisions);
        let mut tiers: SmallVec<[Judged; 4]> = asked
            .map(|(tier, decision)| Judged {
                rule: tier.rule,
                overridden: tier.overridden,
                decision,
            })
            .collect();
        if !self.blocked.is_empty() {
            tiers.extend(self.blocked.iter().map(|&(rule, number)| Judged {
                rule,
                overridden: Some(number),
                decision: BLOCKED,
            }));
            tiers.sort_unstable_by_key(|tier| tier.rule);
        }
        Verdict::new(self.rules, tiers, charged.degraded, self.is_unlimited)
    }
}

/// The key of the bucket that the rule at this position has for a request, whose attributes it needs are
/// all there.
#[inline]
pub(crate) fn key<S: Store>(
    store: &S,
    rules: &RuleSet,
    position: u32,
    request: &Request<'_>,
) -> S::Key {
    let rule = rules.rule(position);
    let values: SmallVec<[&[u8]; 4]> = rule
        .key_pattern()
        .attributes()
        .iter()
        .map(|attribute| request.get(attribute).unwrap_or_default().as_bytes())
        .collect();
    store.key(Space::Rule(rule.rule_id()), &values)
}
