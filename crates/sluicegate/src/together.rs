//! Several requests and buckets in one charge, all or nothing.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;

use crate::limiter::Limiter;
use crate::request::Request;
use crate::rules::{Matched, Matches, OnError};
use crate::store::{Charge, Charged, LocalStore, Store};
use crate::tiers::{BLOCKED, Tiers};
use crate::verdict::Verdict;

/// Most asks that a front door should accept in one call: they are one atomic step of the store, which blocks other
/// charges. [`Limiter::check_together`] itself has no bound.
pub const ASKS_MAX: usize = 64;

/// One part of [`Limiter::check_together`].
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a, 'r> {
    /// The rules that apply to a request, charged with its cost.
    Request {
        /// The request to check.
        request: &'a Request<'r>,
        /// A probe can deny the whole, and is never charged.
        is_probe: bool,
    },
    /// A bucket without a rule, as of [`Limiter::take`].
    Take {
        /// Key of the bucket.
        key: &'a str,
        /// Namespace of the key; the same key in two namespaces has two buckets. `None` is that of [`Limiter::take`].
        namespace: Option<&'a str>,
        /// Quota of the bucket.
        quota: &'a Quota,
        /// Tokens to take; zero is a peek.
        cost: u64,
        /// Policy while the store is in trouble.
        on_error: OnError,
        /// A probe can deny the whole, and is never charged.
        is_probe: bool,
    },
    /// Denies the whole, without a bucket.
    Blocked,
}

/// Answer to one [`Ask`]. If any other ask was denied, nothing was charged, and the figures show that.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are verdicts, and a box allocates")]
pub enum Answer {
    /// Verdict of a request.
    Verdict(Verdict),
    /// Decision of a bucket without a rule, or of a block.
    Decision(Decision),
}

/// Answer of [`Limiter::check_together`].
#[derive(Debug)]
pub struct Together {
    answers: Vec<Answer>,
    degraded: bool,
}

/// An [`Ask`] with its buckets found.
enum PreparedAsk<'a, K> {
    Request { tiers: Tiers<K>, cost: u64, is_probe: bool },
    Take { key: K, quota: &'a Quota, cost: u64, on_error: OnError, is_probe: bool },
    Blocked,
}

type Charges<'a, K> = SmallVec<[Charge<'a, K>; 8]>;

impl<S: Store> Limiter<S> {
    /// Checks several requests and buckets without a rule as one: every bucket of all of them is charged, or none. All
    /// are judged by one set of rules; a rule that replaces others replaces them in every request.
    ///
    /// - A bucket that several of them share is charged with the sum of their costs, and each answer shows that.
    /// - A probe can deny, and is never charged. It is judged by the state of its buckets before the charge, and by its
    ///   own cost alone; a cost of zero is granted.
    /// - A request that is [blocked](crate::Override::Blocked) by an enforced rule denies the whole, as
    ///   [`Ask::Blocked`] does. The others are then answered as probes.
    ///
    /// ```
    /// use sluicegate::{Ask, Limiter, MemoryStore, OnError, Quota, Request, Rule, RuleSet};
    ///
    /// let rule = Rule::new(1, "user:{user_id}", Quota::per_minute(5)?)?;
    /// let limiter = Limiter::new(MemoryStore::new(), RuleSet::new(vec![rule])?);
    /// let (sender, receiver) = (Request::new().user_id("42"), Request::new().user_id("7"));
    /// let everybody = Quota::per_second(100)?;
    /// let asks = [
    ///     Ask::Request { request: &sender, is_probe: false },
    ///     // A receiver that is flooded is sent nothing more, but does not pay for messages of others.
    ///     Ask::Request { request: &receiver, is_probe: true },
    ///     Ask::Take {
    ///         key: "mail",
    ///         namespace: None,
    ///         quota: &everybody,
    ///         cost: 3,
    ///         on_error: OnError::Local,
    ///         is_probe: false,
    ///     },
    /// ];
    /// let together = limiter.check_together_now(&asks);
    /// assert!(together.is_allowed());
    /// assert_eq!(limiter.peek_now("mail", &everybody).remaining, 97);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Store trouble only; a store in memory has none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is done has charged everything or nothing.
    pub async fn check_together(&self, asks: &[Ask<'_, '_>]) -> Result<Together, S::Error> {
        let prepared = self.prepared(asks);
        let charged = self.store().charge(&charges(&prepared)).await?;
        Ok(Together::new(prepared, charged))
    }

