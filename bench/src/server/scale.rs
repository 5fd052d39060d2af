//! A million users over pipelined RESP: checks per second of one server that shares the machine with its load.

use std::time::Duration;

use crate::doors::{Door, Place};
use crate::measure::{self, Capacity, Entrant};
use crate::requests::Requests;
use crate::servers::Server;

pub(crate) const USERS: usize = 1_000_000;
/// Target rate.
pub(crate) const WANTED_PER_SEC: f64 = 400_000.0;

const DEPTH: usize = 64;

/// Measures a door, the server on all cores.
pub(crate) fn measure(
    door: Door,
    rounds: usize,
    length: Duration,
    notes: &mut Vec<String>,
) -> Result<Capacity, String> {
    let server = Server::sluicegate(false)?;
    let dialect = door.dialect(server.name).ok_or("there is no such door")?;
    let requests = Requests::new(dialect, USERS);
    let place = Place { door, depth: DEPTH };
    let entrant = Entrant::new(&server, place, &requests, true);
    let mut entrants = [entrant.map_err(|error| error.to_string())?];
    let found = measure::capacities(&mut entrants, rounds, length, notes).pop();
    found.ok_or_else(|| "the server failed".to_owned())
}
