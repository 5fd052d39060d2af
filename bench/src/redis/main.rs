//! Sluicegate's Redis store compared with other ways to count in Redis: one private server, one run, ratios
//! that hold on other machines too.

#[path = "../align.rs"]
mod align;
mod keys;
mod library;
#[path = "../machine.rs"]
mod machine;
mod memory;
mod processes;
mod quiet;
mod raw;
mod report;
mod server;
#[path = "../stats.rs"]
mod stats;
mod targets;
mod units;
mod wire;

use std::fs;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use crate::keys::Keys;
use crate::report::Report;
use crate::server::Server;
use crate::targets::Found;

/// File with the figures of the last run.
const REPORT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/report-redis.json");

/// Measures Sluicegate's Redis store on a private Redis and prints tables, ready for the README.
#[derive(Debug, Parser)]
struct Options {
    /// Prints every figure as JSON instead.
    #[arg(long)]
    json: bool,
    /// Fewer rounds: for a first look, within a minute.
    #[arg(long)]
    quick: bool,
    /// One round of everything, which fails if a part cannot be measured: for tests. The figures mean nothing.
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Parts to measure.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "commands,memory,library,processes"
    )]
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Commands,
    Memory,
    Library,
    Processes,
}

/// Number of rounds.
struct Effort {
    commands: usize,
    concurrent: usize,
    lone: usize,
    processes: usize,
}

const SMOKE: Effort = Effort { commands: 1, concurrent: 1, lone: 1, processes: 1 };
const QUICK: Effort = Effort { commands: 60, concurrent: 5, lone: 20, processes: 4 };
const FULL: Effort = Effort { commands: 250, concurrent: 25, lone: 100, processes: 12 };

fn main() -> ExitCode {
    let options = Options::parse();
    let report = run(&options);
    if options.smoke {
        println!("{}", report.markdown());
        let failures = report.failures();
        failures.iter().for_each(|failure| eprintln!("error: {failure}"));
        return if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(error) = fs::write(REPORT_FILE, report.json()) {
        eprintln!("{REPORT_FILE}: {error}");
    }
    println!("{}", if options.json { report.json() } else { report.markdown() });
    ExitCode::SUCCESS
}

/// Runs the chosen parts in order.
fn run(options: &Options) -> Report {
    let load_before = machine::load();
    let wants = |part| options.parts.contains(&part);
    let effort = match options {
        Options { smoke: true, .. } => SMOKE,
        Options { quick: true, .. } => QUICK,
        _ => FULL,
    };
    let mut server = Server::start();
    let mut notes = Vec::new();
    if !server.has_cell {
        notes.push("redis-cell was left out: its module could not be built.".to_owned());
    }
    let redis = server.version();

    let (mut memory, mut raw) = (Vec::new(), Vec::new());
    if wants(Part::Memory) || wants(Part::Commands) {
        let (keys, scripts) = (Keys::new(&server.url()), server.load_scripts());
        if wants(Part::Memory) {
            eprintln!("memory ...");
            let weighed = units::weighed(&scripts, &keys, server.has_cell);
            memory = memory::measure(&mut server, weighed);
            server.clear();
        }
        if wants(Part::Commands) {
            eprintln!("commands ...");
            let mut all = units::all(&scripts, &keys, server.has_cell);
            all.iter_mut().for_each(|units| raw::populate(&mut server.wire(), units));
            raw = raw::measure(&mut server, &mut all, effort.commands);
            server.clear();
        }
    }
    let (mut concurrent, mut lone) = (Vec::new(), Vec::new());
    if wants(Part::Library) {
        eprintln!("library ...");
        let bench = library::Bench::new(&server.url());
        concurrent = bench.concurrent(effort.concurrent);
        lone = bench.lone(effort.lone);
    }
    let mut processes = None;
    if wants(Part::Processes) {
        eprintln!("processes ...");
        match processes::measure(&server.url(), effort.processes) {
            Ok(measured) => processes = Some(measured),
            Err(error) => notes.push(format!("The server processes were left out: {error}.")),
        }
    }
    let found = Found {
        raw: &raw,
        memory: &memory,
        concurrent: &concurrent,
        lone: &lone,
        processes: processes.as_ref(),
    };
    let targets = targets::all(&found);
    let machine = machine::here(load_before, "--bin redis ");
    Report { machine, redis, raw, memory, concurrent, lone, processes, targets, notes }
}
