//! Reservations: charges that can be corrected once.

use sluicegate_core::Quota;
use smallvec::SmallVec;

use crate::limiter::Limiter;
use crate::rules::{Mode, Override};
use crate::store::{Charge, Charged, LocalStore, Store};
use crate::verdict::Verdict;

/// Most retries of a settlement whose buckets other charges empty meanwhile.
const ROUNDS_MAX: usize = 4;

/// A charge that can still be given back, in part when the work cost less or whole when it was not done, and
/// [settled](Self::settle) when it cost more. If its [verdict](Self::verdict) is a denial, nothing was charged and
/// nothing is corrected.
///
/// A [degraded](Verdict::is_degraded) verdict is not corrected either: the store was in trouble, and its charges are
/// unknown.
///
/// Giving back consumes the handle, so giving back twice does not compile. Dropping the handle keeps the charge.
///
/// ```
/// # use sluicegate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet};
/// # let rules = RuleSet::new(vec![Rule::new(1, "user:{user_id}", Quota::per_minute(100)?)?])?;
/// # let limiter = Limiter::new(MemoryStore::new(), rules);
/// let request = Request::new().user_id("42").cost(80); // the most it can cost
/// let reservation = limiter.reserve_now(&request);
/// assert!(reservation.verdict().is_allowed());
/// reservation.commit_now(5); // what it did cost: 75 go back
/// assert!(limiter.check_now(&request).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0382
/// # use sluicegate::{Limiter, MemoryStore, Request, RuleSet};
/// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
/// let reservation = limiter.reserve_now(&Request::new());
/// reservation.refund_now();
/// reservation.refund_now(); // error: use of moved value
/// ```
#[must_use = "dropping a reservation keeps its charge"]
#[derive(Debug)]
pub struct Reservation<S: Store> {
    limiter: Limiter<S>,
    verdict: Verdict,
    paid: SmallVec<[Paid<S::Key>; 4]>,
    cost: u64,
}

/// A bucket that was charged.
#[derive(Debug)]
pub(crate) struct Paid<K> {
    pub(crate) rule_id: u64,
    /// UTF-8 text, inline where it is short.
    pub(crate) subject: SmallVec<[u8; 32]>,
    pub(crate) key: K,
    pub(crate) quota: Quota,
}

impl<S: Store> Reservation<S> {
    pub(crate) fn new(
        limiter: Limiter<S>,
        verdict: Verdict,
        paid: SmallVec<[Paid<S::Key>; 4]>,
        cost: u64,
    ) -> Self {
        // In a denied charge the tiers that would have granted it were not charged either.
        let cost = if verdict.is_allowed() { cost } else { 0 };
        Self { limiter, verdict, paid, cost }
    }

    /// The verdict of the charge.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Keeps the charge as it is.
    #[must_use]
    pub fn keep(self) -> Verdict {
        self.verdict
    }

    /// Keeps `cost` tokens of the charge and gives the rest back to every bucket; keeps all if `cost` is not less.
    ///
    /// # Errors
    ///
    /// The first store trouble. Buckets without trouble have received their tokens; in the others the charge stays.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future part way credits some buckets and not others; never twice.
    pub async fn commit(mut self, cost: u64) -> Result<(), S::Error> {
        self.give_back(self.cost.saturating_sub(cost)).await
    }

    /// Corrects the charge to the actual cost of the work, in every bucket that was charged: gives the excess back, or
    /// takes the shortfall. A bucket that has less left is emptied and the rest is forgiven: no bucket goes into debt.
    /// The verdict shows the tokens left afterwards.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future part way corrects some buckets and not others; never twice.
    pub async fn settle(mut self, cost: u64) -> Result<Verdict, S::Error> {
        self.give_back(self.cost.saturating_sub(cost)).await?;
        let mut more = self.more(cost);
        for _ in 0..ROUNDS_MAX {
            let charges = more.charges(&self.paid);
            if charges.is_empty() {
                break;
            }
            let charged = self.limiter.store().charge(&charges).await?;
            drop(charges);
            more.note(charged, &self.paid, &mut self.verdict);
        }
        Ok(self.verdict)
    }

