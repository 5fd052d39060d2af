//! Callers of the data doors: who may do what, over every door.

mod at_rest;
mod connections;
mod doors;
mod namespaces;
mod outage;
mod processes;
mod refusals;
pub(crate) mod support;
mod table;
mod tunnel;
