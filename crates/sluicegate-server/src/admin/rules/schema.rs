//! What the bodies of rules look like, for the API's document. They are read by [`Columns`](super::Columns),
//! which borrows its text from the wire.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use crate::web::openapi::values::{
    AlgorithmName, AttributeName, Condition, KeyPattern, ModeName, OnErrorName, OwnName, Plan,
    RefillName, ReplacedName, ScopeName, Time, Wait,
};

/// A rule to be made, or to take the place of another. What is left out or null has its default.
#[derive(ToSchema)]
#[schema(example = json!({
    "key_pattern": "user:{user_id}", "plan": "free", "tokens": 10, "period": 1, "burst_capacity": 50
}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body and is never made")]
pub(crate) struct NewRule {
    /// Its number; the next one if none is given. Where the path has it already, it must be that.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: Option<u64>,
    /// Which requests share a bucket: text with `{attribute}` placeholders.
    key_pattern: KeyPattern,
    /// What it is about; what the key pattern suggests if none is given.
    scope: Option<ScopeName>,
    /// Tokens per second, instead of `tokens` and `period`, or beside them if they agree.
    #[schema(exclusive_minimum = 0)]
    rate_per_second: Option<f64>,
    /// Tokens that come in in a period. A rule in mode `unlimited` needs none.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Option<u64>,
    /// Seconds, or text such as `62.5s` or `1 minute`.
    period: Option<Time>,
    /// The most that can be taken at once; the tokens of a period if none is given.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Option<u64>,
    /// The plan that it is for; none or empty for every plan.
    plan: Option<Plan>,
    /// How it is counted.
    algorithm: Option<AlgorithmName>,
    /// How a `token_bucket` refills.
    refill: Option<RefillName>,
    /// Seconds that granted work may have to wait in line, for a `leaky_bucket`; or text such as `2s`.
    max_wait: Option<Wait>,
    /// Whether its denials count.
    mode: Option<ModeName>,
    /// What it answers while its store is in trouble.
    on_error: Option<OnErrorName>,
    /// Whether it is switched on.
    #[schema(default = true)]
    is_active: Option<bool>,
    /// A note for people.
    #[schema(max_length = 1024)]
    description: Option<String>,
    /// Attributes and what they must match.
    conditions: Option<BTreeMap<AttributeName, Condition>>,
    /// By what name others replace it; none or empty for none. Several rules may have one name.
    name: Option<OwnName>,
    /// The names of rules that do not apply where it does.
    #[schema(max_items = 32)]
    replaces: Option<Vec<ReplacedName>>,
    /// May come along, and means nothing.
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// The version that was read, if it comes along: a change of another version is refused (412).
    version: Option<u64>,
}

/// Columns of a rule to be changed: a merge patch (RFC 7396). What is left out stays; null brings the default
/// back, or takes a condition away. `rate_per_second` alone replaces `tokens` and `period`.
#[derive(ToSchema)]
#[schema(example = json!({"burst_capacity": 100}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body and is never made")]
pub(crate) struct RulePatch {
    /// Must be that of the path, if it comes along.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: Option<u64>,
    key_pattern: Option<KeyPattern>,
    scope: Option<ScopeName>,
    #[schema(exclusive_minimum = 0)]
    rate_per_second: Option<f64>,
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Option<u64>,
    period: Option<Time>,
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Option<u64>,
    plan: Option<Plan>,
    algorithm: Option<AlgorithmName>,
    refill: Option<RefillName>,
    max_wait: Option<Wait>,
    mode: Option<ModeName>,
    on_error: Option<OnErrorName>,
    is_active: Option<bool>,
    #[schema(max_length = 1024)]
    description: Option<String>,
    conditions: Option<BTreeMap<AttributeName, Condition>>,
    name: Option<OwnName>,
    /// All of them: this list takes the place of the one before.
    #[schema(max_items = 32)]
    replaces: Option<Vec<ReplacedName>>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    version: Option<u64>,
}
