//! Request bodies: JSON with limits of size and time; errors name the invalid field.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use serde::de::{Deserialize, DeserializeSeed};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::access::peer_in;
use super::problem::Problem;
use crate::app::App;
use crate::body_budget::NoRoom;
pub(crate) use crate::json::Object;
use crate::json::{Choice, Position, TOO_MANY};

/// Reads a body of at most `bytes_max`. The router knows the client.
pub(crate) async fn read<B>(
    app: &App,
    request: Request<B>,
    bytes_max: usize,
) -> Result<Bytes, Problem>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let peer = peer_in(request.extensions());
    read_from(app, request, peer, bytes_max).await
}

/// Reads a body of at most `bytes_max` of a client at `peer`.
pub(crate) async fn read_from<B>(
    app: &App,
    request: Request<B>,
    peer: Option<IpAddr>,
    bytes_max: usize,
) -> Result<Bytes, Problem>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    require_json(request.headers())?;
    let body = Limited::new(app.bodies.whole(request.into_body(), peer), bytes_max);
    match soon(pin!(body.collect()), app.limits.body_timeout).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body has more than {bytes_max} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Ok(Err(error)) if error.is::<NoRoom>() => {
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, NoRoom.to_string()))
        }
        Ok(Err(_)) => Err(Problem::new(StatusCode::BAD_REQUEST, "the body ended early")),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

/// Lets the rest of a body arrive after its request has been answered without it, as one without a token is. Answering
/// before a body has arrived closes the connection, and a client that is still sending would see that instead of the
/// answer. Nothing of it is kept. A body whose announced length exceeds the limit is not waited for.
pub(crate) async fn let_arrive(
    State(app): State<Arc<App>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let bytes_max = app.limits.batch_bytes_max();
    let is_long = request.body().size_hint().lower() > bytes_max as u64;
    // A client that waits for permission to send its body has not begun to.
    let is_held_back = request.headers().contains_key(header::EXPECT);
    if is_long || is_held_back || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let rest = Rest::default();
    let request =
        request.map(|body| Body::new(ReturnedBody { body: Some(body), rest: rest.clone() }));
    let response = next.run(request).await;
    let rest = rest.lock().take();
    if let Some(rest) = rest.filter(|_| response.status() != StatusCode::REQUEST_TIMEOUT) {
        discard(rest, bytes_max, app.limits.body_timeout).await;
    }
    response
}

/// Reads and discards a body within the limits: a connection with unread bytes cannot be reused.
pub(crate) async fn discard(mut body: Body, bytes_max: usize, timeout: Duration) {
    let is_long = body.size_hint().lower() > bytes_max as u64;
    if is_long || body.is_end_stream() {
        return;
    }
    let reading = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > bytes_max {
                break;
            }
        }
    };
    // The answer does not depend on the result.
    let _ = soon(pin!(reading), timeout).await;
}

/// Place for a body that a handler has dropped before its end.
type Rest = Arc<Mutex<Option<Body>>>;

/// A body that returns itself when it is dropped before its end.
#[derive(Debug)]
struct ReturnedBody {
    /// `None` after the end.
    body: Option<Body>,
    rest: Rest,
}

impl HttpBody for ReturnedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        if !self.is_end_stream() {
            *self.rest.lock() = self.body.take();
        }
    }
}

/// Waits for a future with a timeout. Bytes that arrived with the header are available after one more poll, which
/// saves a timer.
async fn soon<F: Future>(mut doing: Pin<&mut F>, within: Duration) -> Result<F::Output, Elapsed> {
    let mut is_first = true;
    let done = poll_fn(|cx| match doing.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if is_first => {
            is_first = false;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    });
    match done.await {
        Some(done) => Ok(done),
        None => timeout(within, doing).await,
    }
}

/// Requires a `content-type` of JSON, if there is one. This also rejects forms of other sites, which a browser sends
/// without a preflight request.
fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let is_packed = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().any(is_packed) {
        let detail = "`content-encoding` is not supported: send the body uncompressed";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || essence.to_ascii_lowercase().ends_with("+json");
    if is_json {
        return Ok(());
    }
    let detail = "the body must be JSON: send `content-type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// Parses JSON.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    parse_by(PhantomData, bytes)
}

