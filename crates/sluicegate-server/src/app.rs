//! The application: the limiter, and the observers of its answers. All doors ask it.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::client_ip::ClientIp;
use sluicegate::headers::Headers;
use sluicegate::{
    Answer, AnyStore, Ask, Charge, Charged, Decision, InProcessLimiter, Limiter, LocalStore,
    MemoryStore, OnError, Quota, Request, Store, Together, Trouble, Verdict,
};
use thiserror::Error;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::auth::admission::Admission;
use crate::auth::callers::Caller;
use crate::auth::guard::Guard;
use crate::body_budget::BodyBudget;
use crate::config::{Authorize, Config};
use crate::log_limit::LogLimit;
use crate::observe::audit::Audit;
use crate::observe::history::History;
use crate::observe::live::Live;
use crate::observe::metrics::refunds::RefundDoor;
use crate::observe::metrics::{Metrics, Taken};
use crate::observe::overflow::OverflowWatch;
use crate::observe::ready::Readiness;
use crate::observe::recent::Recent;
use crate::observe::stats::Stats;
use crate::rules::snapshot::Keeper;

/// Policy for buckets without a rule while the store is in trouble.
pub(crate) const TAKE_ON_ERROR: OnError = OnError::Local;

/// Log lines about requests that meet too many rules.
static TOO_MANY_RULES: LogLimit = LogLimit::new();

/// Log lines about requests that take too much work to match.
static TOO_COSTLY: LogLimit = LogLimit::new();

/// State that all doors and the administration share.
#[derive(Debug)]
pub(crate) struct App {
    /// Limiter with the rules in force.
    pub limiter: Limiter<AnyStore>,
    /// Counters and gauges.
    pub metrics: Metrics,
    /// State of the readiness checks.
    pub ready: Readiness,
    /// Notices charges that find no room in the store.
    pub overflow: OverflowWatch,
    /// Authenticates administrators and refuses requests of foreign sites.
    pub guard: Arc<Guard>,
    /// Decides which requests of the data doors are answered, and for which caller.
    pub admission: Arc<Admission>,
    /// Bounds of requests.
    pub limits: RequestLimits,
    /// Memory for unfinished bodies.
    pub bodies: Arc<BodyBudget>,
    /// Finds the client's address behind trusted proxies.
    pub client_ip: ClientIp,
    /// True if the settings name networks of proxies.
    pub has_trusted_proxies: bool,
    /// Rate limit fields that answers carry.
    pub headers: Headers,
    /// True if calls of Envoy's protocol may refund tokens.
    pub has_refunds: bool,
    /// Headers that `/v1/authorize` reads besides those of proxies.
    pub authorize: Authorize,
    /// Keeps the rules in force up to date.
    pub keeper: Keeper,
    /// Records violations.
    pub audit: Audit,
    /// Records acts of the administration.
    pub history: History,
    /// The most recent requests, for previews.
    pub recent: Recent,
    /// Decisions of the last minutes, by rule.
    pub stats: Stats,
    /// Live traffic, for open pages.
    pub live: Live,
}

/// Bounds on what a client may send.
#[derive(Clone, Debug)]
pub(crate) struct RequestLimits {
    /// Most bytes in the body of one request; a batch may have sixteen times as many.
    pub body_bytes_max: usize,
    /// Timeout for a body to arrive.
    pub body_timeout: Duration,
    /// Most members of a batch.
    pub batch_max: usize,
    /// Most attributes of a request.
    pub attributes_max: usize,
    /// Most bytes in a key or the value of an attribute.
    pub value_bytes_max: usize,
    /// Longest time to full of a bucket without a rule: it takes room for that long.
    pub take_full_max: Duration,
}

/// Reason for refusing the quota of a bucket without a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("would take {} s to fill, more than the {} s that store.take_full_max allows",
    seconds_up(*.time_to_full), .take_full_max.as_secs())]
pub(crate) struct FillsTooSlowly {
    time_to_full: Duration,
    take_full_max: Duration,
}

