//! Levels of shared buckets: those of rules without placeholders.

use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{AnyStore, Limiter, Mode, Request, Rule};
use tokio::time::timeout;

use super::RuleName;

/// Maximum number of buckets read per tick: the first by rule id.
const SHARED_MAX: usize = 20;

/// Timeout for reading a bucket. The store's own timeout is shorter; this one covers everything
/// else.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);

/// A bucket shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct SharedTier {
    pub(crate) rule: RuleName,
    /// Refill rate in tokens per second, rounded.
    pub(crate) rate_per_second: f64,
    /// Capacity and remaining tokens; `None` if the store did not answer.
    pub(crate) figures: Option<(u64, u64)>,
}

/// Reads the shared buckets without charging them.
pub(super) async fn read(limiter: &Limiter<AnyStore>) -> Vec<SharedTier> {
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

/// Capacity and remaining tokens of a bucket, from the store itself: the local fallback does not
/// know them.
async fn figures(limiter: &Limiter<AnyStore>, rule_id: u64) -> Option<(u64, u64)> {
    let bucket = limiter.bucket(rule_id, &Request::new())?;
    let looked = timeout(LOOK_TIMEOUT, bucket.look()).await.ok()?.ok()?;
    let decision = looked.decisions.first().filter(|_| !looked.degraded)?;
    Some((decision.limit, decision.remaining))
}
