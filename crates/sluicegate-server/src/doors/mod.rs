//! Front doors: listeners that translate a protocol to a `Request` and a `Verdict` back. They never
//! decide.

pub(crate) mod dispatch;
pub(crate) mod grpc;
pub mod http;
pub(crate) mod listen;
pub mod resp;
mod stream;
