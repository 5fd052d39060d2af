//! Values of columns in a body.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use sluicegate::{Decimal, DecimalError, Rate};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::json::schema::attributes;
use crate::json::{Text, too_many};

/// Tokens per second, as a float and as the decimal that was most likely written.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenRate {
    float: f64,
    pub(super) decimal: Result<Decimal, DecimalError>,
}

/// Globs that attributes must match, by attribute; null removes one.
#[derive(Debug, Default)]
pub(super) struct Conditions<'a>(pub(super) Vec<(Text<'a>, Option<Text<'a>>)>);

/// The name of other rules.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(
    value_type = String,
    min_length = 1,
    max_length = 128,
    pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
    example = "by user"
)]
pub(super) struct ReplacedName<'a>(#[serde(borrow)] pub(super) Text<'a>);

/// Largest difference between an exact rate and one that was shown and read again, as a part of it: a few units in the
/// last place of a float.
const ROUNDING_MAX: f64 = 1e-15;

impl GivenRate {
    /// True if it is this rate as shown in answers, where it may be rounded: 1 per minute is shown as 0.01666..., which
    /// agrees and is ignored.
    pub(super) fn is_shown_of(self, exact: Rate) -> bool {
        (self.float - exact.per_second()).abs() <= exact.per_second() * ROUNDING_MAX
    }
}

/// Largest condition: 64 exceptions and the rest.
const CONDITION_BYTES_MAX: usize = 8450;
/// Maximum number of conditions that are parsed, those to be removed included. A rule may have fewer.
const CONDITIONS_MAX: usize = 64;

impl PartialSchema for Conditions<'_> {
    fn schema() -> RefOr<Schema> {
        let condition = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some(
                "What an attribute must match: a glob, in which `*` stays within one path segment and `**` crosses \
                 them; or `!` and globs, separated by `|`, of which none may match; or both with a space between. \
                 Null removes the condition.",
            ))
            .min_length(Some(1))
            .max_length(Some(CONDITION_BYTES_MAX))
            .examples(["/api/** !/api/login|/api/me/*"]);
        let conditions = attributes(condition);
        conditions.description(Some("Attributes and what they must match.")).into()
    }
}

impl ToSchema for Conditions<'_> {}

struct RateVisitor;

#[expect(
    clippy::cast_precision_loss,
    reason = "only compared with a float, and kept exactly beside it"
)]
impl Visitor<'_> for RateVisitor {
    type Value = GivenRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<GivenRate, E> {
        Ok(GivenRate { float: number as f64, decimal: number.to_string().parse() })
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<GivenRate, E> {
        Ok(GivenRate { float: number as f64, decimal: number.to_string().parse() })
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<GivenRate, E> {
        Ok(GivenRate { float, decimal: Decimal::from_f64(float) })
    }
}

impl<'de> Deserialize<'de> for GivenRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct ConditionsVisitor;

impl<'de> Visitor<'de> for ConditionsVisitor {
    type Value = Conditions<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes and globs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut conditions: Vec<(Text<'de>, _)> = Vec::new();
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if conditions.len() == CONDITIONS_MAX {
                return Err(too_many(CONDITIONS_MAX));
            }
            if conditions.iter().any(|(earlier, _)| *earlier == name) {
                let Text(name) = name;
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            conditions.push((name, map.next_value()?));
        }
        Ok(Conditions(conditions))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Conditions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConditionsVisitor)
    }
}
