//! Instructions of the service for one request, counted by callgrind over real sockets: no noise of other processes, so
//! that a build can be compared with another one to a percent.
//!
//! Each case runs twice in separate processes, once with twice as many requests: the difference is the cost of the
//! requests. One connection, one core: with more, the number of wake-ups would depend on chance.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::doors::{Door, Place, SLUICEGATE};
use crate::load::{Load, Plan, Shape};
use crate::requests::Requests;
use crate::servers::{Server, program};

/// Requests whose cost is counted, a multiple of every depth.
const REQUESTS: u64 = 6_400;
/// Subjects, each of which is known before the counted requests.
const SUBJECTS: usize = 1_280;

/// Instructions of one request at a door.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Instructions {
    pub(crate) place: Place,
    pub(crate) per_request: f64,
    /// The other build's; absent unless one was named.
    pub(crate) base: Option<f64>,
}

/// Counts the requests of a door at every depth, of this build and of `base`.
pub(crate) fn measure(door: Door, base: Option<&Path>) -> Result<Vec<Instructions>, String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("valgrind is not installed".to_owned());
    }
    let of = |program: &Path, place: Place| {
        eprintln!("  {} of {}", place.name(), program.display());
        let (once, twice) = (run(program, place, REQUESTS)?, run(program, place, 2 * REQUESTS)?);
        Ok::<_, String>((twice - once) / REQUESTS as f64)
    };
    door.places()
        .map(|place| {
            let base = base.map(|base| of(base, place)).transpose()?;
            Ok(Instructions { place, per_request: of(&program(), place)?, base })
        })
        .collect()
}

/// Instructions of a process that answers every subject once, and then `count` requests more.
fn run(program: &Path, place: Place, count: u64) -> Result<f64, String> {
    let server = Server::counted(program)?;
    let dialect = place.door.dialect(SLUICEGATE).ok_or("there is no such door")?;
    let requests = Requests::new(dialect, SUBJECTS);
    let shape = Shape { connections: 1, depth: place.depth };
    let (port, protocol) = (server.port(place.door), dialect.protocol());
    let mut load = Load::connect(Plan { port, protocol, shape, requests: &requests }, 0)
        .map_err(|error| error.to_string())?;
    load.all().and_then(|_| load.closed_until(count)).map_err(|error| error.to_string())?;
    server.instructions()
}
