//! JSON forms of values and of rules, and their OpenAPI schemas.

mod column;
mod list;
mod object;
mod path;
pub(crate) mod rule;
mod scalar;
pub(crate) mod schema;

pub(crate) use self::column::Column;
pub(crate) use self::list::{List, ListOf, TOO_MANY, too_many};
pub(crate) use self::object::Object;
pub(crate) use self::path::Position;
pub(crate) use self::scalar::{
    Choice, Flag, Id, Number, Plain, Seconds, Text, Wait, Whole, quoted, text_instead,
};
