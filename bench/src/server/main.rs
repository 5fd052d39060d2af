//! Sluicegate's front doors compared with null servers and peers over real sockets, in one run on one machine, as
//! ratios that hold on other machines too.

#[path = "../align.rs"]
mod align;
mod cores;
mod doors;
mod idle;
mod instructions;
mod load;
#[path = "../machine.rs"]
mod machine;
mod measure;
mod messages;
mod null;
mod once;
mod report;
mod requests;
mod scale;
mod servers;
#[path = "../stats.rs"]
mod stats;
mod targets;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::doors::{Door, SLUICEGATE};
use crate::idle::Idle;
use crate::instructions::Instructions;
use crate::measure::{Capacity, Entrant};
use crate::null::Answers;
use crate::report::Report;
use crate::requests::{Dialect, Requests};
use crate::servers::Server;
use crate::targets::Found;

/// As in the service: threads allocate and free without waiting for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// File with the figures of the last run.
const REPORT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/report-server.json");

/// Number of users, unless a part says otherwise.
const SUBJECTS: usize = 100_000;

/// Measures Sluicegate's front doors and prints tables, ready for the README.
#[derive(Debug, Parser)]
struct Options {
    /// Prints every figure as JSON instead.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds: for a first look.
    #[arg(long)]
    quick: bool,
    /// One short round of everything, which fails if a part cannot be measured: for tests. The figures mean nothing.
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Parts to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "capacity,latency,idle,scale")]
    parts: Vec<Part>,
    /// Another build of the service, to compare the part `instructions` with.
    #[arg(long, value_name = "PROGRAM")]
    base: Option<PathBuf>,
    /// Doors to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "http,grpc,resp,resp-check")]
    doors: Vec<Door>,
    /// Runs a null server with the answers in this folder, on four ports.
    #[arg(long, hide = true, num_args = 5)]
    null: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Capacity,
    Latency,
    Idle,
    Scale,
    /// Instructions per request, counted by callgrind; takes minutes.
    Instructions,
}

/// Number and length of rounds.
struct Effort {
    rounds: usize,
    round: Duration,
}

const SMOKE: Effort = Effort { rounds: 1, round: Duration::from_millis(100) };
const QUICK: Effort = Effort { rounds: 3, round: Duration::from_millis(300) };
const FULL: Effort = Effort { rounds: 9, round: Duration::from_millis(1000) };

