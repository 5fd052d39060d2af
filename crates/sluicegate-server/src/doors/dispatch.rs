//! The entrance of the HTTP and gRPC doors: the guard, then the fast path or the router.
//!
//! A router serves many routes and boxes requests and answers on the way. Nearly all requests of a door are for one
//! path; that path is answered here, without it, and is not known to the router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use tonic::Status;
use tower::ServiceExt;

use super::admission;
use super::answer_bytes::AnswerSize;
use super::grpc::json;
use super::http::{authorize, check, refund, take};
use super::{grpc, http};
use crate::app::App;
use crate::auth::admission::{CredentialField, Refused};
use crate::auth::connection::ConnectionInfo;
use crate::auth::guard::Guard;
use crate::config::HttpRoutes;
use crate::data::Right;
use crate::observe::metrics::grpc::CallOutcome;
use crate::web::body;
use crate::web::problem::Problem;

/// Answers the requests of a door. Clones share state.
#[derive(Clone)]
pub(crate) struct Dispatch {
    door: Door,
    router: Router,
}

#[derive(Clone)]
enum Door {
    Http(Arc<App>),
    Grpc(Arc<App>),
    /// A router alone.
    #[cfg(test)]
    Bare,
}

impl Dispatch {
    /// The entrance of an HTTP listener with these routes.
    pub(crate) fn http(app: Arc<App>, routes: HttpRoutes) -> Self {
        Self { router: http::router(Arc::clone(&app), routes), door: Door::Http(app) }
    }

    /// The entrance of the gRPC door.
    pub(crate) fn grpc(app: Arc<App>) -> Self {
        Self { router: grpc::router(Arc::clone(&app)), door: Door::Grpc(app) }
    }

    /// Size of the answers to be expected of a path.
    pub(crate) fn answer_size(&self, path: &str) -> AnswerSize {
        if matches!(self.door, Door::Grpc(_)) {
            return AnswerSize::Small;
        }
        match path {
            check::PATH | take::PATH | refund::PATH | authorize::PATH => AnswerSize::Small,
            check::BATCH_PATH => AnswerSize::Batch,
            _ => AnswerSize::Large,
        }
    }

    /// Answers a request of a connection.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<ConnectionInfo>,
    ) -> Response<Body> {
        match &self.door {
            Door::Http(app) => self.answer_http(app, request, connection).await,
            Door::Grpc(app) => self.answer_grpc(app, request, connection).await,
            #[cfg(test)]
            Door::Bare => self.route(request, connection).await,
        }
    }

    async fn answer_http(
        &self,
        app: &App,
        request: Request<Incoming>,
        connection: &Arc<ConnectionInfo>,
    ) -> Response<Body> {
        let path = request.uri().path();
        // Proxies pass on the Host, Origin and other fields of their clients. A page that asks this path itself can
        // spend tokens and read what is left, no more.
        if path != authorize::PATH
            && let Err(foreign) = Guard::require_own_site(
                request.uri(),
                request.headers(),
                connection.listener.is_local,
            )
        {
            app.note_foreign_site(connection.peer.ip());
            return Problem::from(foreign).into_response();
        }
        if path != check::PATH {
            return self.admit_and_route(app, request, connection).await;
        }
        if request.method() != Method::POST {
            return not_a_post(request).await;
        }
        let field = CredentialField::Authorization;
        match app.admit(connection, request.headers(), field, Right::Check) {
            Ok(asker) => check::check(app, request, connection.peer.ip(), &asker)
                .await
                .unwrap_or_else(IntoResponse::into_response),
            Err(refused) => refuse(app, request, field, refused).await,
        }
    }

    /// Admits a request of a data path, and routes it.
    async fn admit_and_route(
        &self,
        app: &App,
        mut request: Request<Incoming>,
        connection: &Arc<ConnectionInfo>,
    ) -> Response<Body> {
        if let Some((right, field)) = needs(request.uri().path()) {
            match app.admit(connection, request.headers(), field, right) {
                Ok(asker) => drop(request.extensions_mut().insert(asker)),
                Err(refused) => return refuse(app, request, field, refused).await,
            }
        }
        self.route(request, connection).await
    }

    async fn answer_grpc(
        &self,
        app: &Arc<App>,
        request: Request<Incoming>,
        connection: &Arc<ConnectionInfo>,
    ) -> Response<Body> {
        if !grpc::is_call(request.headers()) {
            return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
        }
        if grpc::is_from_page(request.headers()) {
            app.note_foreign_site(connection.peer.ip());
            let refused = Status::permission_denied("requests from web pages are not allowed");
            return refused.into_http();
        }
        if request.method() == Method::POST && request.uri().path() == grpc::PATH {
            let field = CredentialField::Authorization;
            return match app.admit(connection, request.headers(), field, Right::Check) {
                Ok(asker) => {
                    let call = grpc::call(app, request, connection.peer.ip(), asker);
                    call.await.map(Body::new)
                }
                Err(refused) => {
                    app.metrics.grpc.called(CallOutcome::Error);
                    admission::status(refused).into_http()
                }
            };
        }
        self.route(request, connection).await
    }

    async fn route(
        &self,
        mut request: Request<Incoming>,
        connection: &Arc<ConnectionInfo>,
    ) -> Response<Body> {
        request.extensions_mut().insert(Arc::clone(connection));
        let Ok(response) = self.router.clone().oneshot(request.map(Body::new)).await;
        response
    }
}

/// 405 for the fast path, as the router answers it for other paths.
async fn not_a_post(request: Request<Incoming>) -> Response<Body> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut response = http::method_not_allowed(method, uri).await.into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

#[cfg(test)]
impl From<Router> for Dispatch {
    fn from(router: Router) -> Self {
        Self { router, door: Door::Bare }
    }
}

/// Right that a path of the HTTP door needs, and the field with its credentials; `None` for other paths.
fn needs(path: &str) -> Option<(Right, CredentialField)> {
    let right = match path {
        check::PATH | check::BATCH_PATH | json::PATH => Right::Check,
        take::PATH => Right::Take,
        refund::PATH => Right::Refund,
        authorize::PATH => return Some((Right::Authorize, CredentialField::Token)),
        _ => return None,
    };
    Some((right, CredentialField::Authorization))
}

/// Answers a refused request over HTTP. The rest of its body is read and discarded.
async fn refuse(
    app: &App,
    request: Request<Incoming>,
    field: CredentialField,
    refused: Refused,
) -> Response<Body> {
    let (parts, sent) = request.into_parts();
    let mut response = admission::problem(refused, field).into_response();
    let mut body_timeout = app.limits.body_timeout;
    if parts.uri.path() == authorize::PATH {
        authorize::finish(&mut response, &parts.method);
        body_timeout = authorize::BODY_TIMEOUT;
    }
    // A client that waits for permission to send its body has not begun to.
    if !parts.headers.contains_key(header::EXPECT) {
        body::discard(Body::new(sent), app.limits.batch_bytes_max(), body_timeout).await;
    }
    response
}
