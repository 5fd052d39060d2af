//! T9, T10: load at three times the limit, with right clocks and with wrong ones.

use std::time::Duration;

use sluicegate::OnError;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::shim::{ClockShim, Step};

use crate::faults::support::child::{Child, Job};
use crate::faults::support::load::{Load, Plan, Shots};
use crate::faults::support::windows::{Admission, excess};
use crate::faults::support::{
    AMPLE, Node, exact, fired, health, micros, node, now_us, quota, report, sized, within,
};

const NODES: u64 = 3;

/// Three nodes, 200 keys, three times the limit for a minute: no key gets
/// more than B + R·t, and all together at most 0.1 % less than C2 grants, ⌊B + R·t⌋ - 1 for each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a minute: make test-faults"]
async fn t9_steady_conformance() {
    let mut seed = Seed::announce("t9_steady_conformance");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes: Vec<Node> = (0..NODES).map(|_| node(&server.url(), AMPLE)).collect();
    let plan =
        Plan { quota: quota("5/s burst 10"), keys: 200, per_second: 1000, on_error: OnError::Deny };
    let shots =
        Load::run(&nodes, plan, &mut seed, sized(Duration::from_secs(10), Duration::from_secs(60)))
            .await;
    assert_eq!(shots.degraded(), 0, "{:?}", health(&nodes[0]));
    let denied = shots.all.len() - shots.granted();
    fired("a denial", denied as u64);
    let (granted, least) = tightness(&shots, &plan);
    assert!(granted * 1000 >= least * 999, "{granted} granted, and at least {least} were due");
    let hits: u64 = nodes.iter().map(|node| health(node).denied_hits).sum();
    report(
        "t9_steady_conformance",
        &seed,
        "none; load at 3x the limit",
        format!(
            "{}; {} checks, {granted} granted, {least} due; {hits} denied from the cache; p99 {:?}, noise {:?}",
            within(shots.excess(&plan), 0),
            shots.all.len(),
            shots.took(0..u64::MAX, 990),
            shots.noise,
        ),
    );
}

/// Grants, and the least number due between the first answer and the last request.
fn tightness(shots: &Shots, plan: &Plan) -> (u64, u64) {
    let quota = exact(&plan.quota);
    let due = |key| {
        let own = || shots.all.iter().filter(move |shot| shot.key == key);
        let first = own().map(|shot| shot.done_us).min().unwrap();
        let last = own().map(|shot| shot.sent_us).max().unwrap();
        quota.capacity + quota.tokens * last.saturating_sub(first) / quota.period_us - 1
    };
    (shots.granted() as u64, (0..plan.keys).map(due).sum())
}

/// Two of three processes have clocks that are five seconds early and late. Redis's clock decides: no key
/// gets more than B + R·t.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "other processes: make test-faults"]
async fn t10_clocks_of_the_callers_do_not_matter() {
    const SKEW: Duration = Duration::from_secs(5);
    let mut seed = Seed::announce("t10_clocks_of_the_callers_do_not_matter");
    let server = RedisServer::start(Flavour::Redis70);
    let time = Duration::from_secs(10);
    let skewed = |way, seed: u64| {
        let shim = ClockShim::new();
        shim.step(SKEW, way);
        let offset = shim.offset_us().to_string();
        let (seed, time) = (seed.to_string(), time.as_millis().to_string());
        Child::start(&["load", &server.url(), &seed, &time, &offset], Some(&shim))
    };
    let children = [skewed(Step::Forward, seed.next()), skewed(Step::Back, seed.next())];
    let nodes = [node(&server.url(), AMPLE)];
    let shots = Load::run(&nodes, skew_plan(), &mut seed, time).await;
    let mut admissions: Vec<Vec<Admission>> =
        (0..skew_plan().keys).map(|key| shots.admissions(key, |_| true)).collect();
    let mut by_process = vec![shots.granted()];
    for (child, way) in children.into_iter().zip([1, -1]) {
        by_process.push(read_child(&child.finish(time), way * 5_000_000, &mut admissions));
    }
    assert!(by_process.iter().all(|&granted| granted > 0), "VACUOUS: {by_process:?}");
    let quota = exact(&skew_plan().quota);
    let worst = admissions.iter().map(|admissions| excess(quota, admissions)).max().unwrap();
    let granted: usize = by_process.iter().sum();
    let due = skew_plan().keys * (quota.capacity + quota.tokens * micros(time) / quota.period_us);
    assert!(granted as u64 * 100 >= due * 95, "{granted} of {due}: the skew costs tokens");
    report(
        "t10_clocks_of_the_callers_do_not_matter",
        &seed,
        "clocks 5 s early and late",
        format!("{}; granted by process {by_process:?} of about {due}", within(worst, 0)),
    );
}

fn skew_plan() -> Plan {
    Plan { quota: quota("20/s burst 20"), keys: 10, per_second: 200, on_error: OnError::Deny }
}

/// Parses the admissions of another process, whose clock was off by `skew_us`; returns their number.
fn read_child(answer: &str, skew_us: i64, admissions: &mut [Vec<Admission>]) -> usize {
    let mut lines = answer.lines();
    let clock: i64 = lines.next().unwrap().parse().unwrap();
    let off = clock - i64::try_from(now_us()).unwrap() - skew_us;
    assert!(off.abs() < 2_000_000, "VACUOUS: the clock is {off} us from where it should be");
    let mut granted = 0;
    for line in lines {
        let [key, sent_us, done_us] =
            line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>()[..]
        else {
            panic!("{line}")
        };
        admissions[usize::try_from(key).unwrap()].push(Admission { sent_us, done_us, cost: 1 });
        granted += 1;
    }
    granted
}

/// Load in a process whose clock is off: prints its clock, and its admissions by the right one.
pub(crate) async fn child(job: &mut Job) {
    let (url, seed): (String, u64) = (job.next(), job.next());
    let (time_ms, offset_us): (u64, i64) = (job.next(), job.next());
    let nodes = [node(&url, AMPLE)];
    let time = Duration::from_millis(time_ms);
    let shots = Load::run(&nodes, skew_plan(), &mut Seed::new(seed), time).await;
    assert_eq!(shots.degraded(), 0);
    job.answer(&now_us().to_string());
    for shot in shots.all.iter().filter(|shot| shot.granted) {
        let right = |us: u64| us.checked_add_signed(-offset_us).unwrap();
        job.answer(&format!("{} {} {}", shot.key, right(shot.sent_us), right(shot.done_us)));
    }
}
