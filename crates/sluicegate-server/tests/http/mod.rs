//! The HTTP API, through the real binary.

mod bad_input;
mod batch;
mod check;
mod guard;
mod health;
mod page;
mod readme;
mod refund;
mod take;
