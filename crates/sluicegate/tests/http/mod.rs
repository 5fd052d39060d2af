//! What clients are told, and who they are.
//!
//! | module | what it is |
//! |---|---|
//! | `support` | limiters on a clock that stands still, and quotas of every kind |
//! | `fields` | header fields, case by case |
//! | `structured` | header fields of anything, read by another parser |
//! | `waits` | what happens to a client that does as it is told |
//! | `problem` | the body of a denial |
//! | `docs` | the examples of `docs/headers.md` |
//! | `client_ip` | clients behind proxies, case by case |
//! | `forged` | what clients write does not change who they are |

mod client_ip;
#[cfg(feature = "file")]
mod docs;
mod fields;
mod forged;
mod problem;
mod structured;
mod support;
mod waits;
