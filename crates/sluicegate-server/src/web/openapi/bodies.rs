//! Schemas of request bodies that borrow their text from the wire.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use super::values::{Address, AlgorithmName, AttributeName, Id, RefillName};

/// A request to be checked against the rules.
#[derive(ToSchema)]
#[schema(example = json!({"user_id": "42", "ip": "203.0.113.9", "endpoint": "/api/search", "plan": "free"}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body of /v1/check and is never made")]
pub(crate) struct Check {
    /// Who asks: text, or a whole number.
    user_id: Option<Id>,
    /// From which address.
    ip: Option<Address>,
    /// For what: a path, or better the route's template.
    endpoint: Option<String>,
    /// To do what with it.
    method: Option<String>,
    /// Under which plan.
    plan: Option<String>,
    /// How many tokens it takes; 0 only looks.
    #[schema(default = 1)]
    cost: Option<u64>,
    /// Anything else that rules ask for.
    attributes: Option<BTreeMap<AttributeName, Id>>,
}

/// Tokens to be taken from the bucket of a key.
#[derive(ToSchema)]
#[schema(example = json!({"key": "user:123", "capacity": 10, "refill_rate": 1}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body of /v1/take and is never made")]
pub(crate) struct Take {
    /// The bucket's name.
    key: String,
    /// The most it holds. Windows hold `refill_rate`, and need none.
    capacity: Option<u64>,
    /// Tokens per interval.
    #[schema(exclusive_minimum = 0)]
    refill_rate: f64,
    /// Seconds.
    #[schema(default = 1, exclusive_minimum = 0)]
    refill_interval: Option<f64>,
    /// How a `token_bucket` refills.
    #[schema(default = "continuous")]
    refill: Option<RefillName>,
    /// How it is counted.
    #[schema(default = "token_bucket")]
    algorithm: Option<AlgorithmName>,
    /// Seconds that granted work may have to wait in line, for a `leaky_bucket`.
    #[schema(minimum = 0)]
    max_wait: Option<f64>,
    /// How many tokens to take; 0 only looks.
    #[schema(default = 1)]
    cost: Option<u64>,
}
