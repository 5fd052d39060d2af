//! Plain hyper: one limit per address, around any service function.
//!
//! ```text
//! cargo run -p sluicegate --example hyper_service --features tower
//! for i in 1 2 3 4; do curl -i http://127.0.0.1:3000/; done
//! ```

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use sluicegate::middleware::{Peer, RateLimitLayer};
use sluicegate::{Limiter, MemoryStore, Quota, Rule, RuleSet};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let rules = RuleSet::new(vec![Rule::new(1, "ip:{ip}", Quota::per_minute(3)?)?])?;
    let limits = RateLimitLayer::new(Limiter::new(MemoryStore::new(), rules));
    // One clone per connection; clones share the limits.
    let service = limits.layer(service_fn(hello));
    loop {
        let (stream, peer) = listener.accept().await?;
        // hyper does not pass the peer's address to its services.
        let service = service.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer.ip()));
            request
        });
        tokio::spawn(async move {
            let connection = Builder::new(TokioExecutor::new());
            let service = TowerToHyperService::new(service);
            // A broken connection needs no handling.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(format!("hello from {}\n", request.uri().path()).into()))
}
