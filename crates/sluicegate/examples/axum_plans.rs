//! axum with plans: every account has a limit by its plan, every address has another, and the cost of one route is
//! corrected after the response.
//!
//! ```text
//! cargo run -p sluicegate --example axum_plans --features axum
//! curl -i -H 'authorization: Bearer ann-token' http://127.0.0.1:3000/users/1
//! curl -i -H 'authorization: Bearer bob-token' http://127.0.0.1:3000/search?q=rust
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Path, RawQuery, Request};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sluicegate::middleware::{RateLimitLayer, extract};
use sluicegate::{Limiter, MemoryStore, Quota, Rule, RuleSet};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let rules = RuleSet::new(vec![
        // `default` applies to accounts whose plan no other rule with this pattern names.
        Rule::new(1, "user:{user_id}", Quota::per_minute(5)?)?.with_plan("default")?,
        Rule::new(2, "user:{user_id}", Quota::per_minute(50)?)?.with_plan("pro")?,
        // The endpoint is the route's template: /users/1 and /users/2 are the same endpoint.
        Rule::new(3, "read:{endpoint}:{user_id}", Quota::per_minute(40)?)?,
        Rule::new(4, "ip:{ip}", Quota::per_minute(100)?)?,
    ])?;
    let limits = RateLimitLayer::new(Limiter::new(MemoryStore::new(), rules))
        .user_id(extract::extension(|account: &Account| Some(account.name.into())))
        .plan(extract::extension(|account: &Account| Some(account.plan.into())))
        .correct(|answer| answer.headers.get("x-cost")?.to_str().ok()?.parse().ok());

    let app = Router::new()
        .route("/users/{id}", get(user))
        .route("/search", get(search))
        // The last layer runs first: authentication must come before rate limiting.
        .layer(limits)
        .layer(from_fn(authenticate));
    // Provides the addresses of peers to the layer.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, app).await?)
}

async fn user(Path(id): Path<u64>) -> String {
    format!("user {id}\n")
}

/// One token is charged before the handler; the response reports the higher cost of a long query to the layer.
async fn search(RawQuery(query): RawQuery) -> impl IntoResponse {
    let words = query.unwrap_or_default().split('+').count();
    ([("x-cost", words.to_string())], format!("searched for {words} words\n"))
}

#[derive(Clone, Copy)]
struct Account {
    name: &'static str,
    plan: &'static str,
}

/// A placeholder for your authentication. Puts the account into the extensions of the request.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|token| token.to_str().ok());
    let account = match token {
        Some("Bearer ann-token") => Account { name: "ann", plan: "free" },
        Some("Bearer bob-token") => Account { name: "bob", plan: "pro" },
        _ => return StatusCode::UNAUTHORIZED.into_response(),
    };
    request.extensions_mut().insert(account);
    next.run(request).await
}
