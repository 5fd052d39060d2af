//! SQLite and PostgreSQL behave the same.

mod common;

mod callers;
mod changes;
mod history;
mod migrate;
mod overrides;
mod rules;
mod trouble;
mod violations;
