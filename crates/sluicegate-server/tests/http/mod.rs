//! The HTTP front door, through the real binary: what it promises to the world.

mod bad_input;
mod batch;
mod check;
mod guard;
mod health;
mod page;
mod readme;
mod take;
