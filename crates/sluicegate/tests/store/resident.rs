//! T41: the memory of a flood, as reported by the operating system for the whole process: so this test has a
//! process of its own.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::{env, fs};

use sluicegate::{LocalStore, Space, Store};

use crate::store::support::{manual_store, part, tokens};

const MAX_BUCKETS: usize = 1_000_000;
/// Documented maximum of bytes per bucket.
const BYTES_PER_BUCKET: usize = 50;
/// Allowance for the rest of the process: code that was not run before, the allocator's own data.
const BYTES_BESIDES: usize = 1 << 20;

#[test]
fn t41_a_flood_takes_no_more_memory_than_is_promised() {
    let arguments = ["--exact", "store::resident::flooded", "--ignored", "--nocapture"];
    let output = Command::new(env::current_exe().unwrap()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "no such test: {said}");
}

#[test]
#[ignore = "the test above runs it, alone in a process"]
fn flooded() {
    let (store, _) = manual_store(MAX_BUCKETS);
    let (quota, before) = (tokens(100), resident_bytes("VmRSS"));
    for number in 0..2 * MAX_BUCKETS {
        let key = store.key(Space::Rule(1), &[&number.to_le_bytes()]);
        store.charge_one_now(part(&key, &quota, 1));
    }
    assert_eq!(store.stats().buckets, MAX_BUCKETS);
    let (bytes, promised) = (resident_bytes("VmHWM") - before, MAX_BUCKETS * BYTES_PER_BUCKET);
    let allowed = promised + promised / 10 + BYTES_BESIDES;
    assert!(bytes <= allowed, "{bytes} of {promised} bytes");
}

/// A figure of this process: `VmRSS` is its current resident memory, `VmHWM` the maximum.
fn resident_bytes(figure: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(figure)).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}
