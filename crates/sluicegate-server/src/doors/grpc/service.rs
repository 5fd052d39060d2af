//! `envoy.service.ratelimit.v3.RateLimitService`.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderName, Request, Response};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use sluicegate::{Answer, Ask, Together, Trouble};
use tokio::time::timeout;
use tonic::Status;
use tonic::server::Grpc;
use tower::service_fn;

use super::codec::Rls;
use super::descriptors::{self, Buckets, Descriptor, Part};
use super::rls::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use super::rls::envoy::service::ratelimit::v3::rate_limit_response::Code;
use super::rls::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use super::{CallError, answer};
use crate::app::App;
use crate::auth::admission::Asker;
use crate::body_budget::{CountedBody, Late, NoRoom};
use crate::config::Door;
use crate::data::Right;
use crate::doors::answer_bytes::AnswerBytes;
use crate::doors::refunds::{RefundRecord, RefundSource, has_bucket};
use crate::observe::metrics::Metrics;
use crate::observe::metrics::grpc::CallOutcome;
use crate::observe::metrics::refunds::RefundDoor;

/// Reason for rejecting a refund without a caller.
const REFUNDS_OFF: &str = "refunds need a caller with the right refund; to allow them without one, set grpc.refunds to \"on\"";

/// Name of the service.
pub(super) const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";
/// Path of its method.
pub(crate) const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Header with the status of an error.
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Maximum bytes of a message. Most of it are values of clients' headers, of which Envoy accepts 60
/// KB by default, and several descriptors may repeat a value: a client must not bypass its limits
/// by long headers.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// Answers up to this many bytes are not counted while a client does not read them.
const SMALL_ANSWER_BYTES: usize = 4096;
/// Bytes of a descriptor's status, the name of its rule included.
const STATUS_BYTES: usize = 256;

/// Answers a call over gRPC.
pub(crate) async fn call<B>(
    app: &Arc<App>,
    request: Request<B>,
    peer: IpAddr,
    asker: Asker,
) -> Response<tonic::body::Body>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let request = request.map(|body| counted(app, body, Some(peer), None));
    let (body_timeout, metrics) = (app.limits.body_timeout, &app.metrics);
    let entries_max = app.limits.attributes_max;
    let state = Arc::clone(app);
    let decide = service_fn(move |call: tonic::Request<RateLimitRequest>| {
        let (app, asker) = (Arc::clone(&state), asker.clone());
        async move {
            let source = RefundSource { asker: &asker, peer: Some(peer), door: RefundDoor::Grpc };
            let decided = decide(&app, call.get_ref(), source).await;
            let message = decided.inspect_err(|error| {
                if let CallError::Refused(refused) = error {
                    app.note_refused(Door::Grpc, peer, *refused);
                }
            })?;
            let bytes = answer_bytes(&message);
            let mut response = tonic::Response::new(message);
            if bytes > SMALL_ANSWER_BYTES {
                response.extensions_mut().insert(AnswerBytes(bytes));
            }
            Ok::<_, Status>(response)
        }
    });
    let mut grpc =
        Grpc::new(Rls { entries_max }).apply_max_message_size_config(Some(MESSAGE_BYTES_MAX), None);
    let response = answered(metrics, body_timeout, grpc.unary(decide, request)).await;
    // The status of a successful answer is a trailer, not a header.
    if response.headers().contains_key(STATUS) {
        metrics.grpc.called(CallOutcome::Error);
    }
    response
}

/// Bytes of an answer, approximately.
fn answer_bytes(message: &RateLimitResponse) -> usize {
    let fields = message.response_headers_to_add.iter();
    let fields: usize = fields.map(|field| field.key.len() + field.value.len()).sum();
    fields + message.raw_body.len() + message.statuses.len() * STATUS_BYTES
}

/// Counts the memory of a body. If there is none left, its call has the status `RESOURCE_EXHAUSTED`; if a message takes
/// longer than `within`, `DEADLINE_EXCEEDED`.
pub(super) fn counted<B>(
    app: &App,
    body: B,
    peer: Option<IpAddr>,
    within: Option<Duration>,
) -> impl HttpBody<Data = Bytes, Error = BoxError> + Send + 'static
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    CountedBody::grpc(body, Arc::clone(&app.bodies), peer, within).map_err(|error| {
        if error.is::<NoRoom>() {
            Status::resource_exhausted(NoRoom.to_string()).into()
        } else if error.is::<Late>() {
            Status::deadline_exceeded(Late.to_string()).into()
        } else {
            error
        }
    })
}

/// Waits for the answer within the timeout. A panic becomes the gRPC status `INTERNAL`.
async fn answered(
    metrics: &Metrics,
    body_timeout: Duration,
    answering: impl Future<Output = Response<tonic::body::Body>>,
) -> Response<tonic::body::Body> {
    match timeout(body_timeout, AssertUnwindSafe(answering).catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            metrics.panicked();
            Status::internal("internal error").into_http()
        }
        Err(_) => Status::deadline_exceeded(Late.to_string()).into_http(),
    }
}

/// Decides a gRPC call, and counts it.
async fn decide(
    app: &App,
    call: &RateLimitRequest,
    source: RefundSource<'_>,
) -> Result<RateLimitResponse, CallError> {
    require_rights(app, call, source.asker)?;
    let response = should_rate_limit(app, call, source).await?;
    app.metrics.grpc.called(match response.overall_code() {
        Code::OverLimit => CallOutcome::OverLimit,
        Code::Ok | Code::Unknown => CallOutcome::Ok,
    });
    Ok(response)
}

