//! Header fields, the body of a denial, and client addresses.
//!
//! | module | what it is |
//! |---|---|
//! | `support` | limiters on a clock that stands still, and quotas of every kind |
//! | `fields` | header fields, case by case |
//! | `structured` | header fields of anything, read by another parser |
//! | `waits` | clients that wait as the fields say |
//! | `problem` | the body of a denial |
//! | `docs` | the examples of `docs/headers.md` |
//! | `client_ip` | clients behind proxies, case by case |
//! | `forged` | headers of a client do not change its address |

mod client_ip;
#[cfg(feature = "file")]
mod docs;
mod fields;
mod forged;
mod problem;
mod structured;
mod support;
mod waits;
