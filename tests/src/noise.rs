//! Scheduling delays of this machine: time in which threads waited for a processor.
//!
//! The kernel counts for every thread the time in which it was runnable and did not run
//! (`/proc/<pid>/task/<tid>/schedstat`). The longest delay of this process, or of the servers that it
//! started, is added to every time limit, so that tests pass on a busy machine and are strict on an idle one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Sampling interval.
const EVERY: Duration = Duration::from_millis(20);
/// Shorter delays are ignored.
const WORTH: Duration = Duration::from_millis(2);

/// The delays, in the order in which they ended.
static WAITS: Mutex<Vec<(Instant, Duration)>> = Mutex::new(Vec::new());

/// The longest delay that ended after `start`, as known so far.
pub fn since(start: Instant) -> Duration {
    listen();
    let waits = WAITS.lock();
    let late = waits.iter().rev().take_while(|(ended, _)| *ended >= start);
    late.map(|(_, wait)| *wait).max().unwrap_or_default()
}

/// Starts sampling, once.
pub fn listen() {
    static LISTENER: OnceLock<()> = OnceLock::new();
    LISTENER.get_or_init(|| {
        std::thread::spawn(|| {
            let mut known = HashMap::new();
            loop {
                std::thread::sleep(EVERY);
                sample(&mut known);
            }
        });
    });
}

/// Records the delay of every thread since the last sample.
fn sample(known: &mut HashMap<PathBuf, u64>) {
    let mut processes = vec![PathBuf::from("/proc/self")];
    for thread in tasks(Path::new("/proc/self")) {
        let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
        processes.extend(children.split_whitespace().map(|pid| Path::new("/proc").join(pid)));
    }
    for thread in processes.iter().flat_map(|process| tasks(process)) {
        let Some(waited) = waited(&thread) else { continue };
        let before = known.insert(thread, waited).unwrap_or(waited);
        let wait = Duration::from_nanos(waited.saturating_sub(before));
        if wait >= WORTH {
            WAITS.lock().push((Instant::now(), wait));
        }
    }
}

fn tasks(process: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(process.join("task"));
    entries.map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Nanoseconds that a thread has waited for a processor.
fn waited(thread: &Path) -> Option<u64> {
    fs::read_to_string(thread.join("schedstat")).ok()?.split_whitespace().nth(1)?.parse().ok()
}
