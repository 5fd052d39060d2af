//! SQLite and PostgreSQL behave the same.

mod common;

mod changes;
mod migrate;
mod overrides;
mod rules;
mod trouble;
mod violations;
