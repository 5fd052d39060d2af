//! Rules: which limits there are, and which of them a request meets.

mod attribute;
mod glob;
mod index;
mod pattern;
mod rule;
mod set;
mod spec;
mod starter;

pub use attribute::Attribute;
pub use glob::{Glob, GlobError};
pub use pattern::{Pattern, PatternError};
pub use rule::{Mode, OnError, Rule, RuleError, Scope};
pub use set::{RULES_MAX, RuleSet, RuleSetError};
pub use spec::{FieldError, RuleSpec};
