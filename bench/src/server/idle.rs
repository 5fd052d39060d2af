//! Idle connections and their effect on the latency of busy ones.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

use crate::doors::Door;
use crate::measure::{self, Entrant};
use crate::once::Exchange;
use crate::requests::{Dialect, Requests};
use crate::servers::Server;

/// Number of idle connections.
pub(crate) const CONNECTIONS: usize = 10_000;
/// Number of connections opened at once, within the backlog of every listener.
const TOGETHER: usize = 200;
/// Number of other open files.
const FILES_BESIDES: u64 = 1_000;

/// Latency of a door with and without idle connections to it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) door: Door,
    pub(crate) connections: usize,
    pub(crate) p50_us: [f64; 2],
    pub(crate) p99_us: [f64; 2],
}

/// Measures a door of two servers, one of which has the idle connections.
pub(crate) fn measure(
    door: Door,
    requests: &Requests,
    rounds: usize,
    length: Duration,
    notes: &mut Vec<String>,
) -> Result<Idle, String> {
    let servers = [Server::sluicegate(true)?, Server::sluicegate(true)?];
    let dialect = door.dialect(servers[0].name).ok_or("there is no such door")?;
    provide_files()?;
    let mut entrants = Vec::new();
    for server in &servers {
        let place = door.places().next().ok_or("there is no such door")?;
        entrants
            .push(Entrant::new(server, place, requests, true).map_err(|error| error.to_string())?);
    }
    let idle = connect(&servers[1], door, dialect, requests)?;
    let latencies = measure::latencies(&mut entrants, rounds, length, notes);
    let [without, with] = &latencies[..] else { return Err("a server failed".to_owned()) };
    Ok(Idle {
        door,
        connections: idle.len(),
        p50_us: [without.p50_us, with.p50_us],
        p99_us: [without.p99_us, with.p99_us],
    })
}

/// Opens connections that have sent one request, like those of a pool.
fn connect(
    server: &Server,
    door: Door,
    dialect: Dialect,
    requests: &Requests,
) -> Result<Vec<TcpStream>, String> {
    let ask = |number: usize| {
        let request = requests.get(number % requests.len());
        Exchange::new(server.port(door), dialect.protocol(), request)
    };
    let connect = || {
        let mut streams = Vec::with_capacity(CONNECTIONS);
        for first in (0..CONNECTIONS).step_by(TOGETHER) {
            let asked: io::Result<Vec<_>> = (first..first + TOGETHER).map(ask).collect();
            for asked in asked? {
                streams.push(asked.answer()?.0);
            }
        }
        Ok(streams)
    };
    connect().map_err(|error: io::Error| error.to_string())
}

/// Raises the limit of open files of this process.
fn provide_files() -> Result<(), String> {
    let wanted = CONNECTIONS as u64 + FILES_BESIDES;
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    if now >= wanted {
        return Ok(());
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(most), most).map_err(|error| error.to_string())
}
