//! Parameters and responses that several operations share.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses, Number, PartialSchema as _};

/// The largest id of a rule or an override.
const ID_MAX: usize = (1 << 53) - 1;

/// Pattern of the name of a caller.
const CALLER_NAME: &str = "^[A-Za-z0-9._-]{1,64}$";

/// Defines parameters, each a type for `params(...)`.
macro_rules! parameters {
    ($($(#[$doc:meta])+ $type:ident: [$($parameter:expr),+ $(,)?]),+ $(,)?) => {
        $(
            $(#[$doc])+
            pub(crate) struct $type;

            impl IntoParams for $type {
                fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                    vec![$($parameter),+]
                }
            }
        )+
    };
}

parameters! {
    /// The rule in a path.
    RulePath: [path("id", "Its `rule_id`", id())],
    /// The override in a path.
    OverridePath: [path("id", "Its `override_id`", id())],
    /// The bucket in a path.
    BucketPath: [
        path("rule", "The `rule_id`", id()),
        path(
            "subject",
            "The value of the rule's subject attribute. Further placeholders of its key pattern are query \
             parameters of their names",
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).build().into(),
        ),
    ],
    /// The caller in a path.
    CallerPath: [path(
        "name",
        "Its `name`",
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(CALLER_NAME)).build().into(),
    )],
    /// `dry_run` in a query.
    DryRun: [optional(
        "dry_run",
        ParameterIn::Query,
        "Answer what would be changed, and change nothing",
        flag(),
    )],
    /// `deny` in a query.
    Deny: [optional(
        "deny",
        ParameterIn::Query,
        "The status of a denial, for clients that go by it. Then every answer has the headers of the limit; \
         without it a denial is 200 and has none of them",
        names(&["429", "403"], None),
    )],
    /// The version to be changed.
    IfMatch: [optional(
        "If-Match",
        ParameterIn::Header,
        "The version to be changed, such as `\"3\"`, or `*`",
        text(),
    )],
    /// The reason of a change.
    Reason: [optional(
        "X-Sluicegate-Reason",
        ParameterIn::Header,
        "Reason for the change, recorded in the history: UTF-8 without control characters, at most 1024 bytes",
        text(),
    )],
    /// `*` where a request creates only.
    CreateOnly: [optional(
        "If-None-Match",
        ParameterIn::Header,
        "`*` to create only: 412 if there is one already",
        names(&["*"], None),
    )],
    /// The version that the client has.
    IfNoneMatch: [optional(
        "If-None-Match",
        ParameterIn::Header,
        "The version that the client has, such as `\"3\"`",
        text(),
    )],
}

fn path(name: &str, description: &str, schema: Schema) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn optional(name: &str, place: ParameterIn, description: &str, schema: Schema) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn id() -> Schema {
    let RefOr::T(Schema::Object(mut id)) = u64::schema() else { return text() };
    (id.minimum, id.maximum) = (Some(Number::Int(1)), Some(Number::UInt(ID_MAX)));
    id.into()
}

fn text() -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .build()
        .into()
}

fn names(names: &[&str], description: Option<&str>) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(description)
        .enum_values(Some(names.iter().copied()))
        .build()
        .into()
}

/// A flag of a query: `dry_run`, `dry_run=true` or `dry_run=1`.
fn flag() -> Schema {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(names(&["", "1", "0"], Some("Empty and 1 are true")))
        .build()
        .into()
}

/// Responses to a wrong request.
pub(crate) struct Wrong;

impl IntoResponses for Wrong {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        BTreeMap::from([problem("4XX", "What is wrong with the request")])
    }
}

/// [`Wrong`], and the response while the database does not answer.
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
