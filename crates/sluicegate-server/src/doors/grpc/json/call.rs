//! JSON form of a call: names in camel case or with underscores, numbers also as text, units also
//! as numbers.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IntoDeserializer, Unexpected, Visitor};

use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use crate::doors::grpc::rls::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;
use crate::doors::grpc::rls::envoy::r#type::v3::RateLimitUnit;
use crate::json::{Text, Whole};
use crate::web::body::Object;
use crate::web::problem::Problem;

/// `RateLimitRequest`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Call<'a> {
    #[serde(borrow)]
    domain: Option<Text<'a>>,
    #[serde(borrow)]
    descriptors: Option<Vec<Object<Descriptor<'a>>>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Count>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Descriptor<'a> {
    #[serde(borrow)]
    entries: Option<Vec<Object<KeyValue<'a>>>>,
    limit: Option<Object<Limit>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Count>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyValue<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Limit {
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<Count>,
    unit: Option<Unit>,
}

/// A whole number, or its digits as text.
#[derive(Clone, Copy, Debug)]
struct Count(u64);

/// A unit of time by its name or its number.
#[derive(Clone, Copy, Debug)]
struct Unit(i32);

impl Call<'_> {
    /// Converts to the protobuf message.
    pub(crate) fn message(self) -> Result<RateLimitRequest, Problem> {
        let descriptors = self.descriptors.unwrap_or_default().into_iter().enumerate();
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
            entries: self.entries.unwrap_or_default().into_iter().map(entry).collect(),
            limit: self.limit.map(|Object(limit)| limit.message()).transpose()?,
            hits_addend: self.hits_addend.map(|Count(hits)| hits),
            is_negative_hits: self.is_negative_hits.unwrap_or_default(),
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
fn short(count: Option<Count>) -> Result<u32, &'static str> {
    let Count(count) = count.unwrap_or(Count(0));
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
        number.map(Count).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
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
            .ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
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
