//! Instructions per check, counted by callgrind: no noise, so that no regression hides in it.
//!
//! Each case runs twice in separate processes, once with twice as many checks: the difference is the cost
//! of the checks. Only the checks are counted, because some clocks calibrate themselves.

use std::hint::black_box;

use serde::Serialize;

use crate::align::align;
use crate::callgrind;
use crate::contenders::{
    CHECK, CHECK_1000, Contender, FOUR_TIERS, GOVERNOR, KEYED, SERVICE_10, SERVICE_1000,
    SINGLE_TIER, SLUICEGATE, THREE_TIERS, Walk, named,
};
use crate::workloads::{Denials, Order, Steps, Workload};

/// Rows: name, tiers, contender and denials. All checks are of one hot key.
const CASES: [Case; 12] = [
    ("grant", SINGLE_TIER, SLUICEGATE, Denials::None),
    ("grant", SINGLE_TIER, KEYED, Denials::None),
    ("grant", SINGLE_TIER, GOVERNOR, Denials::None),
    ("denial", SINGLE_TIER, SLUICEGATE, Denials::All),
    ("denial", SINGLE_TIER, KEYED, Denials::All),
    ("denial", SINGLE_TIER, GOVERNOR, Denials::All),
    ("three-tier grant", THREE_TIERS, SLUICEGATE, Denials::None),
    ("three-tier grant", THREE_TIERS, CHECK, Denials::None),
    ("three-tier grant", THREE_TIERS, CHECK_1000, Denials::None),
    ("three-tier grant", THREE_TIERS, GOVERNOR, Denials::None),
    ("four-tier grant", FOUR_TIERS, SERVICE_10, Denials::None),
    ("four-tier grant", FOUR_TIERS, SERVICE_1000, Denials::None),
];

type Case = (&'static str, &'static [Contender], &'static str, Denials);

const CHECKS: usize = 20_000;
const STEPS: usize = 1_000;

/// One case's figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Instructions {
    pub(crate) what: &'static str,
    pub(crate) contender: &'static str,
    pub(crate) per_check: f64,
}

/// Counts every case, or returns the reason why it cannot.
pub(crate) fn all() -> Result<Vec<Instructions>, String> {
    let count = |(number, case): (usize, &Case)| {
        let (what, _, contender, _) = *case;
        eprintln!("instructions: {what}, {contender} ...");
        let (once, twice) = (in_child(number, CHECKS)?, in_child(number, 2 * CHECKS)?);
        Ok(Instructions { what, contender, per_check: (twice - once) / CHECKS as f64 })
    };
    CASES.iter().enumerate().map(count).collect()
}

fn in_child(case: usize, checks: usize) -> Result<f64, String> {
    callgrind::count("counted_checks", &["checks-of", &case.to_string(), &checks.to_string()])
}

/// Child process: runs `checks` checks of one case.
pub(crate) fn child(case: usize, checks: usize) {
    let (_, contenders, name, denials) = CASES[case];
    let workload = Workload { order: Order::Hot, denials };
    let limiter = (named(contenders, name).make)(workload.keys());
    limiter.populate(workload.keys(), &|id| workload.taken_before(id));
    black_box(counted_checks(limiter.as_ref(), &workload.steps(STEPS), checks));
}

/// Callgrind counts inside this function, by its name.
#[inline(never)]
fn counted_checks(limiter: &dyn Walk, steps: &Steps, checks: usize) -> usize {
    (0..checks / STEPS).map(|_| limiter.walk(steps, 0..STEPS)).sum()
}

pub(crate) fn markdown(counted: &[Instructions]) -> String {
    let header = ["instructions per check, one hot key", "contender", "instructions"];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    for one in counted {
        let count = format!("{:.0}", one.per_check);
        table.push(vec![one.what.to_owned(), one.contender.to_owned(), count]);
    }
    align(&table)
}
