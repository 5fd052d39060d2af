//! T4: of many concurrent checks exactly as many are admitted as there are tokens.

use futures_util::future::join_all;
use sluicegate::{Limiter, OnError, Request, Rule, RuleSet};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::faults::support::child::{Child, Job};
use crate::faults::support::{AMPLE, LONG, Node, node, quota, report, sized};

const TASKS: usize = 64;
const ASKED_EACH: usize = 20;
const NODES: usize = 3;
const CAPACITY: u64 = 1000;
/// No token is refilled during a run.
const QUOTA: &str = "1/day burst 1000";

/// One key, 64 tasks on three stores: exactly 1000 of 1280, in 200 runs (quick: 10).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_exactly_n_of_one_tier() {
    let seed = Seed::announce("t4_exactly_n_of_one_tier");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes: Vec<Node> = (0..NODES).map(|_| node(&server.url(), AMPLE)).collect();
    let runs = sized(10, 200);
    for run in 0..runs {
        let key = format!("run {run}");
        let tasks =
            (0..TASKS).map(|task| tokio::spawn(ask(nodes[task % NODES].clone(), key.clone())));
        let granted: u64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(granted, CAPACITY, "run {run}");
        // A denial charges nothing, and a peek shows it.
        assert_eq!(nodes[0].peek(&key, &quota(QUOTA)).await.unwrap().remaining, 0);
    }
    let asked = TASKS * ASKED_EACH;
    report(
        "t4_exactly_n_of_one_tier",
        &seed,
        format!("{TASKS} tasks on {NODES} stores"),
        format!("{CAPACITY} of {asked} admitted in each of {runs} runs"),
    );
}

/// Charges one key repeatedly; returns the number of admissions.
async fn ask(node: Node, key: String) -> u64 {
    let mut granted = 0;
    for _ in 0..ASKED_EACH {
        let charged = node.take_or(&key, &quota(QUOTA), 1, OnError::Deny).await.unwrap();
        assert!(!charged.degraded, "{:?}", node.store().health());
        granted += u64::from(charged.decisions[0].is_granted());
    }
    granted
}

/// Three tiers, of which the narrowest decides: exactly its 1000, and the two others are charged exactly as
/// often, with any denials in between (M1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_exactly_n_of_three_tiers() {
    let seed = Seed::announce("t4_exactly_n_of_three_tiers");
    let server = RedisServer::start(Flavour::Redis8);
    let nodes: Vec<Node> = (0..NODES).map(|_| tiered(&node(&server.url(), AMPLE))).collect();
    let runs = sized(6, 100);
    for run in 0..runs {
        let name = format!("run {run}");
        let tasks = (0..TASKS)
            .map(|task| tokio::spawn(ask_tiers(nodes[task % NODES].clone(), name.clone())));
        let granted: u64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(granted, CAPACITY, "run {run}");
        let looked = nodes[0].check(&request(&name).cost(0)).await.unwrap();
        let left: Vec<u64> = looked.tiers().map(|tier| tier.decision.remaining).collect();
        assert_eq!(left, [0, 100, 200], "run {run}: {looked:?}");
    }
    report(
        "t4_exactly_n_of_three_tiers",
        &seed,
        format!("{TASKS} tasks on {NODES} stores"),
        format!("{CAPACITY} admitted, and charged to all three tiers, in each of {runs} runs"),
    );
}

fn tiered(node: &Node) -> Node {
    let rule = |id, pattern, capacity| {
        Rule::new(id, pattern, quota(&format!("1/day burst {capacity}"))).unwrap()
    };
    let rules = vec![
        rule(1, "user:{user_id}", CAPACITY),
        rule(2, "ip:{ip}", CAPACITY + 100),
        rule(3, "endpoint:{endpoint}", CAPACITY + 200),
    ];
    Limiter::on(std::sync::Arc::clone(node.store()), RuleSet::new(rules).unwrap())
}

fn request(name: &str) -> Request<'_> {
    Request::new().user_id(name).ip(name).endpoint(name)
}

async fn ask_tiers(node: Node, name: String) -> u64 {
    let mut granted = 0;
    for _ in 0..ASKED_EACH {
        let verdict = node.check(&request(&name)).await.unwrap();
        assert!(!verdict.is_degraded(), "{:?}", node.store().health());
        granted += u64::from(verdict.is_allowed());
    }
    granted
}

/// Three processes with 22 tasks each, and one limit: exactly 1000 of 1320.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_exactly_n_of_three_processes() {
    let seed = Seed::announce("t4_exactly_n_of_three_processes");
    let server = RedisServer::start(Flavour::Valkey9);
    let job = ["exact", &server.url(), "processes"];
    let children: Vec<Child> = (0..NODES).map(|_| Child::start(&job, None)).collect();
    let granted: Vec<u64> =
        children.into_iter().map(|child| child.finish(LONG).trim().parse().unwrap()).collect();
    assert_eq!(granted.iter().sum::<u64>(), CAPACITY, "{granted:?}");
    assert!(granted.iter().filter(|&&granted| granted > 0).count() > 1, "VACUOUS: {granted:?}");
    report(
        "t4_exactly_n_of_three_processes",
        &seed,
        "3 processes",
        format!("{CAPACITY} admitted, by process {granted:?}"),
    );
}

pub(crate) async fn child(job: &mut Job) {
    let (url, key): (String, String) = (job.next(), job.next());
    let node = node(&url, AMPLE);
    let tasks = (0..TASKS.div_ceil(NODES)).map(|_| tokio::spawn(ask(node.clone(), key.clone())));
    let granted: u64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    job.answer(&granted.to_string());
}
