//! Where a run took place, and how busy it was there.

use std::fs;

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) command: String,
    /// Load averages of the last minute, before the run and after it.
    pub(crate) load: [f64; 2],
}

/// This machine, as a run that began under `load_before` ends. `program` says which of the programs it was.
pub(crate) fn here(load_before: f64, program: &str) -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let separator = if arguments.is_empty() { "" } else { "-- " };
    let command =
        format!("cd bench && cargo run --profile dist {program}{separator}{}", arguments.join(" "));
    Machine {
        processor: model
            .map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']))
            .into(),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        command: command.trim_end().to_owned(),
        load: [load_before, load()],
    }
}

/// The load average of the last minute.
pub(crate) fn load() -> f64 {
    let loads = read("/proc/loadavg");
    loads.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn markdown(machine: &Machine) -> String {
    let Machine { processor, cores, kernel, command, load: [before, after] } = machine;
    format!(
        "`{command}` on {processor}, {cores} cores, Linux {kernel} \
         (load {before:.1} before, {after:.1} after)\n"
    )
}
