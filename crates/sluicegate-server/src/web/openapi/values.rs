//! What values look like that several bodies and answers have.

#![expect(dead_code, reason = "describes values and is never made")]

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{Number, PartialSchema, ToSchema};

/// Text, or a whole number.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Id {
    Text(String),
    Number(Integer),
}

/// A whole number of 64 bits, with a sign or without.
#[derive(Serialize)]
pub(crate) struct Integer(i64);

impl PartialSchema for Integer {
    fn schema() -> RefOr<Schema> {
        let integer = ObjectBuilder::new().schema_type(Type::Integer);
        let bounds = (Number::Int(isize::MIN), Number::UInt(usize::MAX));
        integer.minimum(Some(bounds.0)).maximum(Some(bounds.1)).into()
    }
}

impl ToSchema for Integer {}

/// An address, IPv4 or IPv6.
pub(crate) struct Address;

impl PartialSchema for Address {
    fn schema() -> RefOr<Schema> {
        let text = |format| {
            let format = SchemaFormat::KnownFormat(format);
            ObjectBuilder::new().schema_type(Type::String).format(Some(format))
        };
        let kinds = [KnownFormat::Ipv4, KnownFormat::Ipv6];
        let either = kinds.into_iter().fold(OneOfBuilder::new(), |all, kind| all.item(text(kind)));
        either.into()
    }
}

impl ToSchema for Address {}

/// True or false; in a query also 1 or 0, and nothing at all for true.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Flag {
    Plain(bool),
    Short(ShortFlag),
}

#[derive(Serialize, ToSchema)]
pub(crate) enum ShortFlag {
    #[serde(rename = "")]
    Bare,
    #[serde(rename = "1")]
    One,
    #[serde(rename = "0")]
    Zero,
}

/// The name of an attribute.
#[derive(Serialize, ToSchema, PartialEq, Eq, PartialOrd, Ord)]
#[schema(pattern = "^[A-Za-z0-9_.-]{1,64}$")]
pub(crate) struct AttributeName(String);

/// What an attribute must match: a glob, in which `*` stays within one path segment and `**` crosses them; or `!` and
/// globs, parted by `|`, of which none may match; or both with a space between. Null takes the condition away.
#[derive(Serialize, ToSchema)]
#[schema(min_length = 1, max_length = 8450, example = "/api/** !/api/login|/api/me/*")]
pub(crate) struct Condition(Option<String>);

/// The name of a rule; empty for none.
#[derive(Serialize, ToSchema)]
#[schema(max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "by user")]
pub(crate) struct OwnName(String);

/// The name of other rules.
#[derive(Serialize, ToSchema)]
#[schema(
    min_length = 1,
    max_length = 128,
    pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
    example = "by user"
)]
pub(crate) struct ReplacedName(String);

/// A number of seconds, or text with a unit.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Time {
    Seconds(Seconds),
    Text(TimeText),
}

/// A number of seconds, or text with a unit; may be 0.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Wait {
    Seconds(WaitSeconds),
    Text(TimeText),
}

#[derive(Serialize, ToSchema)]
#[schema(exclusive_minimum = 0, example = 62.5)]
pub(crate) struct Seconds(f64);

#[derive(Serialize, ToSchema)]
#[schema(minimum = 0, example = 2)]
pub(crate) struct WaitSeconds(f64);

/// A number and a unit of time: `62.5s`, `1 minute`, `day`.
#[derive(Serialize, ToSchema)]
#[schema(
    pattern = r"^\s*[0-9.]*\s*(us|µs|microseconds?|ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|weeks?)\s*$",
    example = "62.5s"
)]
pub(crate) struct TimeText(String);

/// Text with `{attribute}` placeholders.
#[derive(Serialize, ToSchema)]
#[schema(
    min_length = 1,
    max_length = 256,
    pattern = r"^([^{}\x00-\x1f\x7f-\x9f]|\{[A-Za-z0-9_.-]{1,64}\})+$",
    example = "user:{user_id}"
)]
pub(crate) struct KeyPattern(String);

/// The name of a plan; empty for every plan.
#[derive(Serialize, ToSchema)]
#[schema(max_length = 32, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "free")]
pub(crate) struct Plan(String);

/// The status of a denial.
#[derive(Serialize, ToSchema)]
pub(crate) enum DenyStatus {
    #[serde(rename = "429")]
    TooManyRequests,
    #[serde(rename = "403")]
    Forbidden,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeName {
    Global,
    Ip,
    Endpoint,
    User,
    Custom,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AlgorithmName {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    SlidingCounter,
    LeakyBucket,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefillName {
    Continuous,
    Interval,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeName {
    Enforce,
    Shadow,
    Unlimited,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnErrorName {
    Local,
    Allow,
    Deny,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverrideKind {
    Quota,
    Unlimited,
    Blocked,
}
