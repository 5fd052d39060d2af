//! Builds the answer to a call: statuses, header fields for the client, and the body of a denial.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use sluicegate::headers::{Headers, Legacy, PROBLEM_JSON, Policies, Policy};
use sluicegate::{Answer, Micros, Verdict};

use super::descriptors::{Buckets, Part};
use super::rls::envoy::config::core::v3 as core;
use super::rls::envoy::service::ratelimit::v3::RateLimitResponse;
use super::rls::envoy::service::ratelimit::v3::rate_limit_response::Code;
use super::statuses;

/// A part of a call and its answer; `None` if the outcome is unknown.
pub(super) type Answered<'a, 'p> = (&'a Part<'p>, Option<&'a Answer>);

/// Answer to a call, from the answers to its parts in their order.
pub(super) fn response(
    headers: Headers,
    answered: &[Answered<'_, '_>],
    is_degraded: bool,
) -> RateLimitResponse {
    let policies = policies(answered);
    let is_violated = policies.is_violated();
    let status = |answered: &Answered<'_, '_>| statuses::status(answered, &policies);
    let mut response = RateLimitResponse {
        overall_code: if is_violated { Code::OverLimit } else { Code::Ok }.into(),
        statuses: answered.iter().map(status).collect(),
        response_headers_to_add: fields(headers, &policies),
        dynamic_metadata: metadata(answered, &policies, is_degraded),
        ..RateLimitResponse::default()
    };
    if is_violated {
        response.response_headers_to_add.push(field(&header::CONTENT_TYPE, &PROBLEM_JSON));
        response.raw_body = policies.problem_json(StatusCode::TOO_MANY_REQUESTS);
    }
    response
}

/// Policies reported to the client: those of every part except refunds.
fn policies<'a>(answered: &[Answered<'a, '_>]) -> Policies<'a> {
    let mut policies = Policies::default();
    for (part, answer) in answered.iter().filter(|(part, _)| part.refund().is_none()) {
        match (&part.buckets, answer) {
            (_, Some(Answer::Verdict(verdict))) => policies.add_verdict(verdict),
            (Buckets::OwnLimit { limit, .. }, Some(Answer::Decision(decision))) => {
                let (name, decision) = (&part.descriptor.keys, limit.decision(decision));
                policies.add(Policy::new(name, &limit.quota, decision));
            }
            // A request is answered by a verdict, and every part except refunds has an answer.
            (Buckets::Rules(_), Some(Answer::Decision(_))) | (_, None) => {}
        }
    }
    policies
}

/// Header fields that Envoy adds to the client's response. Envoy derives `X-RateLimit` fields from
/// the statuses itself if its filter is configured to; sending them here too would duplicate them.
fn fields(headers: Headers, policies: &Policies<'_>) -> Vec<core::HeaderValue> {
    let headers = Headers { legacy: Legacy::Off, ..headers };
    // None of the other fields depends on the time of day.
    let fields = headers.fields(policies, Micros::new(0));
    fields.map(|(name, value)| field(&name, &value)).collect()
}

fn field(name: &HeaderName, value: &HeaderValue) -> core::HeaderValue {
    core::HeaderValue {
        key: name.as_str().to_owned(),
        // All of them are printable ASCII.
        value: value.to_str().unwrap_or_default().to_owned(),
        ..core::HeaderValue::default()
    }
}

/// Dynamic metadata for Envoy's log and its other filters: the rule that denied, shadow rules that
/// would have, and whether the store did not answer.
fn metadata(
    answered: &[Answered<'_, '_>],
    policies: &Policies<'_>,
    is_degraded: bool,
) -> Option<Struct> {
    let mut fields = Vec::new();
    let met = |(_, answer): &Answered<'_, '_>| match answer {
        Some(Answer::Verdict(verdict)) => verdict.too_many_rules(),
        _ => None,
    };
    let is_costly = |(_, answer): &Answered<'_, '_>| match answer {
        Some(Answer::Verdict(verdict)) => verdict.is_too_costly(),
        _ => false,
    };
    if let Some(rules) = answered.iter().find_map(met) {
        fields.push(("too_many_rules", number(rules.into())));
    } else if answered.iter().any(is_costly) {
        fields.push(("too_costly", Kind::BoolValue(true)));
    } else if let Some(violated) = policies.tightest().filter(|policy| policy.is_violated()) {
        let rule = violated.rule();
        let or_null = |kind: Option<Kind>| kind.unwrap_or(Kind::NullValue(0));
        fields.extend([
            ("violated_policy", text(policies.name(violated).to_string())),
            ("violated_tier", or_null(rule.map(|rule| text(rule.scope().name())))),
            ("violated_rule", or_null(rule.map(|rule| text(rule.key_pattern().as_str())))),
            ("rule_id", or_null(rule.map(|rule| number(rule.rule_id())))),
            ("retry_after_ms", or_null(violated.decision().retry_after_ms().map(number))),
        ]);
    }
    let shadows: Vec<_> = answered.iter().flat_map(would_have_denied).collect();
    if !shadows.is_empty() {
        fields.push(("shadow_rule_ids", Kind::ListValue(ListValue { values: shadows })));
    }
    if is_degraded {
        fields.push(("degraded", Kind::BoolValue(true)));
    }
    let value = |(name, kind): (&str, Kind)| (name.to_owned(), Value { kind: Some(kind) });
    (!fields.is_empty()).then(|| Struct { fields: fields.into_iter().map(value).collect() })
}

/// Ids of the shadow rules that would have denied.
fn would_have_denied<'a, 'p>(
    (_, answer): &Answered<'a, 'p>,
) -> impl Iterator<Item = Value> + use<'a, 'p> {
    let verdict = match answer {
        Some(Answer::Verdict(verdict)) => Some(verdict),
        Some(Answer::Decision(_)) | None => None,
    };
    let tiers = verdict.into_iter().flat_map(Verdict::tiers);
    let denied = tiers.filter(|tier| !tier.is_enforced() && !tier.decision.is_granted());
    denied.map(|tier| Value { kind: Some(number(tier.rule.rule_id())) })
}

fn text(text: impl Into<String>) -> Kind {
    Kind::StringValue(text.into())
}

/// Rule ids and waits are exact up to 2^53, as in JSON.
fn number(number: u64) -> Kind {
    Kind::NumberValue(number as f64)
}
