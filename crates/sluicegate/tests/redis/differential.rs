//! T3, D1: memory, Redis and the naive model give the same decisions, figure by figure, on random traces of
//! all operations of a store. `SLUICEGATE_STEPS` makes it longer.

use std::collections::BTreeSet;
use std::env;
use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{
    Charge, Decision, LocalStore, ManualClock, MemoryKey, MemoryStore, Micros, Mode, OnError,
    Quota, RedisKey, RedisStore, Space, Store,
};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::store::naive::{Naive, Part};
use crate::store::quotas;

/// Steps of the quick run; each is a charge, a refund or a reset.
const STEPS: u64 = 24_000;
/// Steps on each server other than that of the long run.
const STEPS_ELSEWHERE: u64 = 3_200;
/// Steps after which the trace restarts, under other keys.
const STEPS_PER_ROUND: u64 = 800;
const NAMES: usize = 8;
/// Maximum of concurrent operations, so that batches of the script are compared too.
const AT_ONCE_MAX: u64 = 6;
/// About the year 2100. Keys expire by the server's clock, which must not come near.
const START: u64 = 4_100_000_000_000_000;
const BUDGET: Duration = Duration::from_secs(5);

/// One operation on all three.
#[derive(Clone, Debug)]
enum Ask {
    Charge(Vec<Part>),
    Refund(Vec<Part>),
    Reset(usize),
}

