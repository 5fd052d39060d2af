//! Assignment of processes to cores, and their processor time.

use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Core of the measured servers; the load has another one if the machine has two.
const OF_SERVERS: usize = 0;
const OF_THE_LOAD: usize = 1;

/// Cores of servers, in the syntax of `taskset`.
pub(crate) fn of_servers(is_pinned: bool) -> String {
    let last = count().saturating_sub(1);
    if is_pinned { OF_SERVERS.to_string() } else { format!("0-{last}") }
}

/// Pins this thread to the core of the load, if the system allows it.
pub(crate) fn stay() {
    let mut cores = CpuSet::new();
    if count() > 1 && cores.set(OF_THE_LOAD).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    }
}

/// Lets this thread run anywhere.
pub(crate) fn roam() {
    let mut cores = CpuSet::new();
    for core in 0..count() {
        let _ = cores.set(core);
    }
    let _ = sched_setaffinity(Pid::from_raw(0), &cores);
}

fn count() -> usize {
    let online = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN);
    online.ok().flatten().and_then(|cores| usize::try_from(cores).ok()).unwrap_or(1)
}

/// The processor time of a process so far, with that of the kernel on its behalf.
pub(crate) fn time_of(pid: u32) -> Duration {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid as i32));
    clock.and_then(clock_gettime).expect("our own child has a clock").into()
}

/// The processor time of this thread so far.
pub(crate) fn own_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).expect("a thread has a clock").into()
}
