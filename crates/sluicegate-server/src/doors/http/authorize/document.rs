//! OpenAPI description of `/v1/authorize`: the same for every method.

use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{OpenApi, PartialSchema, ToSchema};

use super::PATH;

/// Schema of the body of a denial, which the library writes.
pub(super) struct QuotaExceeded;

impl PartialSchema for QuotaExceeded {
    fn schema() -> RefOr<Schema> {
        let described = |kind: SchemaType, text: &str| {
            ObjectBuilder::new().schema_type(kind).description(Some(text))
        };
        let string = SchemaType::from(Type::String);
        let number_or_null = SchemaType::from_iter([Type::Integer, Type::Null]);
        let count_or_null = |text: &str| {
            let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
            described(number_or_null.clone(), text).format(Some(format)).minimum(Some(0))
        };
        let status = described(Type::Integer.into(), "HTTP status.")
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(0));
        let policies = ArrayBuilder::new()
            .items(Object::with_type(Type::String))
            .description(Some("Policies of the `RateLimit` header that deny."));
        ObjectBuilder::new()
            .description(Some(
                "Problem details of a denial, as in the IETF's draft on `RateLimit` fields. Contradictory headers\n\
                 are denied without policies and rule.",
            ))
            .property("type", described(string.clone(), "URI of the problem's type."))
            .required("type")
            .property("title", Object::with_type(Type::String))
            .required("title")
            .property("status", status)
            .required("status")
            .property("detail", described(string, "Rule that denies, and when to retry."))
            .required("detail")
            .property("violated-policies", policies)
            .property(
                "rule_id",
                count_or_null("Rule with the longest wait; null if the denial is not by a rule."),
            )
            .property(
                "retry_after_ms",
                count_or_null("Milliseconds to wait; null if waiting does not help."),
            )
            .into()
    }
}

impl ToSchema for QuotaExceeded {}

#[derive(OpenApi)]
#[openapi(paths(super::authorize))]
struct Document;

/// OpenAPI document of this path.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    if let Some(item) = document.paths.paths.get_mut(PATH) {
        if let Some(get) = &mut item.get {
            denied_by_403(get);
        }
        for_every_method(item);
    }
    document
}

/// Adds the response with status 403.
fn denied_by_403(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    if let Some(RefOr::T(mut denied)) = responses.get("429").cloned() {
        denied.description =
            "Denied, if the parameter `deny` is 403; or the caller lacks the right `authorize`"
                .into();
        responses.insert("403".into(), denied.into());
    }
}

fn for_every_method(item: &mut PathItem) {
    let get = item.get.clone();
    let like_get = |method: &str| {
        let mut operation: Operation = get.clone()?;
        operation.operation_id = Some(format!("authorize_{method}"));
        Some(operation)
    };
    item.head = like_get("head").map(without_bodies);
    item.post = like_get("post");
    item.put = like_get("put");
    item.patch = like_get("patch");
    item.delete = like_get("delete");
    item.options = like_get("options");
    item.trace = like_get("trace");
}

/// Responses to `HEAD` have no body.
fn without_bodies(mut operation: Operation) -> Operation {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    operation
}
