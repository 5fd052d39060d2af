//! tonic: calls are limited by method and address. A denial is `RESOURCE_EXHAUSTED`, with the time to wait in its
//! details.
//!
//! gRPC's health service stands for your own.
//!
//! ```text
//! cargo run -p sluicegate --example tonic_service --features tower
//! printf '\0\0\0\0\0' | curl -i --http2-prior-knowledge -H 'content-type: application/grpc' --data-binary @- \
//!     --output - http://127.0.0.1:3000/grpc.health.v1.Health/Check
//! ```

use std::error::Error;

use sluicegate::middleware::RateLimitLayer;
use sluicegate::{Limiter, MemoryStore, Quota, Rule, RuleSet};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic_health::server::health_reporter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let rules = RuleSet::new(vec![
        // The endpoint is the path of the method.
        Rule::new(1, "calls:{ip}", Quota::per_minute(3)?)?
            .with_condition("endpoint", "/grpc.health.v1.Health/Check")?,
        Rule::new(2, "global", Quota::per_second(1000)?)?,
    ])?;
    let limits = RateLimitLayer::new(Limiter::new(MemoryStore::new(), rules)).peer(|request| {
        let connection = request.extensions.get::<TcpConnectInfo>()?;
        Some(connection.remote_addr()?.ip())
    });

    let (_reporter, service) = health_reporter();
    let server = Server::builder().layer(limits).add_service(service);
    Ok(server.serve_with_incoming(TcpIncoming::from(listener)).await?)
}
