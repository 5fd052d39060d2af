//! The public middleware, around services that are called in memory and on real sockets.
//!
//! | module | subject |
//! |---|---|
//! | `support` | limiters on manual clocks, services, a client |
//! | `answers` | admission, responses, the hook, shadow mode, nested layers |
//! | `attributes` | extraction of attributes, and policies for missing and oversized ones |
//! | `addresses` | the client's address |
//! | `grpc` | denials as decoded by gRPC clients |
//! | `correct` | charged before, corrected after |
//! | `delays` | queues, on the runtime's paused time |
//! | `readiness` | backpressure, and readiness of clones |
//! | `outgoing` | `OutgoingLayer` |
//! | `allocation` | nothing is boxed over a store in memory |
//! | `routes` | axum's route templates |
//! | `sockets` | concurrent requests on real sockets |
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
