//! A million active users, three tiers, a steady stream of whole checks.
//!
//! The stream is an open loop: each thread has a timetable, a batch every millisecond, and catches up
//! if it is late. The offered rate is 1 % above the target, so that a delay at the end is not a miss.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

use crate::contenders::{SERVICE, Walk};
use crate::walkers::CORES;
use crate::workloads::{MANY, Steps};

/// Target rate in checks per second.
pub(crate) const WANTED_PER_SEC: f64 = 400_000.0;

const THREADS: usize = CORES;
const TICK: Duration = Duration::from_millis(1);
/// Number of checks of a thread in a tick.
const BATCH: usize = 202;

/// Result of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Scale {
    pub(crate) seconds: f64,
    pub(crate) checks_per_sec: f64,
    pub(crate) denied_share: f64,
    /// Processor time by the time of two cores.
    pub(crate) cores_share: f64,
    /// Maximum delay of a batch.
    pub(crate) late_ms_max: f64,
}

/// One thread's part.
#[derive(Default)]
struct Part {
    denied: usize,
    late_max: Duration,
}

/// Runs the stream for this time.
pub(crate) fn run(seconds: u64) -> Scale {
    eprintln!("scale: {seconds} s ...");
    let limiter = (SERVICE.make)(MANY);
    limiter.populate(MANY, &|_| 1);
    let steps = Steps::each_once(MANY);
    let ticks = seconds as u32 * 1000;
    let (used_before, started) = (processor_time(), Instant::now());
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let spawn = |thread: usize| {
            let (limiter, steps) = (limiter.as_ref(), &steps);
            scope.spawn(move || stream(limiter, steps, thread, started, ticks))
        };
        let spawned: Vec<_> = (0..THREADS).map(spawn).collect();
        spawned.into_iter().map(|thread| thread.join().expect("no check panics")).collect()
    });
    let (elapsed, used) = (started.elapsed(), processor_time() - used_before);
    let checks = (ticks as usize * BATCH * THREADS) as f64;
    let late_max = parts.iter().map(|part| part.late_max).max().unwrap_or_default();
    Scale {
        seconds: elapsed.as_secs_f64(),
        checks_per_sec: checks / elapsed.as_secs_f64(),
        denied_share: parts.iter().map(|part| part.denied).sum::<usize>() as f64 / checks,
        cores_share: used.as_secs_f64() / (elapsed.as_secs_f64() * CORES as f64),
        late_ms_max: late_max.as_secs_f64() * 1e3,
    }
}

/// Runs a thread's batches, each at its time or as soon as possible.
fn stream(limiter: &dyn Walk, steps: &Steps, thread: usize, started: Instant, ticks: u32) -> Part {
    let mut part = Part::default();
    for tick in 0..ticks {
        let due = started + TICK * tick;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        part.late_max = part.late_max.max(due.elapsed());
        let first =
            (tick as usize * BATCH + thread * steps.len() / THREADS) % (steps.len() - BATCH);
        part.denied += limiter.walk(steps, first..first + BATCH);
    }
    part
}

/// Processor time that this process has used.
fn processor_time() -> Duration {
    let time = |time: TimeVal| {
        Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()).cast_unsigned())
    };
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}

pub(crate) fn markdown(scale: &Scale) -> String {
    format!(
        "1M active users, three tiers, whole checks: {:.0} checks/s for {:.0} s with {:.0}% of two cores \
         ({:.2}% denied, a batch at most {:.1} ms late)\n",
        scale.checks_per_sec,
        scale.seconds,
        scale.cores_share * 100.0,
        scale.denied_share * 100.0,
        scale.late_ms_max,
    )
}
