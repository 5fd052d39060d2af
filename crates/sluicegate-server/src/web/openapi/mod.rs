//! Parts of the OpenAPI document that endpoints share.

pub(crate) mod exact;
pub(crate) mod parts;
