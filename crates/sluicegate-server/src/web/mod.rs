//! Parts of HTTP that the doors and the administration share.

pub(crate) mod access;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod check_body;
pub(crate) mod etag;
pub(crate) mod openapi;
pub(crate) mod problem;
pub(crate) mod query;
