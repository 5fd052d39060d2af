//! Middleware for tower services.
//!
//! [`RateLimitLayer`] limits the requests that a server gets: of axum, tonic, plain hyper, or anything else that is a
//! tower service over [`http`]. [`OutgoingLayer`] is its twin for clients, that must respect somebody else's limits.
//!
//! ```
//! # #[cfg(feature = "axum")]
//! # fn app() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::Router;
//! use axum::routing::get;
//! use sluicegate::middleware::RateLimitLayer;
//! use sluicegate::{Limiter, MemoryStore, Quota, Rule, RuleSet};
//!
//! let rules = RuleSet::new(vec![Rule::new(1, "ip:{ip}", Quota::per_second(10)?)?])?;
//! let limiter = Limiter::new(MemoryStore::new(), rules);
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(RateLimitLayer::new(limiter));
//! // Peers' addresses: app.into_make_service_with_connect_info::<SocketAddr>()
//! # Ok(())
//! # }
//! ```
//!
//! Nothing that can go wrong here is a 500: what happens to a request that [lacks](OnMissing) an attribute, has one that
//! is [too long](OnOversized), or that the store has [no answer](OnStoreError) for is the layer's to say.

mod attributes;
mod body;
mod denied;
pub mod extract;
mod future;
mod grpc;
mod judge;
mod layer;
mod outgoing;
mod policy;
mod service;
#[cfg(test)]
mod tests;

pub use attributes::VALUE_BYTES_MAX;
pub use body::ResponseBody;
pub use denied::{Denied, Reason};
pub use extract::Peer;
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use outgoing::{Outgoing, OutgoingError, OutgoingFuture, OutgoingLayer};
pub use policy::{OnFailure, OnMissing, OnOversized, OnStoreError};
pub use service::RateLimit;
