//! Commands on the wire: short rounds of all contenders alternately, so that other load of the machine affects
//! all of them alike.

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::quiet::quiet;
use crate::server::Server;
use crate::stats::{median, quantile};
use crate::units::{NAIVE_1, OURS_1, Units};
use crate::wire::{Wire, write_time};

/// Length of a round: short, so that many rounds run undisturbed.
const ROUND: Duration = Duration::from_millis(4);
/// Number of empty rounds, which measure the cost of counting to the server.
const EMPTY_ROUNDS: usize = 50;

/// Units in flight on a connection, and number of connections: a second one keeps the server busy while the
/// client reads.
pub(crate) const SHAPES: [Shape; 3] = [
    Shape { depth: 1, connections: 1 },
    Shape { depth: 16, connections: 2 },
    Shape { depth: 64, connections: 2 },
];
/// One request at a time on many connections.
pub(crate) const MANY: Shape = Shape { depth: 1, connections: 64 };

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Shape {
    pub(crate) depth: usize,
    pub(crate) connections: usize,
}

/// Result of a contender in one shape.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) contender: &'static str,
    pub(crate) shape: Shape,
    /// Summary of the quiet rounds.
    pub(crate) checks_per_sec: f64,
    /// Quartiles of all rounds.
    pub(crate) quartiles: [f64; 2],
    /// Time of the server for one check in microseconds, by `INFO commandstats`.
    pub(crate) server_us: f64,
    /// Processor time of the server for one check in microseconds, including reading and writing.
    pub(crate) processor_us: f64,
}

struct Entrant<'a> {
    units: &'a Units,
    shape: Shape,
    rounds: Vec<Round>,
}

struct Round {
    checks: f64,
    checks_per_sec: f64,
    server_us: f64,
    processor_us: f64,
}

/// Measures all contenders in every shape.
pub(crate) fn measure(server: &mut Server, all: &mut [Units], turns: usize) -> Vec<Measured> {
    let mut random = fastrand::Rng::with_seed(12);
    let mut wires: Vec<_> = (0..MANY.connections).map(|_| server.wire()).collect();
    let mut measured: Vec<Vec<Round>> = Vec::new();
    let shapes: Vec<_> = (0..all.len())
        .flat_map(|index| {
            let many = [OURS_1, NAIVE_1].contains(&all[index].name).then_some(MANY);
            SHAPES.into_iter().chain(many).map(move |shape| (index, shape))
        })
        .collect();
    measured.resize_with(shapes.len(), Vec::new);
    let counting_us = median((0..EMPTY_ROUNDS).map(|_| {
        let before = server.start_counting();
        server.stop_counting(&before, "").processor_us
    }));
    for _ in 0..turns {
        for ((index, shape), rounds) in shapes.iter().zip(&mut measured) {
            let mut round = round(server, &mut wires, &mut all[*index], *shape, &mut random);
            round.processor_us -= counting_us / round.checks;
            rounds.push(round);
        }
    }
    shapes
        .into_iter()
        .zip(measured)
        .map(|((index, shape), rounds)| Entrant { units: &all[index], shape, rounds }.summary())
        .collect()
}

/// Sends everything once, so that all buckets are stored and those to be denied are empty.
pub(crate) fn populate(wire: &mut Wire, units: &mut Units) {
    const DEPTH: usize = 32;
    let mut at = 0;
    while at < units.ends.len() {
        let count = DEPTH.min(units.ends.len() - at);
        send(wire, units, at, count);
        receive(wire, units, count);
        at += count;
    }
}

fn round(
    server: &mut Server,
    wires: &mut [Wire],
    units: &mut Units,
    shape: Shape,
    random: &mut fastrand::Rng,
) -> Round {
    let Shape { depth, connections } = shape;
    let wires = &mut wires[..connections];
    let mut at = random.usize(..units.ends.len());
    let mut next = |units: &Units| {
        if at + depth > units.ends.len() {
            at = 0;
        }
        at += depth;
        at - depth
    };
    let before = server.start_counting();
    let started = Instant::now();
    for wire in wires.iter_mut() {
        let first = next(units);
        send(wire, units, first, depth);
    }
    let (mut sent, mut received, mut granted, mut turn) = (connections, 0, 0, 0);
    let mut open = true;
    while received < sent {
        let wire = &mut wires[turn];
        turn = (turn + 1) % connections;
        granted += receive(wire, units, depth);
        received += 1;
        open = open && started.elapsed() < ROUND;
        if open {
            let first = next(units);
            send(wire, units, first, depth);
            sent += 1;
        }
    }
    let elapsed = started.elapsed();
    let used = server.stop_counting(&before, units.command);
    let checks = received * depth * units.checks;
    let expected = if units.is_denied { 0 } else { checks };
    assert_eq!(granted, expected, "{}: granted of {checks} checks", units.name);
    let checks = checks as f64;
    Round {
        checks,
        checks_per_sec: checks / elapsed.as_secs_f64(),
        server_us: used.command_us / checks,
        processor_us: used.processor_us / checks,
    }
}

fn send(wire: &mut Wire, units: &mut Units, first: usize, count: usize) {
    if !units.times.is_empty() {
        for index in first * units.commands..(first + count) * units.commands {
            write_time(&mut units.bytes[units.times[index]..]);
        }
    }
    let start = first.checked_sub(1).map_or(0, |before| units.ends[before]);
    let sent = wire.send(&units.bytes[start..units.ends[first + count - 1]]);
    fail(sent, units);
}

/// Waits for the answers to `count` units, and returns the number of granted checks: a unit grants as many as all
/// of its commands do.
fn receive(wire: &mut Wire, units: &Units, count: usize) -> usize {
    let mut granted = 0;
    for _ in 0..count {
        let mut least = usize::MAX;
        for _ in 0..units.commands {
            least = least.min((units.granted)(fail(wire.answer(), units)));
        }
        granted += least;
    }
    granted
}

fn fail<T>(result: io::Result<T>, units: &Units) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", units.name))
}

impl Entrant<'_> {
    fn summary(self) -> Measured {
        let turns: Vec<_> = self.rounds.iter().map(|round| round.checks_per_sec).collect();
        Measured {
            contender: self.units.name,
            shape: self.shape,
            checks_per_sec: quiet(turns.iter().copied()),
            quartiles: [0.25, 0.75].map(|share| quantile(turns.iter().copied(), share)),
            server_us: median(self.rounds.iter().map(|round| round.server_us)),
            processor_us: median(self.rounds.iter().map(|round| round.processor_us)),
        }
    }
}

pub(crate) fn find<'a>(all: &'a [Measured], contender: &str, shape: Shape) -> Option<&'a Measured> {
    all.iter().find(|one| one.contender == contender && one.shape == shape)
}
