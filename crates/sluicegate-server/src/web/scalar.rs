//! JSON values.

pub(crate) use crate::json::{Id, Number, Plain, Text, Whole};
