//! Report of a run, as Markdown and as JSON.

use serde::Serialize;

use crate::align::align;
use crate::doors::{NULL, Place};
use crate::idle::Idle;
use crate::instructions::Instructions;
use crate::machine::{self, Machine};
use crate::measure::{Capacity, Latency};
use crate::scale::USERS;
use crate::targets::Target;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) capacities: Vec<Capacity>,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) idle: Vec<Idle>,
    /// A million users, the server on all cores.
    pub(crate) scale: Vec<Capacity>,
    pub(crate) instructions: Vec<Instructions>,
    pub(crate) targets: Vec<Target>,
    /// Peers that are not on this machine.
    pub(crate) absent: Vec<String>,
    /// Failures: what is missing, and why.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("figures are valid JSON")
    }

    pub(crate) fn markdown(&self) -> String {
        let mut parts = vec![machine::markdown(&self.machine)];
        parts.extend((!self.capacities.is_empty()).then(|| self.capacity()));
        parts.extend((!self.latencies.is_empty()).then(|| self.latency()));
        parts.extend((!self.idle.is_empty()).then(|| self.idle()));
        parts.extend((!self.scale.is_empty()).then(|| self.scale()));
        parts.extend((!self.instructions.is_empty()).then(|| self.instructions()));
        parts.push(self.wanted());
        parts.extend(self.absent.iter().chain(&self.notes).map(|note| format!("{note}\n")));
        parts.join("\n")
    }

    /// Parts that could not be measured.
    pub(crate) fn failures(&self) -> Vec<String> {
        let parts = [
            ("capacity", self.capacities.is_empty()),
            ("latency", self.latencies.is_empty()),
            ("idle", self.idle.is_empty()),
            ("scale", self.scale.is_empty()),
        ];
        let empty = parts.into_iter().filter(|(_, is_empty)| *is_empty);
        let empty = empty.map(|(part, _)| format!("{part} has no figures"));
        self.notes.iter().cloned().chain(empty).collect()
    }

    fn capacity(&self) -> String {
        let header = [
            "closed loop",
            "server",
            "requests/s, thousands",
            "processor us, server",
            "processor us, load",
            "denied",
        ];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.capacities.iter().map(|one| {
            let floor = find(&self.capacities, one.place, NULL);
            let floor = floor.filter(|_| one.contender != NULL);
            let ratio = |figure: fn(&Capacity) -> f64| {
                floor.map_or(String::new(), |floor| {
                    format!(" ({:.2}x)", figure(one) / figure(floor))
                })
            };
            vec![
                one.place.name(),
                one.contender.to_owned(),
                format!("{:.1}{}", one.requests_per_sec / 1e3, ratio(|it| it.requests_per_sec)),
                format!("{:.2}{}", one.server_us, ratio(|it| it.server_us)),
                format!("{:.2}", one.load_us),
                format!("{:.0} %", one.denied_share * 100.0),
            ]
        }));
        align(&table)
    }

    fn latency(&self) -> String {
        let header = ["open loop", "requests/s", "server", "p50 us", "p99 us"];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.latencies.iter().map(|one| {
            vec![
                one.place.name(),
                one.place.door.rate().to_string(),
                one.contender.to_owned(),
                format!("{:.0}", one.p50_us),
                format!("{:.0}", one.p99_us),
            ]
        }));
        align(&table)
    }

    fn idle(&self) -> String {
        let header =
            ["idle connections", "of them", "p50 us, without", "with", "p99 us, without", "with"];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.idle.iter().map(|one| {
            let place = Place { door: one.door, depth: 1 };
            let figures = one.p50_us.iter().chain(&one.p99_us).map(|us| format!("{us:.0}"));
            [place.name(), one.connections.to_string()].into_iter().chain(figures).collect()
        }));
        align(&table)
    }

    fn scale(&self) -> String {
        let header = [
            "server on all cores",
            "users",
            "requests/s, thousands",
            "processor us, server",
            "processor us, load",
            "denied",
        ];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.scale.iter().map(|one| {
            vec![
                one.place.name(),
                USERS.to_string(),
                format!("{:.1}", one.requests_per_sec / 1e3),
                format!("{:.2}", one.server_us),
                format!("{:.2}", one.load_us),
                format!("{:.0} %", one.denied_share * 100.0),
            ]
        }));
        align(&table)
    }

    fn instructions(&self) -> String {
        let header = ["one connection, one core", "instructions per request", "before", "ratio"];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.instructions.iter().map(|one| {
            let base = one.base.map_or(String::new(), |base| format!("{base:.0}"));
            let ratio = one.base.map(|base| format!("{:.3}x", one.per_request / base));
            let count = format!("{:.0}", one.per_request);
            vec![one.place.name(), count, base, ratio.unwrap_or_default()]
        }));
        align(&table)
    }

    fn wanted(&self) -> String {
        let mut table = vec![["target", "wanted", "measured", ""].map(str::to_owned).to_vec()];
        table.extend(self.targets.iter().map(Target::row));
        align(&table)
    }
}

pub(crate) fn find<'a>(all: &'a [Capacity], place: Place, contender: &str) -> Option<&'a Capacity> {
    all.iter().find(|one| one.place == place && one.contender == contender)
}