    /// [`refund_all`](Self::refund_all) of requests that were charged [together](Self::check_together) with each other
    /// and with those `beside` them: a bucket whose rule was replaced by a rule of any of them was not charged, and gets
    /// nothing. The answers are in the order of the refunds.
    ///
    /// # Cancel safety
    ///
    /// As [`refund_all`](Self::refund_all).
    pub async fn refund_together(
        &self,
        refunds: &[(&Request<'_>, u64)],
        beside: &[&Request<'_>],
    ) -> Vec<Result<Verdict, S::Error>> {
        let rules = self.rules();
        let of_refunds = refunds.iter().map(|(request, _)| rules.matches(request));
        let mut matched: Vec<Matched> = of_refunds.collect();
        matched.extend(beside.iter().map(|request| rules.matches(request)));
        rules.drop_replaced(&mut matched);
        let mut verdicts = Vec::with_capacity(refunds.len());
        for (&(request, amount), matches) in refunds.iter().zip(matched) {
            let rules = Guard::from_inner(Arc::clone(&rules));
            let tiers = Tiers::of(&**self.store(), rules, request, matches);
            verdicts.push(self.give_back(tiers, amount).await);
        }
        verdicts
    }

    /// Finds the tiers of all asks under the rules in force now.
    fn prepared<'a>(&self, asks: &[Ask<'a, '_>]) -> Vec<PreparedAsk<'a, S::Key>> {
        // A single verdict borrows the rules. Several count references, so that all have the same set.
        if let [Ask::Request { request, is_probe }] = *asks {
            let tiers = self.tiers(request);
            return vec![PreparedAsk::Request { tiers, cost: request.get_cost(), is_probe }];
        }
        let rules = self.rules_now();
        let matches = |ask: &Ask<'_, '_>| match ask {
            Ask::Request { request, .. } => rules.matches(request),
            Ask::Take { .. } | Ask::Blocked => Ok(Matches::new()),
        };
        let mut matched: Vec<Matched> = asks.iter().map(matches).collect();
        rules.drop_replaced(&mut matched);
        asks.iter()
            .zip(matched)
            .map(|(ask, matches)| match *ask {
                Ask::Request { request, is_probe } => {
                    let rules = Guard::from_inner(Arc::clone(&rules));
                    let tiers = Tiers::of(&**self.store(), rules, request, matches);
                    PreparedAsk::Request { tiers, cost: request.get_cost(), is_probe }
                }
                Ask::Take { key, namespace, quota, cost, on_error, is_probe } => {
                    let key = self.store().take_key(key.as_bytes(), namespace);
                    PreparedAsk::Take { key, quota, cost, on_error, is_probe }
                }
                Ask::Blocked => PreparedAsk::Blocked,
            })
            .collect()
    }
}

impl<S: LocalStore> Limiter<S> {
    /// [`check_together`](Self::check_together), at once and without a runtime.
    #[must_use]
    pub fn check_together_now(&self, asks: &[Ask<'_, '_>]) -> Together {
        let prepared = self.prepared(asks);
        let decisions = self.store().charge_now(&charges(&prepared));
        Together::new(prepared, Charged { decisions, degraded: false })
    }
}

/// Charges of all asks. If one is blocked, the others become probes.
fn charges<'a, K>(prepared: &'a [PreparedAsk<'_, K>]) -> Charges<'a, K> {
    let is_blocked = prepared.iter().any(PreparedAsk::is_blocked);
    let mut charges = Charges::new();
    for one in prepared {
        match one {
            PreparedAsk::Request { tiers, cost, is_probe } => {
                charges.extend(tiers.charges(*cost, *is_probe || is_blocked));
            }
            PreparedAsk::Take { key, quota, cost, on_error, is_probe } => charges.push(
                Charge::new(key, quota, *cost)
                    .with_on_error(*on_error)
                    .with_is_probe(*is_probe || is_blocked),
            ),
            PreparedAsk::Blocked => {}
        }
    }
    charges
}

// ===== impl PreparedAsk, Answer, Together =====

impl<K> PreparedAsk<'_, K> {
    fn is_blocked(&self) -> bool {
        match self {
            Self::Request { tiers, .. } => tiers.is_blocked(),
            Self::Take { .. } => false,
            Self::Blocked => true,
        }
    }

    /// Number of charges of this ask.
    fn len(&self) -> usize {
        match self {
            Self::Request { tiers, .. } => tiers.charged.len(),
            Self::Take { .. } => 1,
            Self::Blocked => 0,
        }
    }

    /// The answer by the decisions of its own charges.
    fn answer(self, decisions: &[Decision], degraded: bool) -> Answer {
        match self {
            Self::Request { tiers, .. } => {
                Answer::Verdict(tiers.verdict(decisions.iter().copied(), degraded))
            }
            Self::Take { .. } => Answer::Decision(decisions[0]),
            Self::Blocked => Answer::Decision(BLOCKED),
        }
    }
}

impl Answer {
    /// Returns whether this ask was granted by itself.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Verdict(verdict) => verdict.is_allowed(),
            Self::Decision(decision) => decision.is_granted(),
        }
    }

    /// Wait before the same ask is granted: zero when it was granted, `None` for never.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Verdict(verdict) => verdict.retry_after(),
            Self::Decision(decision) => decision.retry_after(),
        }
    }

    /// Delay before the work may start: see [`Verdict::delay`].
    #[must_use]
    pub fn delay(&self) -> Duration {
        match self {
            Self::Verdict(verdict) => verdict.delay(),
            Self::Decision(decision) => decision.delay(),
        }
    }
}

impl Together {
    fn new<K>(prepared: Vec<PreparedAsk<'_, K>>, Charged { decisions, degraded }: Charged) -> Self {
        let mut rest = decisions.as_slice();
        let mut answers = Vec::with_capacity(prepared.len());
        for one in prepared {
            let (own, others) = rest.split_at(one.len());
            answers.push(one.answer(own, degraded));
            rest = others;
        }
        Self { answers, degraded }
    }

    /// Returns whether everything was granted, and so charged.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.answers.iter().all(Answer::is_allowed)
    }

    /// Returns whether the store was in trouble, so that some decisions were made by [`OnError`].
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// The answers, in the order of the asks.
    #[must_use]
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Longest wait of all asks before the same call is granted: zero when allowed, `None` for never.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.answers
            .iter()
            .map(Answer::retry_after)
            .try_fold(Duration::ZERO, |longest, wait| wait.map(|wait| wait.max(longest)))
    }

    /// Longest delay of all asks before the work may start; zero if the call was denied.
    #[must_use]
    pub fn delay(&self) -> Duration {
        if !self.is_allowed() {
            return Duration::ZERO;
        }
        self.answers.iter().map(Answer::delay).max().unwrap_or_default()
    }
}
