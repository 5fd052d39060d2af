//! Measures contenders alternately in many rounds, so that other load of the machine affects all alike.

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cores;
use crate::doors::Place;
use crate::load::{Load, Plan, Tally};
use crate::requests::Requests;
use crate::servers::Server;
use crate::stats::{median, quantile};

/// Warm-up before a round is timed, because the other contenders' turns have replaced the caches.
const WARM_UP: Duration = Duration::from_millis(100);

/// A contender's door under load.
pub(crate) struct Entrant<'a> {
    pub(crate) contender: &'static str,
    pub(crate) place: Place,
    pub(crate) pid: u32,
    plan: Plan<'a>,
    /// Number of the first request of the next turn.
    next: usize,
}

/// Capacity of a door, by the median of its rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Capacity {
    pub(crate) contender: &'static str,
    pub(crate) place: Place,
    pub(crate) requests_per_sec: f64,
    /// Processor time of the server for one request, in microseconds.
    pub(crate) server_us: f64,
    pub(crate) load_us: f64,
    pub(crate) denied_share: f64,
}

/// Latency of a door, by the median of its rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) contender: &'static str,
    pub(crate) place: Place,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

struct Round {
    seconds: f64,
    server: Duration,
    load: Duration,
    tally: Tally,
}

/// Measures the capacity of every contender.
pub(crate) fn capacities(
    entrants: &mut [Entrant<'_>],
    rounds: usize,
    length: Duration,
    notes: &mut Vec<String>,
) -> Vec<Capacity> {
    in_turn(entrants, rounds, notes, |entrant| entrant.closed(length))
        .into_iter()
        .map(|(entrant, rounds)| {
            let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
            Capacity {
                contender: entrant.contender,
                place: entrant.place,
                requests_per_sec: of(|round| round.tally.answers as f64 / round.seconds),
                server_us: of(|round| micros(round.server) / round.tally.answers as f64),
                load_us: of(|round| micros(round.load) / round.tally.answers as f64),
                denied_share: of(|round| round.tally.denied as f64 / round.tally.answers as f64),
            }
        })
        .collect()
}

/// Measures the latency of every contender, at the rate of its door.
pub(crate) fn latencies(
    entrants: &mut [Entrant<'_>],
    rounds: usize,
    length: Duration,
    notes: &mut Vec<String>,
) -> Vec<Latency> {
    let quantiles = |entrant: &mut Entrant<'_>| {
        let timetable = timetable(entrant.place.door.rate(), length);
        let (_, mut ns) = entrant.turn(|load| load.open(&timetable))?;
        // Drops the first, which had cold caches.
        ns.drain(..ns.len() / 10);
        let at = |share| quantile(ns.iter().map(|ns| *ns as f64 / 1e3), share);
        Ok([at(0.5), at(0.99)])
    };
    in_turn(entrants, rounds, notes, quantiles)
        .into_iter()
        .map(|(entrant, rounds)| Latency {
            contender: entrant.contender,
            place: entrant.place,
            p50_us: median(rounds.iter().map(|[p50, _]| *p50)),
            p99_us: median(rounds.iter().map(|[_, p99]| *p99)),
        })
        .collect()
}

/// Runs the rounds of all contenders. A contender that fails is left out from then on, with a note.
fn in_turn<'e, 'a, T>(
    entrants: &'e mut [Entrant<'a>],
    rounds: usize,
    notes: &mut Vec<String>,
    mut turn: impl FnMut(&mut Entrant<'a>) -> io::Result<T>,
) -> Vec<(&'e Entrant<'a>, Vec<T>)> {
    let mut done: Vec<_> = entrants.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=rounds {
        eprintln!("  round {round} of {rounds}");
        for (entrant, done) in entrants.iter_mut().zip(&mut done) {
            let Ok(figures) = done else { continue };
            match turn(entrant) {
                Ok(figure) => figures.push(figure),
                Err(error) => *done = Err(error),
            }
        }
    }
    let mut kept = Vec::new();
    for (entrant, done) in entrants.iter().zip(done) {
        match done {
            Ok(figures) => kept.push((entrant, figures)),
            Err(error) => notes.push(format!(
                "{}, {} was left out: {error}.",
                entrant.contender,
                entrant.place.name()
            )),
        }
    }
    kept
}

impl<'a> Entrant<'a> {
    /// Load of a place at a server. If the server is new, every request is sent once.
    pub(crate) fn new(
        server: &Server,
        place: Place,
        requests: &'a Requests,
        is_new: bool,
    ) -> io::Result<Self> {
        let dialect = place.door.dialect(server.name);
        let dialect = dialect.ok_or_else(|| io::Error::other("there is no such door"))?;
        let (port, protocol) = (server.port(place.door), dialect.protocol());
        let plan = Plan { port, protocol, shape: place.shape(), requests };
        let mut entrant = Self { contender: server.name, place, pid: server.pid(), plan, next: 0 };
        if is_new {
            entrant.turn(Load::all)?;
        }
        Ok(entrant)
    }

    /// Opens the connections of one turn and closes them after it: a server closes idle connections, and the other
    /// contenders' turns take longer than its timeout.
    fn turn<T>(&mut self, run: impl FnOnce(&mut Load<'a>) -> io::Result<T>) -> io::Result<T> {
        let mut load = Load::connect(self.plan, self.next)?;
        let result = run(&mut load);
        self.next = load.next();
        result
    }

    fn closed(&mut self, length: Duration) -> io::Result<Round> {
        let pid = self.pid;
        self.turn(|connections| {
            connections.closed_for(WARM_UP)?;
            let (server, load, started) = (cores::time_of(pid), cores::own_time(), Instant::now());
            let tally = connections.closed_for(length)?;
            Ok(Round {
                seconds: started.elapsed().as_secs_f64(),
                server: cores::time_of(pid).saturating_sub(server),
                load: cores::own_time().saturating_sub(load),
                tally,
            })
        })
    }
}

/// Due times of requests in nanoseconds: a Poisson process at this rate, the same for every contender.
fn timetable(rate: u64, length: Duration) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(11);
    let gap_ns = 1e9 / rate as f64;
    let mut at = 0.0;
    std::iter::repeat_with(|| {
        at -= gap_ns * (1.0 - random.f64()).ln();
        at as u64
    })
    .take_while(|at| u128::from(*at) < length.as_nanos())
    .collect()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
