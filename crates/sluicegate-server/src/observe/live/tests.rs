use std::sync::OnceLock;

use axum::body::Bytes;
use sluicegate::{AnyStore, MemoryStore, Mode, Quota, Rule, RuleSet, Scope};
use tokio::time::{advance, timeout};

use super::sample::ByRule;
use super::tick::{RULES_IN_SHORT_MAX, RULES_MAX};
use super::*;
use crate::config;
use crate::observe::metrics::audit::AuditFigures;
use crate::observe::stats::Counts;
use crate::time::Timestamp;

/// A source of ticks that counts them.
#[derive(Debug, Default)]
struct Clock {
    began: Option<Instant>,
    /// Number of calls of `begin`, and of ticks made without watchers.
    log: Arc<Mutex<(usize, usize)>>,
}

impl Source for Clock {
    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.log.lock().0 += 1;
    }

    async fn tick(&mut self, now: Instant, limited: Option<&MostLimited>) -> Tick {
        self.log.lock().1 += usize::from(limited.is_none());
        tick(now - self.began.unwrap(), &[])
    }
}

fn tick(length: Duration, rules: &[RuleCounts]) -> Tick {
    Tick {
        number: 0,
        now: Timestamp::from_micros(0),
        length,
        tiers: TierCounts::default(),
        rules: rules.to_vec(),
        other_rules: granted(1),
        take: Counts::default(),
        limited: Vec::new(),
        shared: Vec::new(),
        requests: Requests { allowed: 0, denied: 0 },
        latency: Latency { count: 0, p50_us: None, p99_us: None },
        degraded: 0,
        troubles: Troubles {
            store: "memory",
            is_store_in_trouble: false,
            is_database_in_trouble: false,
            rules_refused: None,
        },
        audit: AuditFigures { noted: 0, written: 0, dropped: 0 },
        text: OnceLock::new(),
    }
}

fn granted(granted: u64) -> Counts {
    Counts { granted, ..Counts::default() }
}

/// A running publisher and its source's log.
fn live() -> (Live, Arc<Mutex<(usize, usize)>>) {
    let metrics = Metrics::new(Arc::new(AnyStore::from(MemoryStore::new())));
    let live = Live::new(&metrics, Pseudonyms::new(&config::Audit::default()));
    let clock = Clock::default();
    let log = Arc::clone(&clock.log);
    tokio::spawn(live.clone().publish_ticks(clock));
    (live, log)
}

async fn next(watcher: &mut Watcher) -> Arc<Tick> {
    watcher.next().await.unwrap()
}

fn is_on(live: &Live) -> bool {
    live.inner.is_on.load(Relaxed)
}

