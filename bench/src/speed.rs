//! Timed workloads and their contenders.

use std::time::Duration;

use crate::contenders::{Contender, FOUR_TIERS, SINGLE_TIER, THREE_TIERS, UNKEYED};
use crate::rounds::{Effort, Measured, measure};
use crate::workloads::{Denials, Order, Workload};

/// The name of the three-tier workload.
pub(crate) const THREE: &str = "three tiers, 1M users";

/// The name of the four-tier workload.
pub(crate) const FOUR: &str = "four tiers, 1M users";

const WORKLOADS: [(Order, Denials); 7] = [
    (Order::Hot, Denials::None),
    (Order::Hot, Denials::Half),
    (Order::Hot, Denials::All),
    (Order::Uniform, Denials::None),
    (Order::Uniform, Denials::Half),
    (Order::Zipf, Denials::None),
    (Order::Zipf, Denials::Half),
];
const THREADS: [usize; 2] = [1, 2];
const ROUND: Duration = Duration::from_millis(2);

/// Parts to time.
pub(crate) struct Choice<'a> {
    pub(crate) turns: usize,
    /// A part of the names of workloads.
    pub(crate) workloads: &'a str,
    /// Parts of the names of contenders.
    pub(crate) contenders: &'a [String],
}

/// Times the chosen contenders on the chosen workloads.
pub(crate) fn all(choice: &Choice<'_>) -> Vec<Measured> {
    let mut measured = Vec::new();
    for (order, denials) in WORKLOADS {
        let workload = Workload { order, denials };
        let unkeyed = if order == Order::Hot { UNKEYED } else { &[] };
        let contenders = SINGLE_TIER.iter().chain(unkeyed);
        measured.extend(choice.measure(&workload.name(), workload, contenders));
    }
    let workload = Workload { order: Order::Uniform, denials: Denials::None };
    measured.extend(choice.measure(THREE, workload, THREE_TIERS));
    measured.extend(choice.measure(FOUR, workload, FOUR_TIERS));
    measured
}

impl Choice<'_> {
    fn measure(
        &self,
        name: &str,
        workload: Workload,
        contenders: impl IntoIterator<Item = &'static Contender>,
    ) -> Vec<Measured> {
        if !name.contains(self.workloads) {
            return Vec::new();
        }
        let is_chosen = |contender: &&Contender| {
            self.contenders.iter().any(|part| contender.name.contains(part))
        };
        let contenders: Vec<_> = contenders.into_iter().filter(is_chosen).collect();
        eprintln!("speed: {name} ...");
        let effort = Effort { turns: self.turns, round: ROUND };
        measure(name, workload, &contenders, &THREADS, effort)
    }
}
