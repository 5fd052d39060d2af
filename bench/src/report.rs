//! Report of a run, as Markdown and as JSON.

use serde::Serialize;

use crate::callgrind::NO_VALGRIND;
use crate::instructions::{self, Instructions};
use crate::machine::{self, Machine};
use crate::memory::{self, Memory};
use crate::rounds::Measured;
use crate::scale::{self, Scale};
use crate::table::{self, PEERS, RULES, SERVICES, VARIANTS};
use crate::targets::{self, Target};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) speed: Vec<Measured>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) instructions: Vec<Instructions>,
    /// Reason why there are no instructions; `None` if there are.
    pub(crate) instructions_error: Option<String>,
    pub(crate) scale: Option<Scale>,
    pub(crate) targets: Vec<Target>,
}

impl Report {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("figures are valid JSON")
    }

    /// Parts that could not be measured; without valgrind, instructions are not among them.
    pub(crate) fn failures(&self) -> Vec<String> {
        let parts = [
            ("speed", self.speed.is_empty()),
            ("memory", self.memory.is_empty()),
            ("scale", self.scale.is_none()),
        ];
        let empty = parts.into_iter().filter(|(_, is_empty)| *is_empty);
        let mut failures: Vec<_> =
            empty.map(|(part, _)| format!("{part} has no figures")).collect();
        let error = self.instructions_error.iter().filter(|error| **error != NO_VALGRIND);
        failures.extend(error.map(|error| format!("instructions: {error}")));
        failures
    }

    /// Ready for the README; parts that were left out are not in it.
    pub(crate) fn markdown(&self) -> String {
        let mut parts = vec![machine::markdown(&self.machine)];
        if !self.speed.is_empty() {
            let tables: [&[&str]; 4] = [&PEERS, &RULES, &SERVICES, &VARIANTS];
            parts.extend(tables.map(|columns| table::markdown(&self.speed, columns)));
        }
        if !self.memory.is_empty() {
            parts.push(memory::markdown(&self.memory));
        }
        if !self.instructions.is_empty() {
            parts.push(instructions::markdown(&self.instructions));
        }
        parts.extend(self.instructions_error.iter().map(|error| format!("{error}\n")));
        parts.extend(self.scale.iter().map(scale::markdown));
        parts.push(targets::markdown(&self.targets));
        parts.join("\n")
    }
}
