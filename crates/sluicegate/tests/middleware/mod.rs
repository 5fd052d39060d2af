//! The middleware as its users see it, around services that are called in memory and on real sockets.
//!
//! | module | what it is |
//! |---|---|
//! | `support` | limiters on clocks that stand still, services, a client |
//! | `answers` | who passes, what answers say, the hook, shadow mode, layers inside layers |
//! | `attributes` | where attributes come from, and what happens where they are missing or too long |
//! | `addresses` | whose address it is |
//! | `grpc` | denials as gRPC clients read them |
//! | `correct` | charged before, corrected after |
//! | `delays` | queues, on the runtime's paused time |
//! | `readiness` | backpressure, and clones that were found ready |
//! | `outgoing` | the twin for clients |
//! | `allocation` | nothing is boxed over a store in memory |
//! | `routes` | axum's route templates |
//! | `sockets` | many at once on real sockets |
//! | `examples` | the examples, on real sockets |
//! | `redis` | the same over a real Redis |

mod addresses;
mod allocation;
mod answers;
mod attributes;
mod correct;
mod delays;
mod examples;
mod grpc;
mod outgoing;
mod readiness;
#[cfg(feature = "redis")]
mod redis;
mod routes;
mod sockets;
mod support;
