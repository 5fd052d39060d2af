//! Times as tables: a row per workload and number of threads, a column per contender.

use std::fmt::Write;

use crate::align::align;
use crate::contenders::{
    CHECK, CHECK_10, CHECK_1000, GOVERNOR, GOVERNOR_U64, KEYED, KEYED_U64, SERVICE_10,
    SERVICE_1000, SLUICEGATE,
};
use crate::rounds::Measured;

/// The table for the README.
pub(crate) const PEERS: [&str; 7] =
    [SLUICEGATE, KEYED, GOVERNOR, "limitador", "throttlecrab", "ratelimit", "floor"];
/// Numeric keys, manual clocks, and throttlecrab's other stores.
pub(crate) const VARIANTS: [&str; 6] = [
    KEYED_U64,
    GOVERNOR_U64,
    "sluicegate, clock stopped",
    "governor, clock stopped",
    "throttlecrab periodic",
    "throttlecrab probabilistic",
];
/// The whole check.
pub(crate) const RULES: [&str; 3] = [CHECK, CHECK_10, CHECK_1000];
/// The whole check with the rules of a service.
pub(crate) const SERVICES: [&str; 2] = [SERVICE_10, SERVICE_1000];

/// These contenders' times as aligned Markdown, on workloads that any of them took part in.
pub(crate) fn markdown(measured: &[Measured], contenders: &[&str]) -> String {
    let mut rows: Vec<(&str, usize)> = Vec::new();
    for one in measured.iter().filter(|one| contenders.contains(&one.contender)) {
        if !rows.contains(&(&one.workload, one.threads)) {
            rows.push((&one.workload, one.threads));
        }
    }
    let header = ["ns per check", "threads"].iter().chain(contenders);
    let mut table = vec![header.map(|&name| name.to_owned()).collect::<Vec<_>>()];
    for (workload, threads) in rows {
        let of = |name| find(measured, workload, threads, name);
        let mut row = vec![workload.to_owned(), threads.to_string()];
        row.extend(contenders.iter().map(|name| cell(of(name), of(GOVERNOR))));
        table.push(row);
    }
    align(&table)
}

pub(crate) fn find<'a>(
    measured: &'a [Measured],
    workload: &str,
    threads: usize,
    contender: &str,
) -> Option<&'a Measured> {
    measured.iter().find(|one| {
        one.workload == workload && one.threads == threads && one.contender == contender
    })
}

/// The median, and its ratio to governor's; `~` if all rounds were disturbed.
fn cell(one: Option<&Measured>, governor: Option<&Measured>) -> String {
    let Some(one) = one else { return "-".to_owned() };
    let disturbed = if one.rounds == 0 { "~" } else { "" };
    let mut cell = format!("{disturbed}{:.0}", one.ns_per_check);
    if let Some(governor) = governor.filter(|governor| governor.contender != one.contender) {
        let _ = write!(cell, " ({:.2}x)", one.ns_per_check / governor.ns_per_check);
    }
    cell
}
