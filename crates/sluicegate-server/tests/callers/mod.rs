//! Callers of the data doors: who may do what, over every door.

mod connections;
mod doors;
mod namespaces;
mod refusals;
mod support;
mod table;
mod tunnel;
