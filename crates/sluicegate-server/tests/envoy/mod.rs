//! The gRPC front door: called by a gRPC client, and by the real Envoy in front of an application.

mod app;
mod calls;
mod docs;
mod health;
mod imported;
mod json;
mod limits;
mod messages;
mod proxied;
mod proxy;
mod refunds;
pub(crate) mod rls;
mod trouble;
