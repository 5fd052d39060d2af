//! Random calls of several requests at once, on a limiter and on the naive model.
//!
//! The domain is small, so that requests share buckets: a few users at a few addresses under six rules, some
//! of them with an override, one that replaces another, and a few buckets without a rule. The matching of
//! rules is implemented here a second time.

use std::collections::HashMap;
use std::time::Duration;

use sluicegate::{
    Answer, Ask, Decision, Limiter, ManualClock, Micros, Mode, OnError, Outcome, Override,
    Overrides, Quota, Request, Rule, RuleSet, Store, Together,
};
use sluicegate_tests::seed::Seed;

use crate::store::naive::{Naive, Part};

/// About the year 2100. Keys of Redis expire by the server's clock, which must not come near.
pub(crate) const START: Micros = Micros::new(4_100_000_000_000_000);

const USERS: [&str; 4] = ["rich", "free", "hidden", "usual"];
const ADDRESSES: [&str; 6] = ["blocked", "1", "2", "3", "4", "5"];
const KEYS: [&str; 3] = ["a", "b", "c"];
const ASKS_MAX: u64 = 5;

const BLOCKED: Decision =
    Decision { outcome: Outcome::Never, limit: 0, remaining: 0, reset_after: 0 };

/// Rules 1 to 6.
const PATTERNS: [&str; 6] = [
    "user:{user_id}",
    "ip:{ip}",
    "global",
    "trial:{user_id}",
    "api:{endpoint}:{user_id}",
    "partner:{partner}",
];
const IP_RULE: u64 = 2;
const SHADOW_RULE: u64 = 4;
/// An unlimited rule that replaces the one by address for the whole call.
const PARTNER_RULE: u64 = 6;

/// One request or take.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Request { user: Option<&'static str>, ip: Option<&'static str>, search: bool, partner: bool },
    Take(usize),
}

#[derive(Clone, Copy, Debug)]
struct Query {
    wish: Wish,
    cost: u64,
    is_probe: bool,
}

/// The tier of a rule for a request.
#[derive(Clone, Debug)]
enum Tier {
    Bucket { rule_id: u64, name: usize, quota: Quota, mode: Mode },
    Blocked { rule_id: u64, mode: Mode },
}

/// A limiter, its model, and the quotas of both.
pub(crate) struct Pair<'a, S: Store> {
    pub(crate) limiter: Limiter<S>,
    clock: ManualClock,
    model: Naive,
    seed: &'a mut Seed,
    /// Quotas of the rules, of the user with an override, and of the buckets without a rule.
    quotas: [Quota; 9],
    names: HashMap<String, usize>,
}

/// Counts of outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    /// Denied by a probe alone.
    pub(crate) by_probe: u64,
}

impl<'a, S: Store> Pair<'a, S> {
    /// A limiter over a store on this clock, with rules drawn from these quotas.
    pub(crate) fn new(store: S, clock: ManualClock, seed: &'a mut Seed, quotas: &[Quota]) -> Self {
        let quotas = [(); 9].map(|()| pick(seed, quotas));
        let rule = |(number, pattern): (usize, &&str)| {
            let rule_id = number as u64 + 1;
            let rule = Rule::new(rule_id, pattern, quotas[number]).unwrap();
            match rule_id {
                IP_RULE => rule.with_name("by address").unwrap(),
                SHADOW_RULE => rule.with_mode(Mode::Shadow),
                PARTNER_RULE => {
                    rule.with_mode(Mode::Unlimited).with_replaces(&["by address"]).unwrap()
                }
                _ => rule,
            }
        };
        let rules = RuleSet::new(PATTERNS.iter().enumerate().map(rule).collect()).unwrap();
        let overrides = Overrides::new([
            (1, "rich".into(), Override::Quota(quotas[5])),
            (1, "free".into(), Override::Unlimited),
            (IP_RULE, "blocked".into(), Override::Blocked),
            (SHADOW_RULE, "hidden".into(), Override::Blocked),
        ]);
        let rules = rules.with_overrides(overrides.unwrap());
        let limiter = Limiter::new(store, rules);
        clock.set(START);
        let mut model = Naive::default();
        model.now = START;
        Self { limiter, clock, model, seed, quotas, names: HashMap::new() }
    }

