//! Concurrent threads, each pinned to a core. Unused cores spin, so that one thread and two are measured
//! under the same conditions.
//!
//! A round is disturbed if the kernel ran another process on a core, or if the threads did not run at the
//! same time: such a round measures the other processes. Waiting for a lock is not a disturbance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

use crate::contenders::Walk;
use crate::workloads::Steps;

/// Number of cores used, by walkers or for spinning.
pub(crate) const CORES: usize = 2;
/// Maximum share of a round by which one walker may start or end later than another.
const OVERHANG_MAX: f64 = 0.1;

/// One round.
pub(crate) struct Round {
    /// Wall time, by checks of all threads together.
    pub(crate) ns_per_check: f64,
    pub(crate) denied: usize,
    pub(crate) is_disturbed: bool,
}

/// A core's part of a round.
struct Part {
    started: Instant,
    ended: Instant,
    denied: usize,
    interrupted: bool,
}

/// Spinning barrier of the threads of all cores. They do not sleep, so that all are on their cores when a
/// round starts, and no other process is.
#[derive(Default)]
struct Line {
    arrived: AtomicUsize,
}

/// Some rounds of one contender, one after the other, with `threads` walkers and `checks` for each.
pub(crate) fn turn(
    limiter: &dyn Walk,
    steps: &Steps,
    threads: usize,
    checks: usize,
    rounds: usize,
    random: &mut fastrand::Rng,
) -> Vec<Round> {
    let (start, finish) = (Line::default(), Line::default());
    let on_core = |core: usize, mut random: fastrand::Rng| -> Vec<Part> {
        stay_on(core);
        let checks = if core < threads { checks } else { 0 };
        let part = |_| {
            let first = random.usize(0..=steps.len() - checks);
            start.wait();
            let interruptions_before = interruptions();
            let started = Instant::now();
            let denied = limiter.walk(steps, first..first + checks);
            let ended = Instant::now();
            finish.wait();
            let interrupted = interruptions() > interruptions_before;
            Part { started, ended, denied, interrupted }
        };
        (0..rounds).map(part).collect()
    };
    let parts: Vec<Vec<Part>> = std::thread::scope(|scope| {
        let spawn = |core| {
            let (on_core, random) = (&on_core, random.fork());
            scope.spawn(move || on_core(core, random))
        };
        let spawned: Vec<_> = (0..CORES).map(spawn).collect();
        spawned.into_iter().map(|thread| thread.join().expect("no contender panics")).collect()
    });
    (0..rounds)
        .map(|round| {
            let parts: Vec<_> = parts.iter().map(|core| &core[round]).collect();
            Round::of(&parts, threads, checks)
        })
        .collect()
}

impl Line {
    /// Waits until all threads have arrived as often as this one.
    fn wait(&self) {
        let goal = (self.arrived.fetch_add(1, Ordering::SeqCst) / CORES + 1) * CORES;
        while self.arrived.load(Ordering::SeqCst) < goal {
            std::hint::spin_loop();
        }
    }
}

impl Round {
    fn of(parts: &[&Part], threads: usize, checks: usize) -> Self {
        let walkers = &parts[..threads];
        let elapsed = longest(walkers, |from, to| to.ended.saturating_duration_since(from.started));
        let apart = longest(walkers, |from, to| {
            let starts = to.started.saturating_duration_since(from.started);
            starts.max(to.ended.saturating_duration_since(from.ended))
        });
        let is_apart = apart > elapsed.mul_f64(OVERHANG_MAX);
        Self {
            ns_per_check: elapsed.as_nanos() as f64 / (checks * threads) as f64,
            denied: walkers.iter().map(|part| part.denied).sum(),
            is_disturbed: is_apart || parts.iter().any(|part| part.interrupted),
        }
    }
}

/// Longest time between any two of these parts.
fn longest(parts: &[&Part], between: impl Fn(&Part, &Part) -> Duration) -> Duration {
    let pairs = parts.iter().flat_map(|from| parts.iter().map(move |to| (from, to)));
    pairs.map(|(from, to)| between(from, to)).max().unwrap_or_default()
}

/// Pins this thread to a core, if the system allows it. Only the number of disturbed rounds depends on it.
fn stay_on(core: usize) {
    let mut cores = CpuSet::new();
    if cores.set(core).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    }
}

/// Involuntary context switches of this thread.
fn interruptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}
