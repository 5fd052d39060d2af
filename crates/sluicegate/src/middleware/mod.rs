//! Middleware for tower services.
//!
//! [`RateLimitLayer`] limits the requests that a server gets: of axum, tonic, plain hyper, or any other
//! tower service over [`http`]. [`OutgoingLayer`] paces a client's requests to keep the limits of another service.
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
//! No failure of the layer is a 500. The layer has a policy for a request that [lacks](OnMissing) an attribute, one
//! whose attribute is [too long](OnOversized), and a [store error](OnStoreError).

mod admission;
mod attributes;
mod body;
mod denied;
pub mod extract;
mod future;
mod grpc;

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
