//! Front doors: a protocol to a `Request`, a `Verdict` back. A door translates and never decides.

pub(crate) mod dispatch;
pub(crate) mod grpc;
pub mod http;
pub(crate) mod listen;
pub mod resp;
mod stream;
