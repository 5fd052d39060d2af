//! The examples, on real sockets.

#[path = "../../examples/axum_plans.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod axum_plans;
#[path = "../../examples/hyper_service.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod hyper_service;
#[path = "../../examples/tonic_service.rs"]
#[expect(dead_code, reason = "cargo runs its main, the test what that calls")]
mod tonic_service;

use std::net::SocketAddr;

use tokio::task::LocalSet;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::middleware::support::{fetch, field, listen};

const ANN: (&str, &str) = ("authorization", "Bearer ann-token");
const BOB: (&str, &str) = ("authorization", "Bearer bob-token");

async fn statuses(address: SocketAddr, path: &str, user: (&str, &str), calls: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..calls {
        statuses.push(fetch(address, path, &[user]).await.status().as_u16());
    }
    statuses
}

/// Runs a server while a client does its work.
async fn with_server(
    server: impl Future<Output = Result<(), Box<dyn std::error::Error>>> + 'static,
    client: impl Future<Output = ()>,
) {
    let local = LocalSet::new();
    let server = local.spawn_local(async move { server.await.unwrap() });
    local.run_until(client).await;
    server.abort();
}

#[tokio::test]
async fn axum_plans_limits_by_plan_and_route() {
    let (listener, address) = listen().await;
    with_server(axum_plans::serve(listener), async {
        assert_eq!(fetch(address, "/users/1", &[]).await.status().as_u16(), 401);
        // /users/1 and /users/2 are one endpoint, and one user.
        assert_eq!(fetch(address, "/users/1", &[ANN]).await.body(), "user 1\n");
        assert_eq!(statuses(address, "/users/2", ANN, 5).await, [200, 200, 200, 200, 429]);
        let denied = fetch(address, "/users/3", &[ANN]).await;
        assert_eq!(field(&denied, "retry-after"), Some("12"));
        assert!(denied.body().contains(r#""violated-policies":["user-1"]"#), "{denied:?}");

        // Another plan; the route has a limit for all ids.
        let mut passed = 0;
        for id in 0..45 {
            let answer = fetch(address, &format!("/users/{id}"), &[BOB]).await;
            passed += usize::from(answer.status().as_u16() == 200);
        }
        assert_eq!(passed, 40);
        // Charged one before, three after.
        let answer = fetch(address, "/search?q=exact+rate+limits", &[BOB]).await;
        assert_eq!(answer.body(), "searched for 3 words\n");
        let left = field(&answer, "ratelimit").unwrap();
        assert!(left.contains(r#""user-2";r=7;"#), "{left}");
    })
    .await;
}

#[tokio::test]
async fn hyper_service_limits_by_address() {
    let (listener, address) = listen().await;
    with_server(hyper_service::serve(listener), async {
        assert_eq!(fetch(address, "/a", &[]).await.body(), "hello from /a\n");
        let forged = ("x-forwarded-for", "198.51.100.1");
        assert_eq!(statuses(address, "/", forged, 4).await, [200, 200, 429, 429]);
        let denied = fetch(address, "/", &[]).await;
        assert_eq!(field(&denied, "retry-after"), Some("20"));
        assert_eq!(field(&denied, "ratelimit-policy"), Some(r#""ip";q=3;w=60"#));
    })
    .await;
}

async fn connect(address: SocketAddr) -> HealthClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

#[tokio::test]
async fn tonic_service_answers_as_grpc_does() {
    let (listener, address) = listen().await;
    with_server(tonic_service::serve(listener), async {
        let mut client = connect(address).await;
        for left in ["2", "1", "0"] {
            let answer = client.check(HealthCheckRequest::default()).await.unwrap();
            assert_eq!(answer.metadata().get("x-ratelimit-remaining").unwrap(), left);
        }
        let denied = client.check(HealthCheckRequest::default()).await.unwrap_err();
        assert_eq!(denied.code(), Code::ResourceExhausted);
        assert_eq!(denied.message(), "the limit of rule 1, calls:{ip}, is reached");
        assert_eq!(denied.metadata().get("retry-after").unwrap(), "20");
        assert!(!denied.details().is_empty());
        // Another connection does not evade the limit, and other methods have limits of their own.
        let mut other = connect(address).await;
        let denied = other.check(HealthCheckRequest::default()).await.unwrap_err();
        assert_eq!(denied.code(), Code::ResourceExhausted);
        assert!(other.watch(HealthCheckRequest::default()).await.is_ok());
    })
    .await;
}
