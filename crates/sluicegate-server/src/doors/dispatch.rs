//! What answers the requests of a door: a router, and before it the one route that nearly all of them take.
//!
//! A router is for many routes, and makes boxes of requests, answers and what is in between. One path is found by
//! comparing it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tower::ServiceExt;

use crate::app::App;
use crate::doors::{grpc, http};

/// What answers the requests of a door. Clones are the same.
#[derive(Clone)]
pub(crate) struct Dispatch {
    router: Router,
    short: Option<Short>,
}

/// The way past the router.
#[derive(Clone)]
enum Short {
    /// `POST /v1/check`.
    Check(Arc<App>),
    /// `ShouldRateLimit`.
    RateLimit(Arc<App>),
}

impl Dispatch {
    /// Those of the HTTP door.
    pub(crate) fn http(app: Arc<App>) -> Self {
        Self { router: http::router(Arc::clone(&app)), short: Some(Short::Check(app)) }
    }

    /// Those of the gRPC door.
    pub(crate) fn grpc(app: Arc<App>) -> Self {
        Self { router: grpc::router(Arc::clone(&app)), short: Some(Short::RateLimit(app)) }
    }

    /// Answers a request of somebody who has connected from `peer`.
    pub(crate) async fn answer(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Response<Body> {
        if matches!(self.short, Some(Short::RateLimit(_))) && !grpc::is_call(request.headers()) {
            return Response::builder()
                .status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
                .body(Body::empty())
                .unwrap_or_default();
        }
        if request.method() == Method::POST {
            match &self.short {
                Some(Short::Check(app)) if request.uri().path() == http::CHECK_PATH => {
                    return http::check(app, request).await;
                }
                Some(Short::RateLimit(app)) if request.uri().path() == grpc::PATH => {
                    return grpc::call(app, request).await.map(Body::new);
                }
                _ => {}
            }
        }
        request.extensions_mut().insert(ConnectInfo(peer));
        let Ok(response) = self.router.clone().oneshot(request.map(Body::new)).await;
        response
    }
}

/// Nothing goes past the router.
impl From<Router> for Dispatch {
    fn from(router: Router) -> Self {
        Self { router, short: None }
    }
}
