//! Targets of the Redis store, and whether this run met them.

use serde::Serialize;

use crate::library::{Concurrent, Lone, Way};
use crate::memory::Memory;
use crate::processes::Processes;
use crate::raw::{self, MANY, Measured, SHAPES, Shape};
use crate::units::{NAIVE_1, NAIVE_3, NAIVE_DENIED, OURS_1, OURS_3, OURS_DENIED};

/// Shape in which scripts are compared: it keeps the server busy.
const BUSY: Shape = SHAPES[1];
/// Tasks at which the library is compared.
const MANY_TASKS: usize = 64;
/// Target ratio of a lone check's median to that of a lone call of the naive script.
const LONE_MAX: f64 = 1.0;
const BYTES_MAX: f64 = 165.0;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) wanted: String,
    /// More ambitious bound.
    pub(crate) stretch: Option<f64>,
    /// `None` if this run left it out.
    pub(crate) measured: Option<f64>,
    /// The same ratio by the server's processor time, which a busy machine hardly changes.
    pub(crate) by_processor: Option<f64>,
    /// `None` if it was not measured, or if the two ratios do not agree.
    pub(crate) is_met: Option<bool>,
}

/// Results of one run.
pub(crate) struct Found<'a> {
    pub(crate) raw: &'a [Measured],
    pub(crate) memory: &'a [Memory],
    pub(crate) concurrent: &'a [Concurrent],
    pub(crate) lone: &'a [Lone],
    pub(crate) processes: Option<&'a Processes>,
}

pub(crate) fn all(found: &Found<'_>) -> Vec<Target> {
    let scripts = |one, other| {
        let (one, other) = (raw::find(found.raw, one, BUSY)?, raw::find(found.raw, other, BUSY)?);
        Some((one.checks_per_sec / other.checks_per_sec, other.processor_us / one.processor_us))
    };
    let tasks = |way| found.concurrent.iter().find(|one| one.way == way && one.tasks == MANY_TASKS);
    let library = tasks(Way::Library);
    let against = |way| Some(library?.checks_per_sec / tasks(way)?.checks_per_sec);
    let against_wire = || {
        let single = raw::find(found.raw, OURS_1, MANY)?;
        Some(library?.checks_per_sec / single.checks_per_sec)
    };
    let lone = |way| found.lone.iter().find(|one| one.way == way).map(|one| one.p50_us);
    let later = lone(Way::Library).zip(lone(Way::Naive)).map(|(ours, naive)| ours / naive);
    let bytes = found.memory.iter().find(|one| one.contender == OURS_1);
    let hot = found.processes.map(|it| it.hot.granted as f64 / it.hot.quota as f64);
    vec![
        of_scripts(
            "one tier, allowed: checks/s against the naive script",
            1.15,
            scripts(OURS_1, NAIVE_1),
        )
        .stretch(1.25),
        of_scripts("one tier, denied: the same", 1.4, scripts(OURS_DENIED, NAIVE_DENIED)),
        of_scripts(
            "three tiers in one script against three pipelined naive ones",
            1.7,
            scripts(OURS_3, NAIVE_3),
        )
        .stretch(1.8),
        at_least(
            "library, 64 tasks: against one EVALSHA a check, as many connections",
            2.0,
            against(Way::OwnConnections),
        ),
        at_least(
            "the same, against one EVALSHA a check, all tasks on one connection",
            2.0,
            against(Way::OneConnection),
        ),
        at_least(
            "the same, against the bare bytes of those calls, 64 connections",
            2.0,
            against_wire(),
        ),
        at_most("a lone check's median against a lone call of the naive script", LONE_MAX, later),
        at_most("bytes per bucket", BYTES_MAX, bytes.map(|bytes| bytes.bytes_per_bucket)),
        exactly("three processes, one bucket: granted by quota", hot),
    ]
}

/// Both ratios must reach the bound.
fn of_scripts(what: &'static str, bound: f64, ratios: Option<(f64, f64)>) -> Target {
    let mut target = at_least(what, bound, ratios.map(|(rates, _)| rates));
    target.by_processor = ratios.map(|(_, processor)| processor);
    let agree = |(rates, processor)| (rates >= bound) == (processor >= bound);
    target.is_met = target.is_met.filter(|_| ratios.is_some_and(agree));
    target
}

fn at_least(what: &'static str, bound: f64, measured: Option<f64>) -> Target {
    let is_met = measured.map(|measured| measured >= bound);
    Target {
        what,
        wanted: format!(">= {bound}"),
        stretch: None,
        measured,
        by_processor: None,
        is_met,
    }
}

fn at_most(what: &'static str, bound: f64, measured: Option<f64>) -> Target {
    let is_met = measured.map(|measured| measured <= bound);
    Target {
        what,
        wanted: format!("<= {bound}"),
        stretch: None,
        measured,
        by_processor: None,
        is_met,
    }
}

fn exactly(what: &'static str, measured: Option<f64>) -> Target {
    let is_met = measured.map(|measured| measured == 1.0);
    Target {
        what,
        wanted: "1 exactly".to_owned(),
        stretch: None,
        measured,
        by_processor: None,
        is_met,
    }
}

impl Target {
    fn stretch(mut self, bound: f64) -> Self {
        self.stretch = Some(bound);
        self
    }

    pub(crate) fn row(&self) -> Vec<String> {
        let stretch = self.stretch.map_or(String::new(), |bound| format!(" (stretch {bound})"));
        let least = self.measured.map(|it| it.min(self.by_processor.unwrap_or(it)));
        let met = match (self.is_met, least.zip(self.stretch)) {
            (Some(true), Some((least, stretch))) if least >= stretch => "met, and the stretch",
            (Some(true), _) => "met",
            (Some(false), _) => "MISSED",
            (None, _) if self.measured.is_some() => "unclear: run it on a quieter machine",
            (None, _) => "not measured",
        };
        let [measured, by_processor] = [self.measured, self.by_processor]
            .map(|it| it.map_or("-".to_owned(), |it| format!("{it:.2}")));
        vec![
            self.what.to_owned(),
            self.wanted.clone() + &stretch,
            measured,
            by_processor,
            met.to_owned(),
        ]
    }
}