/// Requires the rights for the descriptors of a call, besides `check`: `take` for a charge of its own limit, `refund` for
/// a refund. Returns true if a request without a caller refunds tokens, which the settings allow.
///
/// # Errors
///
/// A right that is missing, or a refund without a caller that the settings do not allow: it refills a bucket that the
/// client has emptied.
pub(crate) fn require_rights(
    app: &App,
    call: &RateLimitRequest,
    asker: &Asker,
) -> Result<bool, CallError> {
    let mut is_anonymous_refund = false;
    for (position, descriptor) in call.descriptors.iter().enumerate() {
        let right = match descriptor {
            RateLimitDescriptor { is_negative_hits: true, .. } => Right::Refund,
            RateLimitDescriptor { limit: Some(_), .. } => Right::Take,
            _ => continue,
        };
        match asker {
            _ if asker.may(right) => {}
            Asker::Anonymous if app.has_refunds => is_anonymous_refund = true,
            Asker::Anonymous => {
                let field = format!("descriptors[{position}].is_negative_hits");
                return Err(CallError::field(field, REFUNDS_OFF));
            }
            Asker::Administrator(_) | Asker::Caller(_) => {
                return Err(CallError::Refused(asker.refused(right)));
            }
        }
    }
    Ok(is_anonymous_refund)
}

/// Decides a call: the charges of all its descriptors are made in one step, or none. Then refunds
/// are made, whatever was decided. Buckets of descriptors with their own limit are those of the caller's namespace.
///
/// # Errors
///
/// An invalid message, or store errors that no policy could answer.
pub(crate) async fn should_rate_limit(
    app: &App,
    call: &RateLimitRequest,
    source: RefundSource<'_>,
) -> Result<RateLimitResponse, CallError> {
    let descriptors = descriptors::read(call, &app.limits)?;
    let part = |descriptor| Descriptor::part(descriptor, source.asker.namespace());
    let parts: Vec<_> = descriptors.iter().map(part).collect();
    let asks: Vec<_> = parts.iter().filter_map(Part::ask).collect();
    if asks.len() < parts.len() {
        return Box::pin(with_refunds(app, &parts, &asks, source)).await;
    }
    let together = app.check_together(&asks).await?;
    let answers = together.answers().iter().map(Some);
    let answered: Vec<_> = parts.iter().zip(answers).collect();
    Ok(answer::response(app.headers, &answered, together.is_degraded()))
}

/// Decides a call with refunds, and records them.
async fn with_refunds(
    app: &App,
    parts: &[Part<'_>],
    asks: &[Ask<'_, '_>],
    source: RefundSource<'_>,
) -> Result<RateLimitResponse, CallError> {
    let amounts = parts.iter().filter_map(Part::refund);
    let total = amounts.fold(0_u64, u64::saturating_add);
    let mut record = RefundRecord::begin(app, source, None, total).await?;
    let together = if asks.is_empty() { None } else { Some(app.check_together(asks).await?) };
    let mut refunds = Vec::new();
    let given = refund(app, parts).await;
    for (answer, amount) in &given {
        if answer.as_ref().is_ok_and(has_refunded) {
            record.note(*amount);
        }
    }
    record.end().await;
    for (answer, _) in given {
        match answer {
            Ok(answer) => refunds.push(Some(answer)),
            Err(trouble) if asks.is_empty() => return Err(trouble.into()),
            // The decisions about the other descriptors are still reported.
            Err(_) => refunds.push(None),
        }
    }
    let mut charged = together.iter().flat_map(Together::answers);
    let mut refunded = refunds.iter().map(Option::as_ref);
    let answer_to = |part: &Part<'_>| match part.refund() {
        None => charged.next(),
        Some(_) => refunded.next().flatten(),
    };
    let answers: Vec<_> = parts.iter().map(answer_to).collect();
    let answered: Vec<_> = parts.iter().zip(answers).collect();
    let is_degraded = together.as_ref().is_some_and(Together::is_degraded);
    Ok(answer::response(app.headers, &answered, is_degraded))
}

/// True if a refund found a bucket.
fn has_refunded(answer: &Answer) -> bool {
    match answer {
        Answer::Verdict(verdict) => has_bucket(verdict),
        Answer::Decision(_) => true,
    }
}

/// Refunds tokens of the descriptors that ask for it, in order, to the buckets that a call with the
/// same descriptors would charge.
async fn refund(app: &App, parts: &[Part<'_>]) -> Vec<(Result<Answer, Trouble>, u64)> {
    let (mut of_rules, mut beside) = (Vec::new(), Vec::new());
    for part in parts {
        match (&part.buckets, part.refund()) {
            (Buckets::Rules(request), Some(amount)) => of_rules.push((request, amount)),
            (Buckets::Rules(request), None) => beside.push(request),
            (Buckets::OwnLimit { .. }, _) => {}
        }
    }
    let mut of_rules = app.limiter.refund_together(&of_rules, &beside).await.into_iter();
    let mut given = Vec::new();
    for (part, amount) in parts.iter().filter_map(|part| Some((part, part.refund()?))) {
        let answer = match &part.buckets {
            Buckets::Rules(_) => of_rules.next().map(|verdict| verdict.map(Answer::Verdict)),
            Buckets::OwnLimit { key, namespace, limit } => {
                let key = key.as_bytes();
                let decision = app.refund_key(key, *namespace, &limit.quota, amount).await;
                Some(decision.map(Answer::Decision))
            }
        };
        given.extend(answer.map(|answer| (answer, amount)));
    }
    given
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use sluicegate::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error() {
        let metrics = Metrics::new(Arc::new(MemoryStore::new().into()));
        let mistake = async { panic!("on purpose") };
        let response = answered(&metrics, Duration::from_secs(1), mistake).await;
        assert_eq!(response.status(), StatusCode::OK);
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!((status.code(), status.message()), (tonic::Code::Internal, "internal error"));
        assert!(metrics.encode().contains("sluicegate_panics_total 1"));
    }
}
