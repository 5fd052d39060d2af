//! Denials as decoded by gRPC clients.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use prost::Message;
use sluicegate::middleware::{OnMissing, RateLimitLayer};
use tonic::{Code, Status};

use crate::middleware::support::{TestStore, call, field, guarded, layer, rule};

/// `google.rpc.Status`, by its definition.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<RpcAny>,
}

/// `google.protobuf.Any`, by its definition.
#[derive(Clone, PartialEq, Message)]
struct RpcAny {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`, by its definition.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<RpcDuration>,
}

/// `google.protobuf.Duration`, by its definition.
#[derive(Clone, PartialEq, Message)]
struct RpcDuration {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

fn rpc(content_type: &str) -> Request<String> {
    let request = Request::post("/pkg.Service/Method").header("content-type", content_type);
    request.body(String::new()).unwrap()
}

/// Decodes a response as tonic's client does.
fn status(answer: &Response<String>) -> Status {
    assert_eq!((answer.status(), answer.body().as_str()), (StatusCode::OK, ""));
    Status::from_header_map(answer.headers()).unwrap()
}

/// The second response to two calls.
async fn second(layer: &RateLimitLayer<TestStore>, content_type: &str) -> Response<String> {
    let app = guarded(layer);
    let _ = call(&app, rpc(content_type)).await;
    call(&app, rpc(content_type)).await
}

#[tokio::test]
async fn a_denial_is_resource_exhausted_with_retry_info() {
    let (layer, clock) = layer(vec![rule(1, "at:{endpoint}", "1/minute")]);
    let app = guarded(&layer);
    let _ = call(&app, rpc("application/grpc")).await;
    clock.advance(Duration::from_micros(500_001));
    let answer = call(&app, rpc("application/grpc")).await;
    let status = status(&answer);
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "the limit of rule 1, at:{endpoint}, is reached");
    assert_eq!(field(&answer, "content-type"), Some("application/grpc"));
    assert_eq!(field(&answer, "retry-after"), Some("60"));
    assert_eq!(field(&answer, "ratelimit"), Some(r#""endpoint";r=0;t=60"#));

    let details = RpcStatus::decode(status.details()).unwrap();
    assert_eq!((details.code, details.message.as_str()), (8, status.message()));
    let [detail] = &details.details[..] else { panic!("{details:?}") };
    assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.RetryInfo");
    let retry_info = RetryInfo::decode(&detail.value[..]).unwrap();
    let exactly = RpcDuration { seconds: 59, nanos: 499_999_000 };
    assert_eq!(retry_info.retry_delay, Some(exactly));
}

#[tokio::test]
async fn waits_of_any_length_are_reported() {
    for (quota, seconds) in
        [("1/s", 1), ("1/day", 86_400), ("1/s burst 1", 1), ("1/40d", 3_456_000)]
    {
        let (layer, _) = layer(vec![rule(1, "global", quota)]);
        let details = status(&second(&layer, "application/grpc").await).details().to_vec();
        let details = RpcStatus::decode(&details[..]).unwrap();
        let retry_info = RetryInfo::decode(&details.details[0].value[..]).unwrap();
        assert_eq!(retry_info.retry_delay, Some(RpcDuration { seconds, nanos: 0 }), "{quota}");
    }
}

#[tokio::test]
async fn never_has_no_retry_info() {
    let (layer, _) = layer(vec![rule(1, "global", "1/s")]);
    let status = status(&call(&guarded(&layer.cost(|_| 2)), rpc("application/grpc")).await);
    assert_eq!((status.code(), status.details().len()), (Code::ResourceExhausted, 0));
}

#[tokio::test]
async fn every_kind_of_grpc_is_known_by_its_type() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour")]);
    for grpc in ["application/grpc+proto", "application/grpc-web+proto", "Application/gRPC;x=1"] {
        let answer = second(&layer, grpc).await;
        assert_eq!(status(&answer).code(), Code::ResourceExhausted);
        assert_eq!(field(&answer, "content-type"), Some(grpc));
    }
    for other in ["application/grpcish", "application/json", "text/plain", "application/grp"] {
        assert_eq!(second(&layer, other).await.status().as_u16(), 429, "{other}");
    }
}

/// Any client can send such a content type, and a cache in front would store an empty 200 for all clients.
#[tokio::test]
async fn only_a_post_is_a_call() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour")]);
    let app = guarded(&layer);
    let _ = call(&app, rpc("application/grpc")).await;
    for method in ["GET", "HEAD", "PUT"] {
        let request = Request::builder().method(method).uri("/pkg.Service/Method");
        let request = request.header("content-type", "application/grpc").body(String::new());
        let answer = call(&app, request.unwrap()).await;
        assert_eq!(answer.status().as_u16(), 429, "{method}");
        assert_eq!(field(&answer, "cache-control"), Some("no-store"));
    }
    let answer = call(&app, rpc("application/grpc")).await;
    assert_eq!(status(&answer).code(), Code::ResourceExhausted);
    assert_eq!(field(&answer, "cache-control"), Some("no-store"));
}

#[tokio::test]
async fn other_refusals_have_codes_too() {
    let codes = [
        (400, Code::InvalidArgument),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::NotFound),
        (503, Code::Unavailable),
        (418, Code::FailedPrecondition),
    ];
    for (http, grpc) in codes {
        let (layer, _) = layer(Vec::new());
        let refuse = OnMissing::Refuse(StatusCode::from_u16(http).unwrap());
        let app = guarded(&layer.on_missing("user_id", refuse));
        let status = status(&call(&app, rpc("application/grpc")).await);
        assert_eq!((status.code(), status.message()), (grpc, "the request has no user_id"));
    }
}

/// A key pattern may contain any characters.
#[tokio::test]
async fn messages_are_encoded() {
    let (layer, _) = layer(vec![rule(1, "100% größe", "1/hour")]);
    let status = status(&second(&layer, "application/grpc").await);
    assert_eq!(status.message(), "the limit of rule 1, 100% größe, is reached");
}
