//! Both databases, for real: what one does, the other does as well.

mod common;

mod changes;
mod migrate;
mod overrides;
mod rules;
mod trouble;
mod violations;
