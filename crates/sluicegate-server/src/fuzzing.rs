//! Entrances of the fuzz targets to parsers of bytes from clients, files and databases. Not part of the interface.
//!
//! Each function parses the bytes as the service would, and checks what must hold of the result.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use sluicegate::rules::Attribute;
use sluicegate::{Algorithm, Quota, Request, Rule, RuleSet};

use crate::admin::overrides::body::{NewOverride, OverrideBody};
use crate::app::RequestLimits;
use crate::config::Config;
use crate::data::ViolationOrder;
use crate::doors::grpc::json::call::Call;
use crate::doors::grpc::{codec, descriptors};
use crate::doors::http::authorize::request::ProxiedRequest;
use crate::doors::http::take::TakeBody;
use crate::doors::listen::proxy_protocol;
use crate::doors::resp::commands;
use crate::doors::resp::parser::Command;
use crate::json::rule::{Columns, RulePatch};
use crate::normalize;
use crate::rules::{convert, snapshot};
use crate::time::Timestamp;
use crate::web::body::{Object, parse};
use crate::web::check_body::CheckBody;
use crate::web::query::Query;

/// Limits of requests, as they are by default.
static LIMITS: LazyLock<RequestLimits> = LazyLock::new(|| RequestLimits::of(&Config::default()));

/// Bodies of checks, batches, takes, rules and overrides.
pub fn body(bytes: &[u8]) {
    if let Ok(body) = CheckBody::parse(bytes, &LIMITS) {
        checked(&body);
    }
    if let Ok(batch) = CheckBody::parse_batch(bytes, &LIMITS) {
        batch.iter().for_each(checked);
    }
    if let Ok(Object(body)) = parse::<Object<TakeBody<'_>>>(bytes) {
        let _ = body.quota();
    }
    if let Ok(Object(body)) = parse::<Object<Columns<'_>>>(bytes)
        && let Ok(spec) = body.rule(1)
    {
        let _ = spec.build();
    }
    let _ = parse::<Object<RulePatch<'_>>>(bytes);
    if let Ok(Object(NewOverride(body))) = parse::<Object<NewOverride<'_>>>(bytes) {
        overridden(&body);
    }
    if let Ok(Object(body)) = parse::<Object<OverrideBody<'_>>>(bytes) {
        overridden(&body);
    }
}

fn checked(body: &CheckBody<'_>) {
    if body.validate(&LIMITS).is_ok()
        && let Ok(ip) = body.ip()
    {
        let _ = body.request(ip.as_deref());
    }
}

fn overridden(body: &OverrideBody<'_>) {
    if let Ok(quota) = Quota::per_second(1)
        && let Ok(rule) = Rule::new(1, "user:{user_id}", quota)
    {
        let _ = body.spec(&rule, "42", &LIMITS, Timestamp::from_micros(0));
    }
}

/// Descriptors of Envoy, as protobuf and as JSON.
pub fn descriptors(bytes: &[u8]) {
    let by_protobuf = codec::decode(bytes, LIMITS.attributes_max).ok();
    let by_json =
        parse::<Object<Call<'_>>>(bytes).ok().and_then(|Object(call)| call.message().ok());
    for call in by_protobuf.iter().chain(&by_json) {
        let _ = descriptors::read(call, &LIMITS);
    }
}

/// Headers by which proxies describe a request: lines of a name, a colon and a value.
pub fn header_fields(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&line[colon + 1..])) {
            headers.append(name, value);
        }
    }
    if let Ok(proxied) = ProxiedRequest::described(&headers, LIMITS.value_bytes_max) {
        let _ = proxied.request(None);
    }
    let endpoint = normalize::Endpoint::of_uri(bytes, LIMITS.value_bytes_max);
    let request = endpoint.add_to(Request::new());
    for path in [request.get(&Attribute::Endpoint), request.folded_endpoint()] {
        let is_valid = |path: &str| path.len() <= LIMITS.value_bytes_max && path.is_ascii();
        assert!(path.is_some_and(is_valid), "{path:?}");
    }
    let text = normalize::text(bytes);
    if let Some(address) = normalize::address(&text) {
        assert_eq!(normalize::address(&address).as_deref(), Some(&*address));
    }
}

/// Header of the PROXY protocol: the address and the length, or `None` if it is invalid or incomplete.
#[must_use]
pub fn proxy_protocol(bytes: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    proxy_protocol::parse(bytes).ok().flatten()
}

/// Arguments of a command in the Redis protocol.
#[must_use]
pub fn is_valid_command(command: &Command<'_, '_>) -> bool {
    commands::is_valid(command, &LIMITS)
}

/// Configuration files of other rate limiters. The rules made from them are valid together.
pub fn import(text: &str) {
    for algorithm in [Algorithm::TokenBucket, Algorithm::FixedWindow] {
        for converted in [convert::envoy(text, algorithm), convert::limitador(text, algorithm)] {
            match converted {
                Ok(converted) => drop(RuleSet::new(converted.rules)),
                Err(error) => assert!(error.at.is_none_or(|at| at <= text.len()), "{error:?}"),
            }
        }
    }
}

/// Snapshot file.
pub fn snapshot(bytes: &[u8]) {
    let _ = snapshot::file::parse(bytes);
}

/// Query strings and their cursors. A cursor is displayed as text that parses to the same.
pub fn query(text: &str) {
    if let Ok(query) = Query::read(text) {
        let _ = (query.page(), query.limit(), query.flag("dry_run"));
        for (_, value) in query.pairs() {
            let _ = value.parse::<Timestamp>();
            cursor(value);
        }
    }
    cursor(text);
}

fn cursor(text: &str) {
    if let Ok(order) = ViolationOrder::from_str(text) {
        assert_eq!(order.to_string().parse(), Ok(order), "{text:?}");
    }
}
