//! Targets of speed and size, mostly as ratios within one run, and the result of this run.

use serde::Serialize;

use crate::align::align;
use crate::contenders::{
    CHECK, CHECK_10, CHECK_1000, GOVERNOR, SERVICE_10, SERVICE_1000, SLUICEGATE,
};
use crate::memory::{FEW_KEYS, MANY_KEYS, Memory};
use crate::rounds::Measured;
use crate::scale::{Scale, WANTED_PER_SEC};
use crate::speed::{FOUR, THREE};
use crate::table::find;

/// A target and its result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    what: String,
    wanted: Bound,
    unit: Unit,
    /// `None` if this run left it out.
    measured: Option<f64>,
    is_met: Option<bool>,
    /// True if all rounds of one of its times were disturbed.
    is_disturbed: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Ratio,
    Bytes,
    PerSecond,
}

impl Target {
    fn new(what: impl Into<String>, wanted: Bound, unit: Unit, measured: Option<f64>) -> Self {
        let is_met = measured.map(|measured| match wanted {
            Bound::AtMost(bound) => measured <= bound,
            Bound::AtLeast(bound) => measured >= bound,
        });
        Self { what: what.into(), wanted, unit, measured, is_met, is_disturbed: false }
    }

    /// Target for the ratio of two times.
    fn of_times(
        what: impl Into<String>,
        wanted: Bound,
        one: Option<&Measured>,
        other: Option<&Measured>,
    ) -> Self {
        let times = one.zip(other);
        let ratio = times.map(|(one, other)| one.ns_per_check / other.ns_per_check);
        let is_disturbed = times.is_some_and(|(one, other)| one.rounds == 0 || other.rounds == 0);
        Self { is_disturbed, ..Self::new(what, wanted, Unit::Ratio, ratio) }
    }

    fn row(&self) -> Vec<String> {
        let wanted = match self.wanted {
            Bound::AtMost(bound) => format!("<= {}", self.unit.text(bound)),
            Bound::AtLeast(bound) => format!(">= {}", self.unit.text(bound)),
        };
        let disturbed = if self.is_disturbed { "~" } else { "" };
        let text = |measured| format!("{disturbed}{}", self.unit.text(measured));
        let measured = self.measured.map_or("-".to_owned(), text);
        let verdict = match self.is_met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not measured",
        };
        vec![self.what.clone(), wanted, measured, verdict.to_owned()]
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}x"),
            Self::Bytes => format!("{value:.1} bytes"),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

/// All targets.
pub(crate) fn all(speed: &[Measured], memory: &[Memory], scale: Option<&Scale>) -> Vec<Target> {
    let mut targets = of_speed(speed);
    for (keys, name) in [(FEW_KEYS, "1M"), (MANY_KEYS, "10M")] {
        let of_sluicegate = |one: &&Memory| one.keys == keys && one.contender == SLUICEGATE;
        let measured = memory.iter().find(of_sluicegate).map(|one| one.allocated_bytes_per_key);
        let what = format!("bytes per idle key at {name} keys");
        targets.push(Target::new(what, Bound::AtMost(64.0), Unit::Bytes, measured));
    }
    let what = "1M active users, three tiers: checks per second held";
    let measured = scale.map(|scale| scale.checks_per_sec);
    targets.push(Target::new(what, Bound::AtLeast(WANTED_PER_SEC), Unit::PerSecond, measured));
    targets
}

fn of_speed(speed: &[Measured]) -> Vec<Target> {
    let time = |workload: &str, threads, contender| find(speed, workload, threads, contender);
    let against_governor = |bound, workload: &str| {
        let what = format!("{workload}: time against governor's");
        let (one, other) = (time(workload, 1, SLUICEGATE), time(workload, 1, GOVERNOR));
        Target::of_times(what, Bound::AtMost(bound), one, other)
    };
    let scaling = |bound, workload: &str| {
        let what = format!("{workload}: throughput of two threads against one");
        let (one, two) = (time(workload, 1, SLUICEGATE), time(workload, 2, SLUICEGATE));
        Target::of_times(what, Bound::AtLeast(bound), one, two)
    };
    vec![
        against_governor(0.5, "1M keys, uniform, allowed"),
        against_governor(0.5, "1M keys, Zipf, allowed"),
        against_governor(0.8, "one hot key, allowed"),
        scaling(1.8, "1M keys, uniform, allowed"),
        scaling(1.0, "one hot key, denied"),
        against_governor(0.8, THREE),
        Target::of_times(
            "the whole check(&Request) against its raw charge",
            Bound::AtMost(2.0),
            time(THREE, 1, CHECK),
            time(THREE, 1, SLUICEGATE),
        ),
        Target::of_times(
            "1,000 rules of other endpoints and plans against ten rules",
            Bound::AtMost(1.5),
            time(THREE, 1, CHECK_1000),
            time(THREE, 1, CHECK_10),
        ),
        Target::of_times(
            "1,000 rules and 100,000 overrides against ten rules",
            Bound::AtMost(1.5),
            time(FOUR, 1, SERVICE_1000),
            time(FOUR, 1, SERVICE_10),
        ),
    ]
}

pub(crate) fn markdown(targets: &[Target]) -> String {
    let mut table = vec![["target", "wanted", "measured", "met"].map(str::to_owned).to_vec()];
    table.extend(targets.iter().map(Target::row));
    align(&table)
}