struct Three<'a> {
    seed: &'a mut Seed,
    redis: RedisStore,
    memory: MemoryStore<ManualClock>,
    model: Naive,
    clock: ManualClock,
    redis_keys: Vec<RedisKey>,
    memory_keys: Vec<MemoryKey>,
    quotas: Vec<Quota>,
    /// All quotas are plain token buckets, and nearly all parts enforced: the fast path of the script.
    is_plain: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_memory_redis_and_the_model_agree() {
    let steps = env::var("SLUICEGATE_STEPS").map_or(STEPS, |steps| steps.parse().unwrap());
    compare("t3_memory_redis_and_the_model_agree", Flavour::Redis70, steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_so_do_the_other_servers() {
    for flavour in [Flavour::Redis62, Flavour::Redis8, Flavour::Valkey8, Flavour::Valkey9] {
        compare("t3_so_do_the_other_servers", flavour, STEPS_ELSEWHERE).await;
    }
}

async fn compare(test: &str, flavour: Flavour, steps: u64) {
    let mut seed = Seed::announce(test);
    let server = RedisServer::start(flavour);
    let (mut done, mut granted, mut round) = (0, 0, 0);
    while done < steps {
        let mut three = Three::new(&mut seed, &server, round);
        let until = done + STEPS_PER_ROUND;
        while done < until {
            let (more, grants) = three.step().await;
            done += more;
            granted += grants;
        }
        round += 1;
    }
    println!("{}: {done} steps, {granted} grants, no mismatch", flavour.name());
    assert!(granted > steps / 20 && granted < steps, "vacuous: {granted} grants");
}

impl<'a> Three<'a> {
    fn new(seed: &'a mut Seed, server: &RedisServer, round: u64) -> Self {
        let clock = ManualClock::new(Micros::new(START + seed.below(1 << 40)));
        let redis = RedisStore::builder(&server.url()).unwrap();
        let redis = redis.prefix(&format!("d{round}")).clock(clock.clone());
        let redis = redis.budget(BUDGET).deny_cache_max(0).build().unwrap();
        let memory = MemoryStore::builder().clock(clock.clone()).build();
        let names: Vec<String> = (0..NAMES).map(|name| format!("name {name}")).collect();
        let key = |name: &String| redis.key(Space::Take, &[name.as_bytes()]);
        let redis_keys = names.iter().map(key).collect();
        let key = |name: &String| memory.key(Space::Take, &[name.as_bytes()]);
        let memory_keys = names.iter().map(key).collect();
        let (model, quotas, is_plain) = (Naive::default(), Vec::new(), round.is_multiple_of(3));
        let mut three =
            Self { seed, redis, memory, model, clock, redis_keys, memory_keys, quotas, is_plain };
        three.model.now = Micros::new(START);
        three.quotas = (0..NAMES).map(|_| three.quota()).collect();
        three
    }

    /// Advances the clock, runs a few operations concurrently, and compares. Returns the number of operations
    /// and of granted charges.
    async fn step(&mut self) -> (u64, u64) {
        self.move_clock().await;
        let at_once = 1 + self.seed.below(AT_ONCE_MAX);
        let asks: Vec<Ask> = (0..at_once).map(|_| self.ask()).collect();
        let answers = join_all(asks.iter().map(|ask| self.answer_of_redis(ask))).await;
        let mut grants = 0;
        for (ask, of_redis) in asks.iter().zip(answers) {
            let (of_memory, of_model) = (self.answer_of_memory(ask), self.answer_of_model(ask));
            let now = self.model.now.get();
            assert_eq!(of_memory, of_model, "memory, model: at {now}, {ask:?} of {asks:?}");
            assert_eq!(of_redis, of_memory, "redis, memory: at {now}, {ask:?} of {asks:?}");
            grants += u64::from(of_redis.iter().all(Decision::is_granted));
        }
        (at_once, grants)
    }

    async fn move_clock(&mut self) {
        let name = self.below(NAMES);
        let fills_in = u64::try_from(self.quotas[name].time_to_full().as_micros()).unwrap();
        let now = self.model.now.get();
        let then = match self.seed.below(16) {
            0 => now + self.seed.below(2 * fills_in.min(1 << 45) + 2),
            1..=3 => now + self.seed.below(fills_in.min(1 << 45) / 7 + 2),
            4 | 5 => now + 1,
            6..=8 => now + self.seed.below(30),
            9 => {
                self.forget_full().await;
                now - self.seed.below(2 * fills_in.min(1 << 40) + 2)
            }
            _ => now,
        };
        // Within the domain, and not near the server's own time.
        let then = Micros::new(then.clamp(START / 4 * 3, START + (1 << 48)));
        self.clock.set(then);
        self.model.now = then;
    }

    /// A full bucket may or may not be stored, which shows when time goes back: so it is removed from all
    /// three.
    async fn forget_full(&mut self) {
        for name in 0..NAMES {
            if self.model.is_full(name) {
                self.model.reset(name);
                self.memory.reset_now(&self.memory_keys[name]);
                self.redis.reset(&self.redis_keys[name]).await.unwrap();
            }
        }
    }

    fn ask(&mut self) -> Ask {
        let name = self.below(NAMES);
        match self.seed.below(8) {
            0 => self.quotas[name] = self.quota(),
            // The same form with another capacity, if it has one of its own.
            1 => {
                let capacity = 1 + self.seed.below(60);
                let quota = self.quotas[name];
                self.quotas[name] = quota.with_capacity(capacity).unwrap_or(quota);
            }
            _ => {}
        }
        match self.seed.below(12) {
            0 => Ask::Refund(self.credits(name)),
            1 if self.seed.below(4) == 0 => Ask::Reset(name),
            _ => Ask::Charge((0..=self.below(4)).map(|_| self.part()).collect()),
        }
    }

    /// Refunds of a few buckets, this one among them.
    fn credits(&mut self, name: usize) -> Vec<Part> {
        let others = self.below(4);
        let names: BTreeSet<_> = (0..others).map(|_| self.below(NAMES)).chain([name]).collect();
        let credit = |name| {
            let quota = self.quotas[name];
            Part { name, quota, cost: self.amount(&quota), mode: Mode::Enforce, is_probe: false }
        };
        names.into_iter().map(credit).collect()
    }

    fn part(&mut self) -> Part {
        // Half of all charges use three buckets, so that those run out.
        let name = if self.seed.below(2) == 0 { self.below(3) } else { self.below(NAMES) };
        let shadows = if self.is_plain { 60 } else { 6 };
        let mode = if self.seed.below(shadows) == 0 { Mode::Shadow } else { Mode::Enforce };
        let quota = self.quotas[name];
        let probes = if self.is_plain { 30 } else { 5 };
        let is_probe = self.seed.below(probes) == 0;
        Part { name, quota, cost: self.amount(&quota), mode, is_probe }
    }

    fn amount(&mut self, quota: &Quota) -> u64 {
        let capacity = quota.capacity();
        match self.seed.below(8) {
            0 => 0,
            1 => capacity.saturating_sub(1) + self.seed.below(3),
            2 => self.seed.below(capacity / 2 + 2),
            3 => self.seed.below(u64::MAX),
            _ => 1 + self.seed.below(capacity / 6 + 1),
        }
    }

    fn quota(&mut self) -> Quota {
        let all = match self.seed.below(6) {
            _ if self.is_plain => quotas::plain(),
            0 => quotas::extreme(),
            1 | 2 => quotas::usual(),
            _ => quotas::small(),
        };
        all[self.below(all.len())]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.seed.below(bound as u64)).unwrap()
    }

    async fn answer_of_redis(&self, ask: &Ask) -> Vec<Decision> {
        match ask {
            Ask::Charge(parts) => {
                let charged = self.redis.charge(&charges(parts, &self.redis_keys)).await.unwrap();
                assert!(!charged.degraded, "{:?}", self.redis.health());
                charged.decisions.to_vec()
            }
            Ask::Refund(parts) => {
                let credits = charges(parts, &self.redis_keys);
                self.redis.refund_many(&credits).await.unwrap().to_vec()
            }
            Ask::Reset(name) => {
                self.redis.reset(&self.redis_keys[*name]).await.unwrap();
                Vec::new()
            }
        }
    }

    fn answer_of_memory(&self, ask: &Ask) -> Vec<Decision> {
        match ask {
            Ask::Charge(parts) => {
                self.memory.charge_now(&charges(parts, &self.memory_keys)).to_vec()
            }
            Ask::Refund(parts) => {
                self.memory.refund_many_now(&charges(parts, &self.memory_keys)).to_vec()
            }
            Ask::Reset(name) => {
                self.memory.reset_now(&self.memory_keys[*name]);
                Vec::new()
            }
        }
    }

    fn answer_of_model(&mut self, ask: &Ask) -> Vec<Decision> {
        match ask {
            Ask::Charge(parts) => self.model.charge(parts),
            Ask::Refund(parts) => {
                let refund = |part: &Part| self.model.refund(part.name, &part.quota, part.cost);
                parts.iter().map(refund).collect()
            }
            Ask::Reset(name) => {
                self.model.reset(*name);
                Vec::new()
            }
        }
    }
}

fn charges<'a, K>(parts: &'a [Part], keys: &'a [K]) -> Vec<Charge<'a, K>> {
    let charge = |part: &'a Part| {
        Charge::new(&keys[part.name], &part.quota, part.cost)
            .with_mode(part.mode)
            .with_on_error(OnError::Deny)
            .with_is_probe(part.is_probe)
    };
    parts.iter().map(charge).collect()
}