/// Whole seconds, rounded up.
fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl RequestLimits {
    /// Those of the settings.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            body_bytes_max: config.limits.body_bytes_max,
            body_timeout: config.limits.body_timeout,
            batch_max: config.limits.batch_max,
            attributes_max: config.limits.attributes_max,
            value_bytes_max: config.limits.value_bytes_max,
            take_full_max: config.store.take_full_max,
        }
    }

    /// Checks the quota of a bucket without a rule.
    ///
    /// # Errors
    ///
    /// A time to full above the maximum.
    pub(crate) fn check_take(&self, quota: &Quota) -> Result<(), FillsTooSlowly> {
        let (time_to_full, take_full_max) = (quota.time_to_full(), self.take_full_max);
        if time_to_full > take_full_max {
            return Err(FillsTooSlowly { time_to_full, take_full_max });
        }
        Ok(())
    }
}

impl App {
    /// Checks a request, and hands the verdict to the observers.
    ///
    /// # Errors
    ///
    /// Store trouble that no policy could answer for.
    pub(crate) async fn check(&self, request: &Request<'_>) -> Result<Verdict, Trouble> {
        let started = self.metrics.start();
        let verdict = self.limiter.check(request).await?;
        self.observe(started, request, &verdict);
        Ok(verdict)
    }

    /// A view that decides without waiting; `None` if the store is not in this process.
    pub(crate) fn in_process(&self) -> Option<InProcessApp<'_>> {
        let store = self.limiter.store().memory()?;
        let limiter = self.limiter.in_process()?;
        let started = self.metrics.start();
        Some(InProcessApp { app: self, store, limiter, started, taken: Taken::default() })
    }

    /// Hands a verdict to all observers.
    fn observe(&self, started: Instant, request: &Request<'_>, verdict: &Verdict) {
        // A peek is not a decision.
        if request.get_cost() > 0 {
            self.metrics.decided(started, verdict);
        }
        self.recent.note(request, verdict.is_allowed());
        self.audit.note(request, verdict);
        self.live.note(request, verdict);
        self.note_too_many_rules(verdict);
    }

    /// Counts and logs a verdict that denied because the request meets too many rules, or is too costly to match.
    #[inline]
    fn note_too_many_rules(&self, verdict: &Verdict) {
        if verdict.is_too_costly() {
            return self.note_too_costly(verdict);
        }
        let Some(rules) = verdict.too_many_rules() else { return };
        self.metrics.met_too_many_rules();
        if let Some(suppressed) = TOO_MANY_RULES.admit() {
            let (tiers_max, version) = (verdict.tiers_max(), verdict.version());
            warn!(
                rules,
                tiers_max,
                version,
                suppressed,
                "request denied: it meets more rules than limits.tiers_max; `sluicegate explain` lists them"
            );
        }
    }

    #[cold]
    fn note_too_costly(&self, verdict: &Verdict) {
        self.metrics.met_too_many_rules();
        if let Some(suppressed) = TOO_COSTLY.admit() {
            let version = verdict.version();
            warn!(
                version,
                suppressed,
                "request denied: comparing it with the globs of the rules takes too much work; use fewer globs with several `*`"
            );
        }
    }

    /// Takes tokens from the bucket of a key without a rule, in the namespace of the caller if it has one. Returns true
    /// beside the decision if it was made without the store.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub(crate) async fn take(
        &self,
        key: &[u8],
        namespace: Option<&str>,
        quota: &Quota,
        cost: u64,
    ) -> Result<(Decision, bool), Trouble> {
        let timer = self.metrics.start();
        let store = self.limiter.store();
        let key = store.take_key(key, namespace);
        let charged = store.charge(&[take_charge(&key, quota, cost)]).await?;
        let Charged { decisions, degraded } = charged;
        // A peek is not a decision.
        if cost > 0 {
            self.metrics.took(timer, &decisions[0], degraded.then_some(TAKE_ON_ERROR));
        }
        Ok((decisions[0], degraded))
    }

    /// Gives tokens back to every bucket that the rules give a request, each capped at full, in one step. The observers
    /// are not told: a refund is not a decision.
    ///
    /// # Errors
    ///
    /// Store trouble. No policy answers for a refund.
    pub(crate) async fn refund(
        &self,
        request: &Request<'_>,
        amount: u64,
    ) -> Result<Verdict, Trouble> {
        let verdict = self.limiter.refund_all(request, amount).await?;
        self.note_too_many_rules(&verdict);
        Ok(verdict)
    }

    /// Gives tokens back to the bucket of a key without a rule, capped at full, as [`refund`](Self::refund).
    ///
    /// # Errors
    ///
    /// As [`refund`](Self::refund).
    pub(crate) async fn refund_key(
        &self,
        key: &[u8],
        namespace: Option<&str>,
        quota: &Quota,
        amount: u64,
    ) -> Result<Decision, Trouble> {
        let store = self.limiter.store();
        store.refund(&store.take_key(key, namespace), quota, amount).await
    }

    /// Counts, records and logs a refund that a caller, or a request without one, has made over a data door.
    pub(crate) fn note_refund(&self, door: RefundDoor, caller: Option<&Caller>, tokens: u64) {
        self.metrics.refunds.refunded(door);
        let caller = caller.map(|caller| &*caller.name);
        self.history.refunded(caller, tokens);
        debug!(?door, caller, tokens, "tokens refunded");
    }

    /// Decides several asks as one charge, and hands every verdict to the observers. Probes are not remembered as
    /// recent requests: replayed, they would be charged.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub(crate) async fn check_together(&self, asks: &[Ask<'_, '_>]) -> Result<Together, Trouble> {
        let timer = self.metrics.start();
        let together = self.limiter.check_together(asks).await?;
        self.metrics.decided_together(timer, asks, &together);
        for (ask, answer) in asks.iter().zip(together.answers()) {
            if let (Ask::Request { request, is_probe }, Answer::Verdict(verdict)) = (ask, answer) {
                if !is_probe {
                    // A request that another ask denied was not charged and did not go ahead.
                    self.recent.note(request, together.is_allowed());
                }
                self.audit.note(request, verdict);
                self.live.note(request, verdict);
                self.note_too_many_rules(verdict);
            }
        }
        Ok(together)
    }
}

