//! Targets of the doors, and whether this run met them.

use serde::Serialize;

use crate::doors::{Door, NULL, Place, SLUICEGATE, THROTTLECRAB};
use crate::idle::Idle;
use crate::measure::Capacity;
use crate::report::find;
use crate::scale::{USERS, WANTED_PER_SEC};

/// Maximum ratio of the processor time of a request to that of the null server.
const PROCESSOR_MAX: f64 = 1.15;
/// Minimum ratio of requests per second to those of the null server, by depth.
const RESP_MIN: [(usize, f64); 3] = [(1, 0.9), (16, 0.7), (64, 0.7)];
/// Maximum ratio of p99 with idle connections to p99 without.
const IDLE_MAX: f64 = 2.0;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) wanted: String,
    /// `None` if this run left it out.
    pub(crate) measured: Option<f64>,
    pub(crate) is_met: Option<bool>,
}

/// Results of one run.
pub(crate) struct Found<'a> {
    pub(crate) capacities: &'a [Capacity],
    pub(crate) idle: &'a [Idle],
    pub(crate) scale: &'a [Capacity],
}

pub(crate) fn all(found: &Found<'_>) -> Vec<Target> {
    let mut targets = Vec::new();
    for door in [Door::Http, Door::Grpc] {
        for place in door.places() {
            let by = |other, figure: fn(&Capacity) -> f64| ratio(found, place, other, figure);
            let name = place.name();
            targets.push(at_most(
                format!("{name}, 3 tiers: processor time of a request, by null's"),
                PROCESSOR_MAX,
                by(NULL, |it| it.server_us),
            ));
            targets.push(at_least(
                format!("{name}: requests/s, by throttlecrab's (one bucket)"),
                1.0,
                by(THROTTLECRAB, |it| it.requests_per_sec),
            ));
        }
    }
    for (depth, least) in RESP_MIN {
        let place = Place { door: Door::Resp, depth };
        let by_null = ratio(found, place, NULL, |it| it.requests_per_sec);
        targets.push(at_least(format!("{}: requests/s, by null's", place.name()), least, by_null));
    }
    for idle in found.idle {
        let [without, with] = idle.p99_us;
        let what = format!(
            "{}: p99 beside {} idle connections, by that without",
            Place { door: idle.door, depth: 1 }.name(),
            idle.connections
        );
        targets.push(at_most(what, IDLE_MAX, Some(with / without)));
    }
    for scale in found.scale {
        let what = format!("{}, {USERS} users: requests/s, thousands", scale.place.name());
        let rate = scale.requests_per_sec / 1e3;
        targets.push(at_least(what, WANTED_PER_SEC / 1e3, Some(rate)));
    }
    targets
}

fn ratio(
    found: &Found<'_>,
    place: Place,
    other: &str,
    figure: fn(&Capacity) -> f64,
) -> Option<f64> {
    let ours = find(found.capacities, place, SLUICEGATE)?;
    Some(figure(ours) / figure(find(found.capacities, place, other)?))
}

fn at_least(what: String, bound: f64, measured: Option<f64>) -> Target {
    let is_met = measured.map(|measured| measured >= bound);
    Target { what, wanted: format!(">= {bound}"), measured, is_met }
}

fn at_most(what: String, bound: f64, measured: Option<f64>) -> Target {
    let is_met = measured.map(|measured| measured <= bound);
    Target { what, wanted: format!("<= {bound}"), measured, is_met }
}

impl Target {
    pub(crate) fn row(&self) -> Vec<String> {
        let met = match self.is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        let measured = self.measured.map_or("-".to_owned(), |it| format!("{it:.2}"));
        vec![self.what.clone(), self.wanted.clone(), measured, met.to_owned()]
    }
}
