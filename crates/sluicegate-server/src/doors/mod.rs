//! Front doors: listeners that translate a protocol to a `Request` and a `Verdict` back. They never
//! decide.

mod admission;
mod answer_bytes;
pub(crate) mod dispatch;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod listen;
mod progress;
mod refunds;
pub(crate) mod resp;
mod socket;
mod stream;