/// View of an [`App`] whose store is in this process, from [`App::in_process`]: decides without waiting. What is taken
/// without a rule is counted when the view is dropped, once for all of a pipeline.
#[derive(Debug)]
pub(crate) struct InProcessApp<'a> {
    app: &'a App,
    store: &'a MemoryStore,
    limiter: InProcessLimiter<'a, AnyStore>,
    started: Instant,
    taken: Taken,
}

impl InProcessApp<'_> {
    /// As [`App::take`].
    #[inline]
    pub(crate) fn take(
        &mut self,
        key: &[u8],
        namespace: Option<&str>,
        quota: &Quota,
        cost: u64,
    ) -> Decision {
        let key = self.store.take_key(key, namespace);
        let decision = self.store.charge_one_now(take_charge(&key, quota, cost));
        // A peek is not a decision.
        if cost > 0 {
            self.taken.note(&decision);
        }
        decision
    }

    /// As [`App::refund_key`].
    pub(crate) fn refund_key(
        &self,
        key: &[u8],
        namespace: Option<&str>,
        quota: &Quota,
        amount: u64,
    ) -> Decision {
        self.store.refund_now(&self.store.take_key(key, namespace), quota, amount)
    }

    /// As [`App::check`].
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<Verdict, Trouble> {
        let started = self.app.metrics.start();
        let verdict = self.limiter.check(request)?;
        self.app.observe(started, request, &verdict);
        Ok(verdict)
    }
}

impl Drop for InProcessApp<'_> {
    fn drop(&mut self) {
        self.app.metrics.took_many(self.started, &self.taken);
    }
}

/// Charge of a bucket without a rule.
#[inline]
fn take_charge<'a, K>(key: &'a K, quota: &'a Quota, cost: u64) -> Charge<'a, K> {
    Charge::new(key, quota, cost).with_on_error(TAKE_ON_ERROR)
}

/// Message to clients about store trouble: the kind only. The server's own words are logged, for the operator.
pub(crate) fn store_trouble_message(trouble: &Trouble) -> String {
    format!("the store is in trouble ({}): try again", trouble.kind())
}