/// Parses JSON by this seed.
pub(crate) fn parse_by<'a, S: DeserializeSeed<'a>>(
    seed: S,
    bytes: &'a [u8],
) -> Result<S::Value, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut deserializer).map_err(|error| explain(bytes, &error))?;
    match deserializer.end() {
        Ok(()) => Ok(value),
        Err(_) => {
            Err(Problem::new(StatusCode::BAD_REQUEST, "unexpected bytes after the JSON value"))
        }
    }
}

/// Rejects text with a NUL character, which PostgreSQL cannot store.
pub(crate) fn storable(field: &str, text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        return Err(Problem::field(field, "must not contain a NUL character"));
    }
    Ok(())
}

/// Value of an enum in a field, if it is given.
pub(crate) fn choice<T>(field: &str, given: Option<Choice<T>>) -> Result<Option<T>, Problem> {
    let read = |Choice(read): Choice<T>| read.map_err(|error| Problem::field(field, error));
    given.map(read).transpose()
}

/// Beginning of serde's error about a field that is absent, which is found at the end of its object.
const MISSING: &str = "missing field `";

/// Names the invalid field: that at the position where the parser stopped. Nothing is parsed again.
#[cold]
fn explain(bytes: &[u8], error: &serde_json::Error) -> Problem {
    let mut end = offset(bytes, error.line(), error.column());
    let reason = error.to_string();
    // After an error about its last member, the parser still reads the end of an object or a list. A byte that was not
    // expected belongs to no value.
    let is_end = matches!(bytes[..end], [.., b'}' | b']']) && !reason.starts_with(MISSING);
    if error.is_syntax() || (error.is_data() && is_end) {
        end = end.saturating_sub(1);
    }
    let Position { path, is_at_name } = Position::after(&bytes[..end]);
    // A syntax error may not belong to a field.
    if !error.is_data() && (path.is_empty() || is_at_name) {
        return Problem::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {reason}"));
    }
    // The field is a better position than line and column.
    let reason = reason.rsplit_once(" at line ").map_or(&*reason, |(reason, _)| reason);
    // An unknown, missing or repeated field is reported at its parent.
    let named = ["unknown field `", MISSING, "duplicate field `"]
        .iter()
        .find_map(|start| reason.strip_prefix(start)?.split('`').next());
    let field = match named {
        Some(name) if path.is_empty() => name.to_owned(),
        Some(name) if !path.ends_with(name) => format!("{path}.{name}"),
        None if path.is_empty() && reason.starts_with(TOO_MANY) => "[]".to_owned(),
        None if path.is_empty() => return Problem::new(StatusCode::BAD_REQUEST, reason),
        _ => path,
    };
    Problem::field(field, reason)
}

/// Number of bytes up to a line and column, both of which count from one and by bytes.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let mut line_start = 0;
    for _ in 1..line {
        let length = bytes[line_start..].iter().position(|byte| *byte == b'\n');
        line_start += length.map_or(0, |length| length + 1);
    }
    bytes.len().min(line_start + column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::rule::Columns;

    #[test]
    fn wrong_types_are_named_too() {
        for (body, field) in [
            (r#"{"tokens": "1"}"#, "tokens"),
            (r#"{"tokens": -1}"#, "tokens"),
            (r#"{"tokens": 1.5}"#, "tokens"),
            (r#"{"period": {}}"#, "period"),
            (r#"{"period": "7"}"#, "period"),
            (r#"{"rate_per_second": "1"}"#, "rate_per_second"),
            (r#"{"is_active": 1}"#, "is_active"),
            (r#"{"plan": 1}"#, "plan"),
            (r#"{"conditions": []}"#, "conditions"),
            (r#"{"conditions": {"a": 1}}"#, "conditions.a"),
            (r#"{"conditions": {"a": "1", "a": "2"}}"#, "conditions.a"),
            (r#"{"created_at": "yesterday"}"#, "created_at"),
            (r#"{"version": "1"}"#, "version"),
            (r#"{"key_patern": "x"}"#, "key_patern"),
            (r#"{"plan": "a", "plan": "b"}"#, "plan"),
        ] {
            let problem = parse::<Object<Columns<'_>>>(body.as_bytes()).unwrap_err();
            let problem = serde_json::to_value(&problem).unwrap();
            assert_eq!(problem["field"], field, "{body}: {problem}");
        }
    }
}