    /// Gives everything back.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub async fn refund(self) -> Result<(), S::Error> {
        self.commit(0).await
    }

    async fn give_back(&mut self, amount: u64) -> Result<(), S::Error> {
        let mut result = Ok(());
        if amount > 0 {
            for bucket in &self.paid {
                let quota = bucket.quota(&self.limiter);
                match self.limiter.store().refund(&bucket.key, &quota, amount).await {
                    Ok(decision) => self.verdict.set_left(bucket.rule_id, &decision),
                    Err(trouble) => result = result.and(Err(trouble)),
                }
            }
        }
        result
    }

    /// Tokens still to be taken for this cost.
    fn more(&self, cost: u64) -> More {
        let more = if self.verdict.is_allowed() { cost.saturating_sub(self.cost) } else { 0 };
        let part = |bucket: &Paid<S::Key>| (more, bucket.quota(&self.limiter));
        More { parts: self.paid.iter().map(part).collect() }
    }
}

impl<K> Paid<K> {
    /// The quota that the bucket is counted by now. Correcting under the quota of the charge would drop tokens spent
    /// since beyond that one's capacity.
    fn quota<S: Store>(&self, limiter: &Limiter<S>) -> Quota {
        let rules = limiter.rules();
        let Some(rule) = rules.get(self.rule_id) else { return self.quota };
        let subject = std::str::from_utf8(&self.subject).unwrap_or_default();
        match rules.overrides().get(self.rule_id, subject) {
            None => *rule.quota(),
            Some(Override::Quota(quota)) => *quota,
            // No rule counts it now: the quota of this charge is the last known one.
            Some(Override::Unlimited | Override::Blocked) => self.quota,
        }
    }
}

/// Tokens still to be taken from each bucket that was charged, in their order, and its quota.
struct More {
    parts: SmallVec<[(u64, Quota); 4]>,
}

impl More {
    /// The next charge. Buckets in `Shadow` mode are charged each for itself, in one step.
    fn charges<'a, K>(&'a self, paid: &'a [Paid<K>]) -> SmallVec<[Charge<'a, K>; 4]> {
        let parts = paid.iter().zip(&self.parts).filter(|(_, (cost, _))| *cost > 0);
        let charge = |(bucket, (cost, quota)): (&'a Paid<K>, &'a (u64, Quota))| {
            Charge::new(&bucket.key, quota, *cost).with_mode(Mode::Shadow)
        };
        parts.map(charge).collect()
    }

    /// Records the result of the last charge: a part that was not granted is retried with the tokens left.
    fn note<K>(&mut self, charged: Charged, paid: &[Paid<K>], verdict: &mut Verdict) {
        let parts = paid.iter().zip(&mut self.parts).filter(|(_, (cost, _))| *cost > 0);
        for ((bucket, (cost, _)), decision) in parts.zip(charged.decisions) {
            let is_done = decision.is_granted() || charged.degraded;
            *cost = if is_done { 0 } else { decision.remaining };
            if !charged.degraded {
                verdict.set_left(bucket.rule_id, &decision);
            }
        }
    }
}

impl<S: LocalStore> Reservation<S> {
    /// [`commit`](Self::commit), at once and without a runtime.
    pub fn commit_now(mut self, cost: u64) {
        self.give_back_now(self.cost.saturating_sub(cost));
    }

    /// [`settle`](Self::settle), at once and without a runtime.
    pub fn settle_now(mut self, cost: u64) -> Verdict {
        self.give_back_now(self.cost.saturating_sub(cost));
        let mut more = self.more(cost);
        for _ in 0..ROUNDS_MAX {
            let charges = more.charges(&self.paid);
            if charges.is_empty() {
                break;
            }
            let decisions = self.limiter.store().charge_now(&charges);
            drop(charges);
            more.note(Charged { decisions, degraded: false }, &self.paid, &mut self.verdict);
        }
        self.verdict
    }

    /// [`refund`](Self::refund), at once and without a runtime.
    pub fn refund_now(self) {
        self.commit_now(0);
    }

    fn give_back_now(&mut self, amount: u64) {
        if amount > 0 {
            for bucket in &self.paid {
                let quota = bucket.quota(&self.limiter);
                let decision = self.limiter.store().refund_now(&bucket.key, &quota, amount);
                self.verdict.set_left(bucket.rule_id, &decision);
            }
        }
    }
}
