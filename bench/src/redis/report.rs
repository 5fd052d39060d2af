//! Report of a run, as Markdown and as JSON.

use serde::Serialize;

use crate::align::align;
use crate::keys::SUBJECTS;
use crate::library::{Concurrent, Lone, TASKS, Way};
use crate::machine::{self, Machine};
use crate::memory::Memory;
use crate::processes::Processes;
use crate::raw::{self, MANY, Measured, SHAPES, Shape};
use crate::targets::Target;
use crate::units::NAIVE_1;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) redis: String,
    pub(crate) raw: Vec<Measured>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) concurrent: Vec<Concurrent>,
    pub(crate) lone: Vec<Lone>,
    pub(crate) processes: Option<Processes>,
    pub(crate) targets: Vec<Target>,
    /// Contenders left out, with the reason.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("figures are valid JSON")
    }

    pub(crate) fn markdown(&self) -> String {
        let mut parts = vec![
            machine::markdown(&self.machine),
            format!("Redis {}, {SUBJECTS} keys for each contender and tier.\n", self.redis),
        ];
        let is_left_out = self.raw.is_empty();
        parts.extend((!is_left_out).then(|| self.commands()));
        parts.extend((!self.memory.is_empty()).then(|| self.buckets()));
        parts.extend((!self.concurrent.is_empty()).then(|| self.tasks()));
        parts.extend((!self.lone.is_empty()).then(|| self.lone_checks()));
        parts.extend(self.processes.iter().map(processes));
        parts.push(self.wanted());
        parts.extend(self.notes.iter().map(|note| format!("{note}\n")));
        parts.join("\n")
    }

    /// Parts that could not be measured; only redis-cell may be absent.
    pub(crate) fn failures(&self) -> Vec<String> {
        let parts = [
            ("commands", self.raw.is_empty()),
            ("memory", self.memory.is_empty()),
            ("library", self.concurrent.is_empty() || self.lone.is_empty()),
            ("processes", self.processes.is_none()),
        ];
        let empty = parts.into_iter().filter(|(_, is_empty)| *is_empty);
        let mut failures: Vec<_> =
            empty.map(|(part, _)| format!("{part} has no figures")).collect();
        if !failures.is_empty() {
            failures.extend(self.notes.iter().cloned());
        }
        let is_exact = self.processes.as_ref().is_none_or(|it| it.hot.granted == it.hot.quota);
        failures.extend((!is_exact).then(|| "three processes did not grant the quota".to_owned()));
        failures
    }

    /// A row per contender, a column per depth; the ratio is to the naive script in the same shape.
    fn commands(&self) -> String {
        let shapes: Vec<_> = SHAPES.into_iter().chain([MANY]).collect();
        let mut header = vec!["checks/s, thousands".to_owned()];
        header.extend(shapes.iter().map(|shape| {
            let Shape { depth, connections } = shape;
            format!("depth {depth}, {connections} conn.")
        }));
        header.extend(["server us", "processor us"].map(str::to_owned));
        let mut table = vec![header];
        let mut names: Vec<_> = self.raw.iter().map(|one| one.contender).collect();
        names.dedup();
        for name in names {
            let mut row = vec![name.to_owned()];
            row.extend(shapes.iter().map(|shape| self.cell(name, *shape)));
            let busy = raw::find(&self.raw, name, SHAPES[1]);
            row.push(busy.map_or("-".to_owned(), |one| format!("{:.2}", one.server_us)));
            row.push(busy.map_or("-".to_owned(), |one| format!("{:.2}", one.processor_us)));
            table.push(row);
        }
        align(&table)
    }

    fn cell(&self, name: &str, shape: Shape) -> String {
        let Some(one) = raw::find(&self.raw, name, shape) else { return "-".to_owned() };
        let naive = raw::find(&self.raw, NAIVE_1, shape).filter(|_| name != NAIVE_1);
        let ratio = naive.map_or(String::new(), |naive| {
            format!(" ({:.2}x)", one.checks_per_sec / naive.checks_per_sec)
        });
        format!("{:.1}{ratio}", one.checks_per_sec / 1e3)
    }

    fn buckets(&self) -> String {
        let mut table = vec![["contender", "bytes per bucket"].map(str::to_owned).to_vec()];
        table.extend(
            self.memory
                .iter()
                .map(|one| vec![one.contender.to_owned(), format!("{:.1}", one.bytes_per_bucket)]),
        );
        align(&table)
    }

    fn tasks(&self) -> String {
        let mut header = vec!["checks/s, thousands, by tasks at once".to_owned()];
        header.extend(TASKS.map(|tasks| tasks.to_string()));
        let mut table = vec![header];
        for way in [Way::Library, Way::OwnConnections, Way::OneConnection] {
            let of =
                |tasks| self.concurrent.iter().find(|one| one.way == way && one.tasks == tasks);
            let mut row = vec![way.name().to_owned()];
            row.extend(TASKS.map(|tasks| {
                of(tasks).map_or("-".to_owned(), |one| {
                    let batch = format!(" ({:.1} a call)", one.batch);
                    let batch = if way == Way::Library { batch } else { String::new() };
                    format!("{:.1}{batch}", one.checks_per_sec / 1e3)
                })
            }));
            table.push(row);
        }
        align(&table)
    }

    fn lone_checks(&self) -> String {
        let mut table = vec![["a lone check, us", "p50", "p99"].map(str::to_owned).to_vec()];
        table.extend(self.lone.iter().map(|one| {
            let figures = [one.p50_us, one.p99_us].map(|us| format!("{us:.0}"));
            [one.way.name().to_owned()].into_iter().chain(figures).collect()
        }));
        align(&table)
    }

    fn wanted(&self) -> String {
        let mut table = vec![
            ["target", "wanted", "measured", "by processor time", ""].map(str::to_owned).to_vec(),
        ];
        table.extend(self.targets.iter().map(Target::row));
        align(&table)
    }
}

fn processes(processes: &Processes) -> String {
    let Processes { processes, connections, checks_per_sec, hot } = processes;
    format!(
        "{processes} server processes on one Redis, {connections} connections over HTTP: {:.1} thousand \
         checks/s together; of {} asked of one bucket they granted {}, its quota is {}\n",
        checks_per_sec / 1e3,
        hot.asked,
        hot.granted,
        hot.quota
    )
}
