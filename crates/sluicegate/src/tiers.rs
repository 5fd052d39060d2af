//! The tiers of a request: the rules that apply, with the quota and the bucket of each.

use std::sync::Arc;

use arc_swap::Guard;
use sluicegate_core::{Decision, Outcome};
use smallvec::SmallVec;

use crate::request::Request;
use crate::rules::{Matched, Mode, Number, Override, RuleSet, TooCostly};
use crate::store::{Charge, Space, Store};
use crate::verdict::{Excess, Judged, Verdict};

/// Decision of the rule of a blocked subject.
pub(crate) const BLOCKED: Decision =
    Decision { outcome: Outcome::Never, limit: 0, remaining: 0, reset_after: 0 };

/// The tiers of a request, ready to be charged.
pub(crate) struct Tiers<K> {
    pub(crate) rules: Guard<Arc<RuleSet>>,
    /// Tiers whose buckets are charged.
    pub(crate) charged: SmallVec<[Charging<K>; 4]>,
    /// Tiers whose subject is blocked. If one of them is enforced, no bucket is charged.
    blocked: SmallVec<[(u32, Number); 4]>,
    /// A rule applied that limits nothing.
    is_unlimited: bool,
    /// The bound that the request exceeds. There are no tiers then.
    excess: Option<Excess>,
}

/// A tier whose bucket is charged.
pub(crate) struct Charging<K> {
    /// Position of its rule in the set.
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
        let matched = rules.applying(request);
        Self::of(store, rules, request, matched)
    }

    /// The tiers that these rules, by their positions, give a request.
    #[inline]
    pub(crate) fn of<S: Store<Key = K>>(
        store: &S,
        rules: Guard<Arc<RuleSet>>,
        request: &Request<'_>,
        matched: Matched,
    ) -> Self {
        let matches = match matched {
            Ok(matches) if matches.len() <= rules.tiers_max() => matches,
            excessive => return Self::excessive(rules, excessive),
        };
        let (mut charged, mut blocked) = (SmallVec::new(), SmallVec::new());
        let mut is_unlimited = false;
        for rule in matches {
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
        let mut tiers = Self { rules, charged, blocked, is_unlimited, excess: None };
        if tiers.is_blocked() {
            tiers.charged.clear();
        }
        tiers
    }

    /// A denial without tiers, because a request meets too many rules or is too costly to match.
    #[cold]
    fn excessive(rules: Guard<Arc<RuleSet>>, matched: Matched) -> Self {
        let excess = match matched {
            Ok(matches) => Excess::Rules(u32::try_from(matches.len()).unwrap_or(u32::MAX)),
            Err(TooCostly) => Excess::Work,
        };
        let (charged, blocked) = (SmallVec::new(), SmallVec::new());
        Self { rules, charged, blocked, is_unlimited: false, excess: Some(excess) }
    }

    /// Returns whether the request is denied without asking any bucket: an enforced tier is blocked, or it exceeds a
    /// bound.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        let is_enforced = |(rule, _): &(u32, _)| self.rules.rule(*rule).mode() == Mode::Enforce;
        self.blocked.iter().any(is_enforced) || self.excess.is_some()
    }

    /// Charges of a request of this cost; probes where it is one.
    #[inline]
    pub(crate) fn charges(&self, cost: u64, is_probe: bool) -> impl Iterator<Item = Charge<'_, K>> {
        self.charged.iter().map(move |tier| {
            let rule = self.rules.rule(tier.rule);
            let quota = self.rules.quota(tier.rule, tier.overridden);
            Charge::new(&tier.key, quota, cost)
                .with_mode(rule.mode())
                .with_on_error(rule.on_error())
                .with_is_probe(is_probe)
        })
    }

    /// The verdict by the decisions of the charges, in their order.
    #[inline]
    pub(crate) fn verdict(
        self,
        decisions: impl IntoIterator<Item = Decision>,
        degraded: bool,
    ) -> Verdict {
        let asked = self.charged.iter().zip(decisions);
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
        Verdict::new(self.rules, tiers, degraded, self.is_unlimited, self.excess)
    }
}

/// Key of the bucket that the rule at this position has for a request. The request has every attribute of its key
/// pattern.
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
        .map(|attribute| rule.value(request, attribute).unwrap_or_default().as_bytes())
        .collect();
    store.key(Space::Rule(rule.rule_id()), &values)
}
