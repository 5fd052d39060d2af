//! JSON form of a call: names in camel case or with underscores, numbers also as text, units also
//! as numbers.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IntoDeserializer, Unexpected, Visitor};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOf, Schema, SchemaFormat, Type};

use crate::config::ATTRIBUTES_MAX_MAX;
use crate::doors::grpc::descriptors::DESCRIPTORS_MAX;
use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;
use crate::doors::grpc::rls::envoy::r#type::v3::RateLimitUnit;
use crate::json::{Flag, List, Text, Whole, quoted};
use crate::web::body::Object;
use crate::web::problem::Problem;

/// Maximum number of entries that are parsed; the setting may be lower.
const ENTRIES_MAX: usize = ATTRIBUTES_MAX_MAX;

/// Envoy's `RateLimitRequest` in protobuf's JSON mapping.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(
    as = RateLimitRequest,
    example = json!({"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address", "value": "203.0.113.9"}]}]})
)]
pub(crate) struct Call<'a> {
    /// Value of the attribute `domain` of every descriptor.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1)]
    domain: Option<Text<'a>>,
    /// Charged all or none.
    #[serde(borrow)]
    #[schema(value_type = Vec<Descriptor<'a>>, min_items = 1, max_items = 64)]
    descriptors: Option<List<Object<Descriptor<'a>>, DESCRIPTORS_MAX>>,
    /// Cost of each descriptor; 0 means 1.
    #[serde(alias = "hits_addend")]
    hits_addend: Option<ShortCount>,
}

/// A request that the rules are matched against.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = RateLimitDescriptor)]
struct Descriptor<'a> {
    /// Attributes of the request.
    #[serde(borrow)]
    #[schema(value_type = Vec<KeyValue<'a>>, min_items = 1)]
    entries: Option<List<Object<KeyValue<'a>>, ENTRIES_MAX>>,
    /// Limit used instead of the rules.
    #[schema(value_type = Option<Limit>)]
    limit: Option<Object<Limit>>,
    /// Cost of this descriptor; 0 only reads.
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Count>,
    /// Refund instead of a charge. Requires a caller with the right `refund`; without a caller, the setting `grpc.refunds`, and
    /// an admin token if tokens exist.
    #[serde(alias = "is_negative_hits")]
    #[schema(value_type = Option<bool>)]
    is_negative_hits: Option<Flag>,
}

/// An attribute.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DescriptorEntry)]
struct KeyValue<'a> {
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    value: Option<Text<'a>>,
}

/// Requests per unit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = DescriptorLimit)]
struct Limit {
    /// 0 denies everything.
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<ShortCount>,
    #[schema(value_type = Unit)]
    unit: Option<Unit>,
}

/// A whole number, or its digits as text.
#[derive(Clone, Copy, Debug)]
struct Count(u64);

/// A count that must fit into 32 bits; checked by [`short`], which knows the field.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
struct ShortCount(Count);

/// A unit of time by its name or its number.
#[derive(Clone, Copy, Debug)]
struct Unit(i32);

impl Call<'_> {
    /// Converts to the protobuf message.
    pub(crate) fn message(self) -> Result<RateLimitRequest, Problem> {
        let descriptors =
            self.descriptors.map_or_else(Vec::new, |List(list)| list).into_iter().enumerate();
        let descriptors = descriptors.map(|(position, Object(descriptor))| {
            descriptor.message().map_err(|(field, reason)| {
                Problem::field(format!("descriptors[{position}].{field}"), reason)
            })
        });
        let hits_addend =
            short(self.hits_addend).map_err(|reason| Problem::field("hitsAddend", reason))?;
        Ok(RateLimitRequest {
            domain: text(self.domain),
            descriptors: descriptors.collect::<Result<_, _>>()?,
            hits_addend,
        })
    }
}

impl Descriptor<'_> {
    fn message(self) -> Result<RateLimitDescriptor, (&'static str, &'static str)> {
        let entry = |Object(KeyValue { key, value })| Entry {
            key: text(key),
            value: text(value).into_bytes(),
        };
        Ok(RateLimitDescriptor {
            entries: self
                .entries
                .map_or_else(Vec::new, |List(list)| list)
                .into_iter()
                .map(entry)
                .collect(),
            limit: self.limit.map(|Object(limit)| limit.message()).transpose()?,
            hits_addend: self.hits_addend.map(|Count(hits)| hits),
            is_negative_hits: self.is_negative_hits.is_some_and(|Flag(flag)| flag),
        })
    }
}

impl Limit {
    fn message(self) -> Result<RateLimitOverride, (&'static str, &'static str)> {
        let requests_per_unit =
            short(self.requests_per_unit).map_err(|reason| ("limit.requestsPerUnit", reason))?;
        let unit = self.unit.map_or(RateLimitUnit::Unknown.into(), |Unit(unit)| unit);
        Ok(RateLimitOverride { requests_per_unit, unit })
    }
}

fn text(text: Option<Text<'_>>) -> String {
    text.map_or_else(String::new, |Text(text)| text.into_owned())
}

/// A 32-bit count; zero if absent.
fn short(count: Option<ShortCount>) -> Result<u32, &'static str> {
    let ShortCount(Count(count)) = count.unwrap_or(ShortCount(Count(0)));
    u32::try_from(count).map_err(|_| "must be at most 4294967295")
}

// ===== impl Count, Unit =====

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a non-negative whole number, or its digits as text")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
        Ok(Count(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
        Whole::deserialize(number.into_deserializer()).map(|Whole(number)| Count(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Count, E> {
        Whole::deserialize(number.into_deserializer()).map(|Whole(number)| Count(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        number.map(Count).ok_or_else(|| E::invalid_value(Unexpected::Str(quoted(text)), &self))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct UnitVisitor;

impl Visitor<'_> for UnitVisitor {
    type Value = Unit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or number of a unit, such as \"MINUTE\"")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Unit, E> {
        RateLimitUnit::from_str_name(name)
            .map(|unit| Unit(unit.into()))
            .ok_or_else(|| E::invalid_value(Unexpected::Str(quoted(name)), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Unit, E> {
        i32::try_from(number)
            .map(Unit)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnitVisitor)
    }
}

// ===== schemas =====

impl utoipa::PartialSchema for Count {
    fn schema() -> RefOr<Schema> {
        number_or_digits("64-bit whole number, or its digits as text.", u64::MAX)
    }
}

impl ToSchema for Count {}

impl utoipa::PartialSchema for ShortCount {
    fn schema() -> RefOr<Schema> {
        number_or_digits("32-bit whole number, or its digits as text.", u32::MAX.into())
    }
}

impl ToSchema for ShortCount {}

impl utoipa::PartialSchema for Unit {
    fn schema() -> RefOr<Schema> {
        use RateLimitUnit::{Day, Hour, Minute, Month, Second, Year};
        let units = [Second, Minute, Hour, Day, Month, Year];
        let names = units.map(|unit| unit.as_str_name());
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        let numbers = units.map(i32::from);
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(numbers.iter().min().copied())
            .maximum(numbers.iter().max().copied());
        OneOf::builder()
            .description(Some("Unit of time, by name or number."))
            .item(name)
            .item(number)
            .into()
    }
}

impl ToSchema for Unit {
    fn name() -> Cow<'static, str> {
        "LimitUnit".into()
    }
}

fn number_or_digits(description: &str, maximum: u64) -> RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
        .maximum(Some(maximum));
    let digits =
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9]+$")).examples(["1"]);
    OneOf::builder().description(Some(description)).item(number).item(digits).into()
}
