//! Sluicegate compared with its peers in one run, as ratios that hold on other machines too.

mod align;
mod allocator;
mod callgrind;
mod contenders;
mod instructions;
mod machine;
mod memory;
mod report;
mod rounds;
mod scale;
mod speed;
mod table;
mod targets;
mod walkers;
mod workloads;

use std::fs;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::report::Report;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// File with the figures of the last run.
const REPORT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/report.json");

/// Measures Sluicegate beside its peers and prints tables, ready for the README.
#[derive(Debug, Parser)]
struct Options {
    /// Prints every figure as JSON instead.
    #[arg(long)]
    json: bool,
    /// Fewer rounds, a million keys at most, a short stream: for a first look.
    #[arg(long)]
    quick: bool,
    /// One turn of everything, which fails if a part cannot be measured: for tests. The figures mean nothing.
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Parts to measure.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "speed,memory,instructions,scale"
    )]
    parts: Vec<Part>,
    /// Speed: only workloads whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Speed: only contenders whose name contains one of these.
    #[arg(long, value_delimiter = ',', default_value = "")]
    contenders: Vec<String>,
    /// Scale: duration of the stream in seconds; 60, or 10 if quick.
    #[arg(long)]
    seconds: Option<u64>,
    #[command(subcommand)]
    child: Option<Child>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Speed,
    Memory,
    Instructions,
    Scale,
}

/// Arguments of child processes that a run starts.
#[derive(Debug, Subcommand)]
enum Child {
    #[command(hide = true)]
    MemoryOf { contender: String, keys: u64 },
    #[command(hide = true)]
    ChecksOf { case: usize, checks: usize },
}

fn main() -> ExitCode {
    let options = Options::parse();
    match &options.child {
        Some(Child::MemoryOf { contender, keys }) => memory::child(contender, *keys),
        Some(Child::ChecksOf { case, checks }) => instructions::child(*case, *checks),
        None if options.smoke => {
            let report = run(&options);
            println!("{}", report.markdown());
            let failures = report.failures();
            failures.iter().for_each(|failure| eprintln!("error: {failure}"));
            if !failures.is_empty() {
                return ExitCode::FAILURE;
            }
        }
        None => {
            let report = run(&options);
            if let Err(error) = fs::write(REPORT_FILE, report.json()) {
                eprintln!("{REPORT_FILE}: {error}");
            }
            println!("{}", if options.json { report.json() } else { report.markdown() });
        }
    }
    ExitCode::SUCCESS
}

/// Runs the chosen parts in order.
fn run(options: &Options) -> Report {
    let load_before = machine::load();
    let wants = |part| options.parts.contains(&part);
    let quick = options.quick || options.smoke;
    let (turns, seconds) = match options {
        Options { smoke: true, .. } => (1, 1),
        Options { quick: true, .. } => (6, 10),
        _ => (25, 60),
    };
    let choice = speed::Choice { turns, workloads: &options.only, contenders: &options.contenders };
    let sizes: &[u64] =
        if quick { &[memory::FEW_KEYS] } else { &[memory::FEW_KEYS, memory::MANY_KEYS] };
    let seconds = options.seconds.unwrap_or(seconds).max(1);

    let speed = if wants(Part::Speed) { speed::all(&choice) } else { Vec::new() };
    let memory = if wants(Part::Memory) { memory::all(sizes) } else { Vec::new() };
    let counted = if wants(Part::Instructions) { instructions::all() } else { Ok(Vec::new()) };
    let scale = wants(Part::Scale).then(|| scale::run(seconds));
    let (instructions, instructions_error) = match counted {
        Ok(instructions) => (instructions, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let targets = targets::all(&speed, &memory, scale.as_ref());
    let machine = machine::here(load_before, "");
    Report { machine, speed, memory, instructions, instructions_error, scale, targets }
}
