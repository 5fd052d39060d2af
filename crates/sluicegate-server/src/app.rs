//! What all front doors share: the limiter, and what takes note of its answers.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::client_ip::ClientIp;
use sluicegate::headers::Headers;
use sluicegate::{
    Answer, AnyStore, Ask, Charge, Charged, Decision, Limiter, LocalStore, MemoryStore, OnError,
    Quota, Request, Space, Store, Together, Trouble, Verdict,
};

use crate::auth::guard::Guard;
use crate::config::Authorize;
use crate::observe::audit::Audit;
use crate::observe::live::Live;
use crate::observe::metrics::Metrics;
use crate::observe::ready::Readiness;
use crate::observe::recent::Recent;
use crate::observe::stats::Stats;
use crate::rules::snapshot::Keeper;

/// What answers for buckets without a rule while the store is in trouble.
pub(crate) const TAKE_ON_ERROR: OnError = OnError::Local;

/// Everything that a front door needs. It asks here, and answers in its own words.
#[derive(Debug)]
pub struct App {
    /// What decides.
    pub limiter: Limiter<AnyStore>,
    /// What counts.
    pub metrics: Metrics,
    /// Whether requests may be sent here.
    pub ready: Readiness,
    /// Who may ask.
    pub guard: Arc<Guard>,
    /// How much may be asked at once.
    pub limits: RequestLimits,
    /// Whom requests are from.
    pub client_ip: ClientIp,
    /// What answers tell about the limits.
    pub headers: Headers,
    /// Whether calls over gRPC may give tokens back.
    pub has_grpc_refunds: bool,
    /// What `/v1/authorize` reads beside the headers of proxies.
    pub authorize: Authorize,
    /// What keeps the rules in force up to date.
    pub keeper: Keeper,
    /// What records violations.
    pub audit: Audit,
    /// The last requests.
    pub recent: Recent,
    /// What the rules decided in the last minutes.
    pub stats: Stats,
    /// What happens now, for whoever watches.
    pub live: Live,
}

/// Bounds on what a client may send.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    /// Bytes in the body of one request; a batch may have sixteen times as many.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Members of a batch.
    pub batch_max: usize,
    /// Attributes of a request.
    pub attributes_max: usize,
    /// Bytes in a key or the value of an attribute.
    pub value_bytes_max: usize,
}

impl App {
    /// Checks a request, and takes note of the verdict.
    ///
    /// # Errors
    ///
    /// Store trouble that no policy could answer for.
    pub async fn check(&self, request: &Request<'_>) -> Result<Verdict, Trouble> {
        let timer = self.metrics.start();
        let verdict = self.limiter.check(request).await?;
        // To look is not to ask.
        if request.get_cost() > 0 {
            self.metrics.decided(timer, &verdict);
        }
        self.recent.note(request, verdict.is_allowed());
        self.audit.note(request, &verdict);
        self.live.note(request, &verdict);
        Ok(verdict)
    }

    /// Takes tokens from the bucket of a key, and says whether it was made without the store.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub async fn take(
        &self,
        key: &str,
        quota: &Quota,
        cost: u64,
    ) -> Result<(Decision, bool), Trouble> {
        self.take_bytes(key.as_bytes(), quota, cost).await
    }

    /// [`take`](Self::take)s, where a key need not be text.
    pub(crate) async fn take_bytes(
        &self,
        key: &[u8],
        quota: &Quota,
        cost: u64,
    ) -> Result<(Decision, bool), Trouble> {
        let timer = self.metrics.start();
        let store = self.limiter.store();
        let key = store.key(Space::Take, &[key]);
        let charged = store.charge(&[take_charge(&key, quota, cost)]).await?;
        let Charged { decisions, degraded } = charged;
        // To look is not to take.
        if cost > 0 {
            self.metrics.took(timer, &decisions[0], degraded.then_some(TAKE_ON_ERROR));
        }
        Ok((decisions[0], degraded))
    }

    /// Asks for several things at once, and takes note of every verdict. What only looked is not remembered: tried
    /// again it would be charged.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub async fn check_together(&self, asks: &[Ask<'_, '_>]) -> Result<Together, Trouble> {
        let timer = self.metrics.start();
        let together = self.limiter.check_together(asks).await?;
        self.metrics.decided_together(timer, asks, &together);
        for (ask, answer) in asks.iter().zip(together.answers()) {
            if let (Ask::Request { request, is_probe }, Answer::Verdict(verdict)) = (ask, answer) {
                if !is_probe {
                    // One that another denied was not charged, and did not go ahead.
                    self.recent.note(request, together.is_allowed());
                }
                self.audit.note(request, verdict);
                self.live.note(request, verdict);
            }
        }
        Ok(together)
    }
}

/// [`App::take_bytes`] at once, where the store is in this process. Whoever asks takes note of the decision.
#[inline]
pub(crate) fn take_now(store: &MemoryStore, key: &[u8], quota: &Quota, cost: u64) -> Decision {
    let key = store.key(Space::Take, &[key]);
    store.charge_one_now(take_charge(&key, quota, cost))
}

/// What a bucket without a rule is charged.
#[inline]
fn take_charge<'a, K>(key: &'a K, quota: &'a Quota, cost: u64) -> Charge<'a, K> {
    Charge::new(key, quota, cost).with_on_error(TAKE_ON_ERROR)
}

/// What clients are told of store trouble: the kind only. What the server said is for the operator, and in the log.
pub(crate) fn told(trouble: &Trouble) -> String {
    format!("the store is in trouble ({}): try again", trouble.kind())
}