#[tokio::test(start_paused = true)]
async fn it_ticks_every_second_while_a_client_watches_and_a_while_longer() {
    let (live, log) = live();
    tokio::time::sleep(TICK * 10).await;
    assert!(!is_on(&live));
    assert_eq!(*log.lock(), (0, 0), "no watcher");

    let mut watcher = live.watch("token:test").await.unwrap();
    assert!(is_on(&live));
    assert_eq!((watcher.history.len(), live.inner.watchers.get()), (0, 1));
    for number in 1..=3 {
        let tick = next(&mut watcher).await;
        assert_eq!((tick.number, tick.length), (number, TICK * number as u32));
    }
    drop(watcher);
    assert_eq!(live.inner.watchers.get(), 0);

    // A watcher that returns by then gets the whole history, each tick once.
    tokio::time::sleep(LINGER - TICK / 2).await;
    assert_eq!(*log.lock(), (1, 119));
    let mut watcher = live.watch("token:test").await.unwrap();
    let numbers: Vec<_> = watcher.history.iter().map(|tick| tick.number).collect();
    assert_eq!(numbers, (3..=122).collect::<Vec<_>>());
    assert_eq!(next(&mut watcher).await.number, 123);
    drop(watcher);

    // One that returns later gets none.
    tokio::time::sleep(LINGER + TICK).await;
    assert!(!is_on(&live));
    let ticks = log.lock().1;
    tokio::time::sleep(LINGER).await;
    assert_eq!(*log.lock(), (1, ticks), "no watcher");
    let mut watcher = live.watch("token:test").await.unwrap();
    assert_eq!((watcher.history.len(), log.lock().0), (0, 2));
    assert!(next(&mut watcher).await.number > 123, "numbers grow");
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_misses_ticks_and_delays_no_other() {
    let (live, _) = live();
    let (mut slow, mut quick) =
        (live.watch("token:test").await.unwrap(), live.watch("token:test").await.unwrap());
    for number in 1..=5 {
        assert_eq!(next(&mut quick).await.number, number);
    }
    assert_eq!(next(&mut slow).await.number, 5);
    assert_eq!(next(&mut slow).await.number, 6);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_watchers_is_bounded() {
    let (live, _) = live();
    let mut watchers = Vec::new();
    for n in 0..WATCHERS_MAX {
        watchers.push(live.watch(&format!("token:{}", n % 4)).await.unwrap());
    }
    let refused = live.watch("token:test").await.unwrap_err();
    assert_eq!(refused, TooManyWatchers::OfAll);
    assert_eq!((live.inner.watchers.get(), live.inner.refused.get()), (64, 1));
    drop(watchers.pop());
    let mut last = live.watch("token:test").await.unwrap();
    assert_eq!(next(&mut last).await.number, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_gives_up_before_the_first_tick_is_not_counted() {
    let metrics = Metrics::new(Arc::new(AnyStore::from(MemoryStore::new())));
    let live = Live::new(&metrics, Pseudonyms::new(&config::Audit::default()));
    assert!(timeout(TICK, live.watch("token:test")).await.is_err(), "nothing makes ticks");
    assert_eq!((live.is_watched(), live.inner.watchers.get()), (false, 0));
    tokio::spawn(live.clone().publish_ticks(Clock::default()));
    advance(TICK).await;
    assert!(!is_on(&live));
}

#[test]
fn a_tick_is_written_once() {
    let tick = tick(TICK, &[]);
    assert_eq!(tick.text(|_| Bytes::from_static(b"once")), "once");
    assert_eq!(tick.text(|_| unreachable!("it is written")), "once");
}

fn rules(count: u64) -> RuleSet {
    let rule = |rule_id| {
        let quota = Quota::per_second(1).unwrap();
        let mode = if rule_id == 1 { Mode::Shadow } else { Mode::Enforce };
        Rule::new(rule_id, &format!("r{rule_id}:{{user_id}}"), quota).unwrap().with_mode(mode)
    };
    RuleSet::new((1..=count).map(rule).collect()).unwrap()
}

#[test]
fn the_busiest_rules_are_listed_and_the_others_summed_up() {
    let count = RULES_MAX as u64 + 10;
    let rules = rules(count);
    let mut decided: Vec<_> = (1..=count).map(|id| (Some(id), granted(id))).collect();
    decided.push((None, granted(7)));
    // A rule deleted meanwhile is not counted.
    decided.push((Some(count + 1), granted(1_000_000)));
    let by_rule = ByRule::new(&rules, decided);
    let ids: Vec<_> = by_rule.rules.iter().map(|rule| rule.rule.rule_id).collect();
    assert_eq!(ids, (11..=count).rev().collect::<Vec<_>>());
    assert_eq!((by_rule.other_rules, by_rule.take), (granted(55), granted(7)));
    // A rule in shadow mode belongs to no tier.
    let user = Scope::ALL.iter().position(|scope| *scope == Scope::User).unwrap();
    let sum = count * (count + 1) / 2 - 1;
    for (scope, counts) in by_rule.tiers.iter().enumerate() {
        assert_eq!(*counts, granted(if scope == user { sum } else { 0 }));
    }

    let whole = tick(TICK, &by_rule.rules);
    let short = whole.in_short();
    assert_eq!(short.rules.len(), RULES_IN_SHORT_MAX);
    let left_out: u64 = whole.rules[RULES_IN_SHORT_MAX..].iter().map(|it| it.counts.granted).sum();
    assert_eq!(short.other_rules, granted(1 + left_out));
}