fn main() -> ExitCode {
    let options = Options::parse();
    if let [folder, ports @ ..] = &options.null[..] {
        let ports = [0, 1, 2, 3].map(|place: usize| ports[place].parse().unwrap_or(0));
        let served = null::serve(&PathBuf::from(folder), ports);
        eprintln!("{served:?}");
        return ExitCode::FAILURE;
    }
    match run(&options) {
        Ok(report) if options.smoke => {
            println!("{}", report.markdown());
            let failures = report.failures();
            failures.iter().for_each(|failure| eprintln!("error: {failure}"));
            if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(report) => {
            if let Err(error) = fs::write(REPORT_FILE, report.json()) {
                eprintln!("{REPORT_FILE}: {error}");
            }
            println!("{}", if options.json { report.json() } else { report.markdown() });
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chosen parts in order.
fn run(options: &Options) -> Result<Report, String> {
    let load_before = machine::load();
    let wants = |part| options.parts.contains(&part);
    let effort = match options {
        Options { smoke: true, .. } => SMOKE,
        Options { quick: true, .. } => QUICK,
        _ => FULL,
    };
    let mut absent = vec!["limitador-server was left out: it is not on crates.io.".to_owned()];
    let mut notes = Vec::new();

    eprintln!("starting servers ...");
    let ours = Server::sluicegate(true)?;
    let mut answers = Answers::default();
    let mut doors = Vec::new();
    for door in options.doors.iter().copied() {
        match answer_of(&ours, door) {
            Ok(answer) => {
                answers.set(door, answer);
                doors.push(door);
            }
            Err(error) => notes.push(format!("{door:?} was left out: {error}.")),
        }
    }
    let mut servers = vec![Server::null(true, &answers)?, ours];
    match Server::throttlecrab(true) {
        Ok(server) => servers.push(server),
        Err(error) if !servers::has_throttlecrab() => {
            absent.push(format!("throttlecrab was left out: {error}."));
        }
        Err(error) => notes.push(format!("throttlecrab was left out: {error}.")),
    }
    cores::stay();

    let requests = Catalogue::new(&servers, &doors);
    let mut entrants = entrants(&servers, &doors, &requests, &mut notes);
    let (mut capacities, mut latencies) = (Vec::new(), Vec::new());
    if wants(Part::Capacity) {
        eprintln!("capacity ...");
        capacities = measure::capacities(&mut entrants, effort.rounds, effort.round, &mut notes);
    }
    if wants(Part::Latency) {
        eprintln!("latency ...");
        // Latency is not measured over pipelines.
        entrants.retain(|entrant| entrant.place.depth == 1 || entrant.place.door == Door::Grpc);
        latencies = measure::latencies(&mut entrants, effort.rounds, effort.round, &mut notes);
    }
    drop((entrants, servers));
    cores::roam();
    let idle =
        if wants(Part::Idle) { idle(&doors, &requests, &effort, &mut notes) } else { Vec::new() };
    let scale = if wants(Part::Scale) { scale(&doors, &effort, &mut notes) } else { Vec::new() };
    let instructions = if wants(Part::Instructions) {
        instructions(&doors, options.base.as_deref(), &mut notes)
    } else {
        Vec::new()
    };
    let found = Found { capacities: &capacities, idle: &idle, scale: &scale };
    let targets = targets::all(&found);
    let machine = machine::here(load_before, "--bin server ");
    Ok(Report { machine, capacities, latencies, idle, scale, instructions, targets, absent, notes })
}

/// The doors of one request at a time, beside idle connections.
fn idle(
    doors: &[Door],
    requests: &Catalogue,
    effort: &Effort,
    notes: &mut Vec<String>,
) -> Vec<Idle> {
    let mut found = Vec::new();
    for door in doors.iter().copied().filter(|door| [Door::Http, Door::Resp].contains(door)) {
        eprintln!("{} idle connections to {door:?} ...", idle::CONNECTIONS);
        let requests = door.dialect(SLUICEGATE).and_then(|dialect| requests.get(dialect));
        let Some(requests) = requests else { continue };
        cores::stay();
        let measured = idle::measure(door, requests, effort.rounds, effort.round, notes);
        cores::roam();
        match measured {
            Ok(one) => found.push(one),
            Err(error) => notes.push(format!("Idle connections to {door:?}: {error}.")),
        }
    }
    found
}

/// A million users over pipelines.
fn scale(doors: &[Door], effort: &Effort, notes: &mut Vec<String>) -> Vec<Capacity> {
    let mut found = Vec::new();
    for door in doors.iter().copied().filter(|door| [Door::Resp, Door::RespCheck].contains(door)) {
        eprintln!("{} users, {door:?} ...", scale::USERS);
        match scale::measure(door, effort.rounds, effort.round, notes) {
            Ok(one) => found.push(one),
            Err(error) => notes.push(format!("{} users, {door:?}: {error}.", scale::USERS)),
        }
    }
    found
}

/// Instructions of one request at each door.
fn instructions(doors: &[Door], base: Option<&Path>, notes: &mut Vec<String>) -> Vec<Instructions> {
    eprintln!("instructions ...");
    let mut found = Vec::new();
    for door in doors {
        match instructions::measure(*door, base) {
            Ok(of_door) => found.extend(of_door),
            Err(error) => notes.push(format!("Instructions of {door:?}: {error}.")),
        }
    }
    found
}

/// Records the service's answer at a door, which the null server repeats.
fn answer_of(server: &Server, door: Door) -> Result<Vec<u8>, String> {
    let dialect = door.dialect(server.name).ok_or("there is no such door")?;
    let requests = Requests::new(dialect, 10);
    // The first request that is allowed.
    let allowed = (0..requests.len()).find_map(|number| {
        let asked = once::ask(server.port(door), dialect.protocol(), requests.get(number));
        match asked {
            Ok(answer) if !(requests.is_allowed)(&answer) => None,
            asked => Some(asked),
        }
    });
    allowed.ok_or("everything is denied")?.map_err(|error| error.to_string())
}

/// Requests by dialect: the same for every server of a dialect.
struct Catalogue(Vec<(Dialect, Requests)>);

impl Catalogue {
    fn new(servers: &[Server], doors: &[Door]) -> Self {
        let mut all: Vec<(Dialect, Requests)> = Vec::new();
        for dialect in servers.iter().flat_map(|server| dialects(server, doors)) {
            if all.iter().all(|(known, _)| *known != dialect) {
                all.push((dialect, Requests::new(dialect, SUBJECTS)));
            }
        }
        Self(all)
    }

    fn get(&self, dialect: Dialect) -> Option<&Requests> {
        self.0.iter().find(|(known, _)| *known == dialect).map(|(_, requests)| requests)
    }
}

fn dialects(server: &Server, doors: &[Door]) -> impl Iterator<Item = Dialect> {
    doors.iter().filter_map(|door| door.dialect(server.name))
}

/// All contenders, connected, with every request sent once.
fn entrants<'a>(
    servers: &[Server],
    doors: &[Door],
    requests: &'a Catalogue,
    notes: &mut Vec<String>,
) -> Vec<Entrant<'a>> {
    let mut entrants = Vec::new();
    for place in doors.iter().flat_map(|door| door.places()) {
        for server in servers {
            let Some(dialect) = place.door.dialect(server.name) else { continue };
            let Some(requests) = requests.get(dialect) else { continue };
            // Deeper pipelines use the same buckets.
            let is_first = place.door.places().next() == Some(place);
            eprintln!("  {} at {}", place.name(), server.name);
            match Entrant::new(server, place, requests, is_first) {
                Ok(entrant) => entrants.push(entrant),
                Err(error) => {
                    notes.push(format!(
                        "{} at {} was left out: {error}.",
                        place.name(),
                        server.name
                    ));
                }
            }
        }
    }
    entrants
}
