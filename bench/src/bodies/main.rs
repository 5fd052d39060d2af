//! Instructions per byte of hostile bodies beside accepted ones, counted by callgrind.
//!
//! A body that costs much more per byte than an ordinary one lets a client with little bandwidth keep the service busy.

#[path = "../align.rs"]
mod align;
#[path = "../callgrind.rs"]
mod callgrind;

use std::hint::black_box;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sluicegate_server::floor::is_parsed;
use sluicegate_tests::hostile::{self, Body};

use crate::align::align;

/// A hostile body costs at most this many times as much per byte as an accepted one.
const RATIO_MAX: f64 = 3.0;
/// Times that a body is parsed in the shorter of the two runs of which the difference is taken.
const TIMES: usize = 2;

/// Counts the instructions of parsing hostile bodies. Fails if one costs more than three times as much per byte as the
/// accepted body of its path.
#[derive(Debug, Parser)]
struct Options {
    /// Only bodies whose path and name contain this.
    #[arg(long, default_value = "")]
    only: String,
    #[command(subcommand)]
    child: Option<Child>,
}

#[derive(Debug, Subcommand)]
enum Child {
    #[command(hide = true)]
    Parse { body: usize, times: usize },
}

/// Instructions for a body.
#[derive(Debug)]
struct Cost {
    body: Body,
    instructions: f64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(Child::Parse { body, times }) = options.child {
        black_box(counted_parses(&all()[body], times));
        return ExitCode::SUCCESS;
    }
    match run(&options.only) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Vec<Body> {
    let mut bodies = hostile::accepted();
    bodies.extend(hostile::hostile());
    bodies
}

/// Callgrind counts inside this function, by its name.
#[inline(never)]
fn counted_parses(body: &Body, times: usize) -> usize {
    (0..times).filter(|_| is_parsed(body.path, black_box(&body.bytes))).count()
}

/// Prints the table; false if a body costs too much.
fn run(only: &str) -> Result<bool, String> {
    let accepted = hostile::accepted().len();
    let mut costs: Vec<Cost> = Vec::new();
    for (number, body) in all().into_iter().enumerate() {
        if number < accepted || format!("{} {}", body.path, body.name).contains(only) {
            let parse = |times: usize| {
                callgrind::count(
                    "counted_parses",
                    &["parse", &number.to_string(), &times.to_string()],
                )
            };
            let instructions = (parse(2 * TIMES)? - parse(TIMES)?) / TIMES as f64;
            costs.push(Cost { body, instructions });
        }
    }
    let header = ["path", "body", "bytes", "instructions", "per byte", "of accepted"];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    let mut is_within = true;
    for cost in &costs {
        let ordinary = costs.iter().find(|one| one.body.path == cost.body.path);
        let ratio = cost.per_byte() / ordinary.map_or(f64::NAN, Cost::per_byte);
        is_within &= ratio <= RATIO_MAX;
        table.push(vec![
            cost.body.path.rsplit('/').next().unwrap_or_default().to_owned(),
            cost.body.name.clone(),
            cost.body.bytes.len().to_string(),
            format!("{:.0}", cost.instructions),
            format!("{:.1}", cost.per_byte()),
            format!("{ratio:.2}"),
        ]);
    }
    println!("{}", align(&table));
    Ok(is_within)
}

impl Cost {
    fn per_byte(&self) -> f64 {
        self.instructions / self.body.bytes.len() as f64
    }
}
