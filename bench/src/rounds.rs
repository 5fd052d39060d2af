//! Timing: short rounds of all contenders alternately, so that other load of the machine affects all of
//! them alike. The result is the median of a contender's undisturbed rounds.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::contenders::{Contender, Walk};
use crate::walkers::{Round, turn};
use crate::workloads::{STEPS, Steps, Workload};

/// Length and number of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Turns of every contender. One that lacks undisturbed rounds gets at most as many again, within a time
    /// limit.
    pub(crate) turns: usize,
    pub(crate) round: Duration,
}

/// One contender's rounds on one workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) workload: String,
    pub(crate) threads: usize,
    pub(crate) contender: &'static str,
    /// Wall time by checks of all threads together, the median round.
    pub(crate) ns_per_check: f64,
    /// The quartiles of the rounds.
    pub(crate) ns_quartiles: [f64; 2],
    pub(crate) denied_share: f64,
    /// Number of undisturbed rounds; 0 if all were disturbed, and then those are used.
    pub(crate) rounds: usize,
    pub(crate) rounds_disturbed: usize,
}

/// A contender with a number of threads.
struct Entrant<'a> {
    name: &'static str,
    limiter: &'a dyn Walk,
    threads: usize,
    tally: Tally,
}

/// A contender's figures so far.
struct Tally {
    checks_per_round: usize,
    rounds_ns: Vec<f64>,
    disturbed_ns: Vec<f64>,
    checks: usize,
    denied: usize,
}

/// Sufficient number of undisturbed rounds.
const ROUNDS_ENOUGH: usize = 10;
/// The time for extra turns on one workload.
const EXTRA_MAX: Duration = Duration::from_secs(10);
const CHECKS_MIN: usize = 1 << 8;
/// Maximum number of checks in a round, so that all rounds together take less than a burst.
const CHECKS_MAX: usize = 1 << 13;
/// Rounds of a turn; the first warms the caches and does not count.
const ROUNDS_PER_TURN: usize = 6;
/// Tolerance between the measured share of denials and the workload's.
const DENIED_SLACK: f64 = 0.05;

/// Populates all contenders and measures each with each number of threads. A contender whose share of
/// denials is not the workload's is reported and left out.
pub(crate) fn measure(
    name: &str,
    workload: Workload,
    contenders: &[&Contender],
    threads: &[usize],
    effort: Effort,
) -> Vec<Measured> {
    let steps = workload.steps(STEPS);
    let mut random = fastrand::Rng::with_seed(11);
    let limiters: Vec<_> = contenders
        .iter()
        .map(|contender| {
            let limiter = (contender.make)(workload.keys());
            limiter.populate(workload.keys(), &|id| workload.taken_before(id));
            (contender.name, limiter)
        })
        .collect();
    let mut entrants: Vec<_> = limiters
        .iter()
        .flat_map(|limiter| threads.iter().map(move |threads| (limiter, *threads)))
        .map(|((name, limiter), threads)| {
            let tally = Tally::new(limiter.as_ref(), &steps, threads, effort.round, &mut random);
            Entrant { name, limiter: limiter.as_ref(), threads, tally }
        })
        .collect();
    for _ in 0..effort.turns {
        for entrant in &mut entrants {
            entrant.turn(&steps, &mut random);
        }
    }
    let extra_until = Instant::now() + EXTRA_MAX;
    for _ in 0..effort.turns {
        for entrant in &mut entrants {
            let is_short = entrant.tally.rounds_ns.len() < ROUNDS_ENOUGH;
            if is_short && Instant::now() < extra_until {
                entrant.turn(&steps, &mut random);
            }
        }
    }
    entrants
        .into_iter()
        .map(|entrant| entrant.tally.summary(name, entrant.threads, entrant.name))
        .filter(|measured| {
            let off = (measured.denied_share - workload.denied_share()).abs();
            if off > DENIED_SLACK {
                eprintln!("left out, as it denied too few or too many: {measured:?}");
            }
            off <= DENIED_SLACK
        })
        .collect()
}

impl Entrant<'_> {
    fn turn(&mut self, steps: &Steps, random: &mut fastrand::Rng) {
        let Self { limiter, threads, tally, .. } = self;
        let rounds =
            turn(*limiter, steps, *threads, tally.checks_per_round, ROUNDS_PER_TURN, random);
        for round in rounds.into_iter().skip(1) {
            tally.add(&round, *threads);
        }
    }
}

impl Tally {
    /// Determines the number of checks in a round.
    fn new(
        limiter: &dyn Walk,
        steps: &Steps,
        threads: usize,
        round: Duration,
        random: &mut fastrand::Rng,
    ) -> Self {
        let trial = turn(limiter, steps, threads, CHECKS_MIN, 1, random);
        let trial_ns = trial.first().map_or(f64::MAX, |round| round.ns_per_check);
        let wanted = round.as_nanos() as f64 / (trial_ns * threads as f64);
        Self {
            checks_per_round: (wanted as usize).clamp(CHECKS_MIN, CHECKS_MAX),
            rounds_ns: Vec::new(),
            disturbed_ns: Vec::new(),
            checks: 0,
            denied: 0,
        }
    }

    fn add(&mut self, round: &Round, threads: usize) {
        self.checks += self.checks_per_round * threads;
        self.denied += round.denied;
        let ns = if round.is_disturbed { &mut self.disturbed_ns } else { &mut self.rounds_ns };
        ns.push(round.ns_per_check);
    }

    fn summary(self, workload: &str, threads: usize, contender: &'static str) -> Measured {
        let (rounds, rounds_disturbed) = (self.rounds_ns.len(), self.disturbed_ns.len());
        // A contender so slow that every round is disturbed: a disturbed figure is better than none.
        let mut all_ns = if rounds > 0 { self.rounds_ns } else { self.disturbed_ns };
        all_ns.sort_by(f64::total_cmp);
        let quantile = |share: f64| all_ns[((all_ns.len() - 1) as f64 * share).round() as usize];
        Measured {
            workload: workload.to_owned(),
            threads,
            contender,
            ns_per_check: quantile(0.5),
            ns_quartiles: [quantile(0.25), quantile(0.75)],
            denied_share: self.denied as f64 / self.checks as f64,
            rounds,
            rounds_disturbed,
        }
    }
}
