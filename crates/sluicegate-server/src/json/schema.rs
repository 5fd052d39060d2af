//! OpenAPI schemas of values that several bodies and answers share.

use std::borrow::Cow;

use serde_json::json;
use sluicegate::{Algorithm, Mode, OnError, PathForm, Refill, Scope};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{Number, PartialSchema, ToSchema};

use super::scalar::{Choice, Id, Seconds, Wait};

/// Text with a number of seconds and a unit.
const TIME_PATTERN: &str = r"^\s*[0-9.]*\s*(us|µs|microseconds?|ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|weeks?)\s*$";

/// An enum whose values have names in JSON, and its name in the document.
pub(crate) trait Named {
    /// Name of the component.
    const SCHEMA: &'static str;
    /// Names of the values.
    const VALUES: &'static [&'static str];
}

/// Implements [`Named`] and a short name of each schema.
macro_rules! named {
    ($($schema:ident = $type:ty),+ $(,)?) => {
        $(
            impl Named for $type {
                const SCHEMA: &'static str = stringify!($schema);
                const VALUES: &'static [&'static str] = &<$type>::NAMES;
            }

            #[doc = concat!("Schema of the names of [`", stringify!($type), "`].")]
            pub(crate) type $schema = Choice<$type>;
        )+
    };
}

named! {
    ScopeName = Scope,
    AlgorithmName = Algorithm,
    RefillName = Refill,
    ModeName = Mode,
    OnErrorName = OnError,
    PathFormName = PathForm,
}

impl<T: Named> PartialSchema for Choice<T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(T::VALUES.iter().copied()))
            .into()
    }
}

impl<T: Named> ToSchema for Choice<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }
}

/// Schema of [`Seconds`].
pub(crate) type Time = Seconds;

impl PartialSchema for Seconds {
    fn schema() -> RefOr<Schema> {
        let seconds = number().exclusive_minimum(Some(Number::Int(0))).examples([json!(62.5)]);
        time("A number of seconds, or text with a unit.", seconds)
    }
}

impl ToSchema for Seconds {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}

impl PartialSchema for Wait {
    fn schema() -> RefOr<Schema> {
        let seconds = number().minimum(Some(Number::Int(0))).examples([json!(2)]);
        time("A number of seconds, or text with a unit; may be 0.", seconds)
    }
}

impl ToSchema for Wait {}

fn number() -> ObjectBuilder {
    let double = SchemaFormat::KnownFormat(KnownFormat::Double);
    ObjectBuilder::new().schema_type(Type::Number).format(Some(double))
}

fn time(description: &str, seconds: ObjectBuilder) -> RefOr<Schema> {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("A number and a unit of time: `62.5s`, `1 minute`, `day`."))
        .pattern(Some(TIME_PATTERN))
        .examples(["62.5s"]);
    OneOfBuilder::new().description(Some(description)).item(seconds).item(text).into()
}

impl PartialSchema for Id<'_> {
    fn schema() -> RefOr<Schema> {
        let bounds = (Number::Int(isize::MIN), Number::UInt(usize::MAX));
        let integer = ObjectBuilder::new().schema_type(Type::Integer);
        let integer = integer.minimum(Some(bounds.0)).maximum(Some(bounds.1));
        OneOfBuilder::new()
            .description(Some("Text, or a whole number of 64 bits."))
            .item(ObjectBuilder::new().schema_type(Type::String))
            .item(integer)
            .into()
    }
}

impl ToSchema for Id<'_> {}

/// Schema of an IP address as text: `ip` in a body.
pub(crate) fn address() -> Schema {
    let text = |format| {
        let format = SchemaFormat::KnownFormat(format);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format))
    };
    OneOfBuilder::new()
        .item(text(KnownFormat::Ipv4))
        .item(text(KnownFormat::Ipv6))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .build()
        .into()
}

/// Schema of the names of attributes, the keys of an object.
pub(crate) fn attribute_name() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The name of an attribute."))
        .pattern(Some("^[A-Za-z0-9_.-]{1,64}$"))
        .build()
        .into()
}

/// Schema of an object of attributes.
pub(crate) fn attributes(values: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(attribute_name()))
        .additional_properties(Some(values.into()))
}
