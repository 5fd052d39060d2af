//! JSON forms of values and of rules, and their OpenAPI schemas.

mod object;
pub(crate) mod rule;
mod scalar;
pub(crate) mod schema;

pub(crate) use self::object::Object;
pub(crate) use self::scalar::{Choice, Id, Number, Plain, Seconds, Text, Wait, Whole};