    /// Advances the clock, refunds or makes a call, and compares.
    pub(crate) async fn step(&mut self, tally: &mut Tally) {
        let passed = self.seed.below(3) * self.seed.below(20);
        self.clock.advance(Duration::from_micros(passed));
        self.model.now = Micros::new(self.model.now.get() + passed);
        if self.seed.below(12) == 0 {
            return self.refund().await;
        }
        let queries: Vec<_> = (0..=self.seed.below(ASKS_MAX)).map(|_| self.ask()).collect();
        let expected = self.expected(&queries);
        let together = self.together(&queries).await;
        assert!(!together.is_degraded(), "{together:?}");
        let answers: Vec<_> = together.answers().iter().map(figures).collect();
        assert_eq!(answers, expected, "at {:?}: {queries:?}", self.model.now);
        self.compare_sums(&together, &queries, &expected);
        let denying = |is_probe| {
            let answers = queries.iter().zip(together.answers());
            answers.filter(|(query, _)| query.is_probe == is_probe).any(|(_, a)| !a.is_allowed())
        };
        tally.granted += u64::from(together.is_allowed());
        tally.denied += u64::from(!together.is_allowed());
        tally.by_probe += u64::from(denying(true) && !denying(false));
    }

    async fn together(&self, queries: &[Query]) -> Together {
        let requests: Vec<_> = queries.iter().map(request).collect();
        let ask = |(&Query { wish, cost, is_probe }, request)| match wish {
            Wish::Request { .. } => Ask::Request { request, is_probe },
            Wish::Take(key) => {
                let (key, quota) = (KEYS[key], &self.quotas[6 + key]);
                Ask::Take { key, namespace: None, quota, cost, on_error: OnError::Deny, is_probe }
            }
        };
        let asks: Vec<_> = queries.iter().zip(&requests).map(ask).collect();
        self.limiter.check_together(&asks).await.unwrap()
    }

    async fn refund(&mut self) {
        let amount = self.seed.below(4);
        let query = Query { wish: self.wish(), cost: 0, is_probe: false };
        let given = match query.wish {
            Wish::Request { .. } => {
                let request = request(&query);
                let verdict = self.limiter.refund_all(&request, amount).await.unwrap();
                figures(&Answer::Verdict(verdict))
            }
            Wish::Take(key) => {
                let quota = &self.quotas[6 + key];
                let decision = self.limiter.refund(KEYS[key], quota, amount).await.unwrap();
                figures(&Answer::Decision(decision))
            }
        };
        let is_partners = is_partner(&query);
        let expected: Vec<_> = self
            .tiers(&query, is_partners)
            .into_iter()
            .map(|tier| match tier {
                Tier::Bucket { rule_id, name, quota, .. } => {
                    (rule_id, self.model.refund(name, &quota, amount))
                }
                Tier::Blocked { rule_id, .. } => (rule_id, BLOCKED),
            })
            .collect();
        assert_eq!(given, expected, "at {:?}: {amount} to {query:?}", self.model.now);
    }

    // ===== random queries =====

    fn ask(&mut self) -> Query {
        let cost = match self.seed.below(8) {
            0 => 0,
            1 => self.seed.below(30),
            _ => 1 + self.seed.below(2),
        };
        Query { wish: self.wish(), cost, is_probe: self.seed.below(4) == 0 }
    }

    fn wish(&mut self) -> Wish {
        if self.seed.below(3) == 0 {
            return Wish::Take(pick(self.seed, &[0, 1, 2]));
        }
        let user = (self.seed.below(4) > 0).then(|| pick(self.seed, &USERS));
        let ip = (self.seed.below(2) > 0).then(|| pick(self.seed, &ADDRESSES));
        let (search, partner) = (self.seed.below(2) == 0, self.seed.below(10) == 0);
        Wish::Request { user, ip, search, partner }
    }

    // ===== expected decisions =====

