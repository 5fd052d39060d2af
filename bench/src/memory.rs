//! Bytes per idle key of each contender, measured in separate processes.

use std::fs;
use std::process::Command;

use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

use crate::align::align;
use crate::allocator;
use crate::contenders::{GOVERNOR, GOVERNOR_U64, KEYED_U64, SINGLE_TIER, SLUICEGATE, named};
use crate::workloads::{MANY, SPENT};

/// Measured contenders. Sluicegate stores hashes of names, so its figures do not depend on their length.
const CONTENDERS: [&str; 4] = [SLUICEGATE, KEYED_U64, GOVERNOR, GOVERNOR_U64];

pub(crate) const FEW_KEYS: u64 = MANY;
pub(crate) const MANY_KEYS: u64 = 10 * MANY;

/// Result of one contender with one number of keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) contender: String,
    pub(crate) keys: u64,
    /// Bytes allocated and not freed, by number of keys.
    pub(crate) allocated_bytes_per_key: f64,
    /// Growth of the process by number of keys, including memory kept by the allocator.
    pub(crate) resident_bytes_per_key: f64,
}

/// Measures all contenders with each number of keys. A contender that fails is reported and left out.
pub(crate) fn all(sizes: &[u64]) -> Vec<Memory> {
    let mut measured = Vec::new();
    for &keys in sizes {
        for contender in CONTENDERS {
            eprintln!("memory: {contender}, {keys} keys ...");
            match in_child(contender, keys) {
                Ok(memory) => measured.push(memory),
                Err(error) => eprintln!("memory: {contender}, {keys} keys: {error}"),
            }
        }
    }
    measured
}

fn in_child(contender: &str, keys: u64) -> Result<Memory, Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args(["memory-of", contender, &keys.to_string()]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Child process: measures one contender and prints the figures as JSON.
pub(crate) fn child(contender: &str, keys: u64) {
    allocator::start_counting();
    let (allocated_before, resident_before) = (allocator::bytes(), resident_bytes());
    let limiter = (named(SINGLE_TIER, contender).make)(keys);
    limiter.populate(keys, &|_| SPENT);
    let per_key = |bytes: f64| bytes / keys as f64;
    let memory = Memory {
        contender: contender.to_owned(),
        keys,
        allocated_bytes_per_key: per_key((allocator::bytes() - allocated_before) as f64),
        resident_bytes_per_key: per_key(resident_bytes() - resident_before),
    };
    println!("{}", serde_json::to_string(&memory).expect("figures are valid JSON"));
}

/// Resident memory of this process.
fn resident_bytes() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
    pages.unwrap_or(0.0) * page_bytes as f64
}

pub(crate) fn markdown(measured: &[Memory]) -> String {
    let header = ["bytes per idle key", "keys", "allocated", "resident"];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    for one in measured {
        table.push(vec![
            one.contender.clone(),
            format!("{}M", one.keys / 1_000_000),
            format!("{:.1}", one.allocated_bytes_per_key),
            format!("{:.1}", one.resident_bytes_per_key),
        ]);
    }
    align(&table)
}
