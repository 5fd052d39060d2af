//! The buckets that everybody shares: those of rules without placeholders.

use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{AnyStore, Limiter, Mode, Request, Rule};
use tokio::time::timeout;

use super::RuleName;

/// The most buckets that are looked into for a tick: the first by their rules' ids.
const SHARED_MAX: usize = 20;

/// How long the store may take to answer. Its own budget is shorter; this is for all that it cannot bound.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);

/// A bucket that everybody shares.
#[derive(Clone, Debug)]
pub(crate) struct SharedTier {
    pub(crate) rule: RuleName,
    /// How fast it fills, for people.
    pub(crate) rate_per_second: f64,
    /// The most that it holds, and what is left; none if the store did not answer.
    pub(crate) figures: Option<(u64, u64)>,
}

/// Looks into the buckets that everybody shares, spending nothing.
pub(super) async fn look(limiter: &Limiter<AnyStore>) -> Vec<SharedTier> {
    let rules = limiter.rules();
    let shared = rules.rules().iter().filter(|rule| is_shared(rule)).take(SHARED_MAX);
    let looking = shared.map(async |rule| SharedTier {
        rule: rule.into(),
        rate_per_second: rule.quota().rate().per_second(),
        figures: figures(limiter, rule.rule_id()).await,
    });
    join_all(looking).await
}

fn is_shared(rule: &Rule) -> bool {
    let is_for_all = rule.key_pattern().attributes().is_empty();
    is_for_all && rule.is_active() && rule.mode() != Mode::Unlimited
}

/// What a bucket holds at most, and what is left in it, as the store has it: a stand-in knows nothing of it.
async fn figures(limiter: &Limiter<AnyStore>, rule_id: u64) -> Option<(u64, u64)> {
    let bucket = limiter.bucket(rule_id, &Request::new())?;
    let looked = timeout(LOOK_TIMEOUT, bucket.look()).await.ok()?.ok()?;
    let decision = looked.decisions.first().filter(|_| !looked.degraded)?;
    Some((decision.limit, decision.remaining))
}
