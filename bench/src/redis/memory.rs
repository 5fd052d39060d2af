//! Bytes per bucket: growth of the server from empty, by number of keys.

use serde::Serialize;

use crate::keys::SUBJECTS;
use crate::raw::populate;
use crate::server::Server;
use crate::units::Units;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) contender: &'static str,
    pub(crate) bytes_per_bucket: f64,
}

pub(crate) fn measure(server: &mut Server, all: Vec<Units>) -> Vec<Memory> {
    // One connection for everything, whose buffers have grown before the first measurement.
    let mut wire = server.wire();
    all.into_iter()
        .map(|mut units| {
            populate(&mut wire, &mut units);
            server.clear();
            let before = server.memory_bytes();
            populate(&mut wire, &mut units);
            let bytes_per_bucket = (server.memory_bytes() - before) / SUBJECTS as f64;
            Memory { contender: units.name, bytes_per_bucket }
        })
        .collect()
}
