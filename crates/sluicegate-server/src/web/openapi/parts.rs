//! What several operations have in common: parameters, and answers in the place of what was asked.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

use super::values::Flag;

/// The rule in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes a parameter and is never made")]
pub(crate) struct RulePath {
    /// Its `rule_id`
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    id: u64,
}

/// The override in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes a parameter and is never made")]
pub(crate) struct OverridePath {
    /// Its `override_id`
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    id: u64,
}

/// The bucket in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes parameters and is never made")]
pub(crate) struct BucketPath {
    /// The `rule_id`
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule: u64,
    /// The value of the rule's subject attribute. Further placeholders of its key pattern are query parameters of their names
    #[param(min_length = 1)]
    subject: String,
}

/// Whether to change anything.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a parameter and is never made")]
pub(crate) struct DryRun {
    /// Only say what would be: nothing is changed
    dry_run: Option<Flag>,
}

/// Which version is meant.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a parameter and is never made")]
pub(crate) struct IfMatch {
    /// The version that is meant, such as `"3"`, or `*`
    #[param(rename = "If-Match")]
    if_match: Option<String>,
}

/// Which version is known.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a parameter and is never made")]
pub(crate) struct IfNoneMatch {
    /// The version that is known, such as `"3"`
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// What anybody may be told: what is wrong with the request.
pub(crate) struct Wrong;

impl IntoResponses for Wrong {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        BTreeMap::from([problem("4XX", "What is wrong with the request")])
    }
}

/// What whoever needs the database may be told.
pub(crate) struct WrongOrDown;

impl IntoResponses for WrongOrDown {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = Wrong::responses();
        responses.extend([problem("503", "The database does not answer")]);
        responses
    }
}

fn problem(status: &str, description: &str) -> (String, RefOr<Response>) {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content);
    (status.into(), response.build().into())
}