    /// The tiers of a request, in the order of their rules, in a call with a partner or without.
    fn tiers(&mut self, query: &Query, is_partners: bool) -> Vec<Tier> {
        let (user, ip, search) = match query.wish {
            Wish::Request { user, ip, search, .. } => (user, ip, search),
            Wish::Take(key) => {
                let (name, quota) = (self.name(format!("take {key}")), self.quotas[6 + key]);
                return vec![Tier::Bucket { rule_id: 0, name, quota, mode: Mode::Enforce }];
            }
        };
        let ip = ip.filter(|_| !is_partners);
        let subjects = [user, ip, Some(""), user, user.filter(|_| search)];
        let mut tiers = Vec::new();
        for (rule_id, subject) in (1..).zip(subjects) {
            let mode = if rule_id == SHADOW_RULE { Mode::Shadow } else { Mode::Enforce };
            let Some(subject) = subject else { continue };
            let quota = match (rule_id, subject) {
                (1, "free") => continue,
                (IP_RULE, "blocked") | (SHADOW_RULE, "hidden") => {
                    tiers.push(Tier::Blocked { rule_id, mode });
                    continue;
                }
                (1, "rich") => self.quotas[5],
                _ => self.quotas[rule_id as usize - 1],
            };
            let name = self.name(format!("rule {rule_id} {subject}"));
            tiers.push(Tier::Bucket { rule_id, name, quota, mode });
        }
        if tiers.iter().any(is_block) {
            tiers.retain(|tier| matches!(tier, Tier::Blocked { .. }));
        }
        tiers
    }

    fn name(&mut self, text: String) -> usize {
        let next = self.names.len();
        *self.names.entry(text).or_insert(next)
    }

    /// The decisions of the model.
    fn expected(&mut self, queries: &[Query]) -> Vec<Vec<(u64, Decision)>> {
        let is_partners = queries.iter().any(is_partner);
        let tiers: Vec<_> = queries.iter().map(|query| self.tiers(query, is_partners)).collect();
        let is_blocked = tiers.iter().flatten().any(is_block);
        let mut parts = Vec::new();
        for (query, tiers) in queries.iter().zip(&tiers) {
            for tier in tiers {
                if let Tier::Bucket { name, quota, mode, .. } = *tier {
                    let is_probe = query.is_probe || is_blocked;
                    parts.push(Part { name, quota, cost: query.cost, mode, is_probe });
                }
            }
        }
        let mut decisions = self.model.charge(&parts).into_iter();
        let mut answer = |tier| match tier {
            Tier::Bucket { rule_id, .. } => (rule_id, decisions.next().unwrap()),
            Tier::Blocked { rule_id, .. } => (rule_id, BLOCKED),
        };
        let answers = |tiers: Vec<Tier>| tiers.into_iter().map(&mut answer).collect();
        tiers.into_iter().map(answers).collect()
    }

    /// Compares the verdict of the call: allowed, wait, and requests without a limit.
    fn compare_sums(
        &self,
        together: &Together,
        queries: &[Query],
        expected: &[Vec<(u64, Decision)>],
    ) {
        let enforced = expected.iter().flatten().filter(|(rule_id, _)| *rule_id != SHADOW_RULE);
        let waits = enforced.map(|(_, decision)| decision.outcome.wait());
        let longest = waits.max().unwrap_or_default();
        assert_eq!(together.is_allowed(), longest == 0, "{queries:?}");
        let wait = (longest < u64::MAX).then(|| Duration::from_micros(longest));
        assert_eq!(together.retry_after(), wait, "{queries:?}");
        for (query, answer) in queries.iter().zip(together.answers()) {
            if let (Wish::Request { user, partner, .. }, Answer::Verdict(verdict)) =
                (query.wish, answer)
            {
                assert_eq!(verdict.is_unlimited(), partner || user == Some("free"), "{query:?}");
            }
        }
    }
}

/// Does it replace the rule by address?
fn is_partner(query: &Query) -> bool {
    matches!(query.wish, Wish::Request { partner: true, .. })
}

/// Does it deny everything?
fn is_block(tier: &Tier) -> bool {
    matches!(tier, Tier::Blocked { mode: Mode::Enforce, .. })
}

fn request(query: &Query) -> Request<'static> {
    let mut request = Request::new().cost(query.cost);
    if let Wish::Request { user, ip, search, partner } = query.wish {
        request = user.into_iter().fold(request, Request::user_id);
        request = ip.into_iter().fold(request, Request::ip);
        request = search.then_some("/search").into_iter().fold(request, Request::endpoint);
        if partner {
            request = request.attribute("partner", "1");
        }
    }
    request
}

/// The decisions of an answer, by rule; 0 for none.
fn figures(answer: &Answer) -> Vec<(u64, Decision)> {
    match answer {
        Answer::Verdict(verdict) => {
            verdict.tiers().map(|tier| (tier.rule.rule_id(), *tier.decision)).collect()
        }
        Answer::Decision(decision) => vec![(0, *decision)],
    }
}

fn pick<T: Copy>(seed: &mut Seed, all: &[T]) -> T {
    all[usize::try_from(seed.below(all.len() as u64)).unwrap()]
}
