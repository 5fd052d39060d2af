//! Rejections of gRPC calls: a status with `RetryInfo`.

use std::fmt::Write;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use super::denied::NO_STORE;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

pub(super) const RESOURCE_EXHAUSTED: u32 = 8;

/// Is it a gRPC or gRPC-Web call? Those are always `POST`: a `GET` with such a content type would have
/// its denial answered with an empty 200, which a cache might store for other clients.
pub(super) fn is_call(parts: &Parts) -> bool {
    if parts.method != Method::POST {
        return false;
    }
    let content_type = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let starts =
        content_type.get(..GRPC.len()).is_some_and(|s| s.eq_ignore_ascii_case(GRPC.as_bytes()));
    // `application/grpc`, `application/grpc+proto`, `application/grpc-web+proto`, but not `application/grpcish`.
    starts && content_type.get(GRPC.len()).is_none_or(|next| !next.is_ascii_alphanumeric())
}

/// The gRPC code that corresponds to an HTTP status.
pub(super) fn code(status: StatusCode) -> u32 {
    match status.as_u16() {
        429 => RESOURCE_EXHAUSTED,
        400 | 411 | 413 | 414 | 422 | 431 => 3, // INVALID_ARGUMENT
        401 => 16,                              // UNAUTHENTICATED
        403 => 7,                               // PERMISSION_DENIED
        404 => 5,                               // NOT_FOUND
        500..=599 => 14,                        // UNAVAILABLE
        _ => 9,                                 // FAILED_PRECONDITION
    }
}

/// A trailers-only response: no body, the status in the head. Has a `RetryInfo` if `retry_after` is given.
pub(super) fn answer(
    parts: &Parts,
    code: u32,
    message: &str,
    retry_after: Option<Duration>,
) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let fields = response.headers_mut();
    // gRPC-Web clients expect their own content type.
    let content_type = parts.headers.get(CONTENT_TYPE).cloned().unwrap_or(GRPC);
    fields.insert(CONTENT_TYPE, content_type);
    fields.insert(CACHE_CONTROL, NO_STORE);
    fields.insert(GRPC_STATUS, code.into());
    // Both are encoded, so both conversions succeed.
    if let Ok(message) = HeaderValue::try_from(percent_encoded(message)) {
        fields.insert(GRPC_MESSAGE, message);
    }
    if let Some(retry_after) = retry_after {
        let details = STANDARD_NO_PAD.encode(status(code, message, retry_after));
        if let Ok(details) = HeaderValue::try_from(details) {
            fields.insert(GRPC_DETAILS, details);
        }
    }
    response
}

/// Percent-encodes a message for `grpc-message`. By hand: ten lines do not justify a dependency of the library.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// Encodes a `google.rpc.Status` with one `google.rpc.RetryInfo`.
fn status(code: u32, message: &str, retry_after: Duration) -> Vec<u8> {
    let mut delay = Vec::new();
    number(&mut delay, 1, retry_after.as_secs());
    number(&mut delay, 2, retry_after.subsec_nanos().into());
    let mut retry_info = Vec::new();
    bytes(&mut retry_info, 1, &delay);
    let mut any = Vec::new();
    bytes(&mut any, 1, RETRY_INFO.as_bytes());
    bytes(&mut any, 2, &retry_info);

    let mut status = Vec::new();
    number(&mut status, 1, code.into());
    bytes(&mut status, 2, message.as_bytes());
    bytes(&mut status, 3, &any);
    status
}

/// Appends a varint field; zero, its default, is left out.
fn number(to: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        to.push(field << 3);
        varint(to, value);
    }
}

/// Appends a length-delimited field: bytes, text or a message.
fn bytes(to: &mut Vec<u8>, field: u8, value: &[u8]) {
    to.push(field << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

/// Appends a varint: seven bits a byte, the lowest first.
fn varint(to: &mut Vec<u8>, mut value: u64) {
    while let [low, ..] = value.to_le_bytes()
        && value > 0x7f
    {
        to.push(low | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}
