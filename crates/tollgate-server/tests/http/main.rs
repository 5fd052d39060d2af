//! The HTTP front door, through the real binary: what `design.md` promises to the world.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod batch;
mod check;
mod guard;
mod health;
mod take;
