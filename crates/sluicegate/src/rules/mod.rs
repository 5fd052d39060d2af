//! Rules: limits, and the conditions under which they apply to a request.

mod attribute;
mod condition;
mod explain;
#[cfg(feature = "file")]
pub mod file;
mod fold;
mod glob;
mod glob_set;
mod index;
mod overrides;
mod pattern;
mod replacing;
mod rule;
mod set;
mod spec;
mod starter;
mod unconditional;
mod work;

pub use attribute::Attribute;
pub use condition::Condition;
pub use explain::Applies;
#[cfg(feature = "file")]
pub use file::{FileError, FileErrors, RULES_FILE_BYTES_MAX};
pub use fold::fold;
pub use glob::{Glob, GlobError};
pub(crate) use index::{Matched, Matches};
pub(crate) use overrides::Number;
pub use overrides::{OVERRIDES_MAX, Override, Overrides, OverridesError};
pub use pattern::{Pattern, PatternError};
pub use rule::{Mode, OnError, PathForm, Rule, RuleError, Scope};
pub use set::{RULES_MAX, RuleSet, RuleSetError, RuleSetErrors, TIERS_MAX, TIERS_MAX_MAX};
pub use spec::{FieldError, NOTES, Note, RuleSpec};
pub(crate) use work::TooCostly;
