//! Parts of the OpenAPI document that endpoints share.

pub(crate) mod bodies;
pub(crate) mod exact;
pub(crate) mod parts;
pub(crate) mod values;
