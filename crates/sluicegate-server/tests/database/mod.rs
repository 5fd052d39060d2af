//! SQLite and PostgreSQL behave the same.

mod common;

mod callers;
mod changes;
mod migrate;
mod overrides;
mod rules;
mod trouble;
mod violations;
