//! A request described in JSON: the body of `/v1/check`, of a member of a batch, and of `/v1/explain`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use sluicegate::Request;
use sluicegate::rules::Attribute;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Schema, SchemaType, Type};

use super::body;
use super::problem::Problem;
use crate::app::RequestLimits;
use crate::config::ATTRIBUTES_MAX_MAX;
use crate::json::{Id, ListOf, TOO_MANY, Text, Whole, quoted, schema, text_instead, too_many};
use crate::normalize::{self, NAMESPACE};

/// A request to be checked against the rules.
// Borrows its text from the body.
#[derive(Debug, Default, ToSchema)]
#[schema(
    as = Check,
    example = json!({"user_id": "42", "ip": "203.0.113.9", "endpoint": "/api/search", "plan": "free"})
)]
// For the schema: `CheckParser` reads it.
#[serde(deny_unknown_fields)]
pub(crate) struct CheckBody<'a> {
    /// Id of the user: text or a whole number.
    pub(crate) user_id: Option<Id<'a>>,
    /// Address of the client.
    #[schema(schema_with = schema::address)]
    pub(crate) ip: Option<Text<'a>>,
    /// Path of the request, or preferably the route's template.
    #[schema(value_type = Option<String>)]
    pub(crate) endpoint: Option<Text<'a>>,
    /// Method of the request.
    #[schema(value_type = Option<String>)]
    pub(crate) method: Option<Text<'a>>,
    /// Plan of the client.
    #[schema(value_type = Option<String>)]
    pub(crate) plan: Option<Text<'a>>,
    /// Number of tokens to take; 0 only peeks.
    #[schema(value_type = Option<u64>, default = 1)]
    pub(crate) cost: Option<Whole>,
    /// Any other attributes of rules.
    #[serde(default)]
    #[schema(schema_with = attributes)]
    pub(crate) attributes: Attributes<'a>,
}

/// A field of [`CheckBody`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    UserId,
    Ip,
    Endpoint,
    Method,
    Plan,
    Cost,
    Attributes,
}

/// Names of the fields that are not attributes.
const OWN_FIELDS: [&str; 6] = ["user_id", "ip", "endpoint", "method", "plan", "cost"];

/// Up to this many attributes, a duplicate is found by comparing a name with all before it.
const FEW_ATTRIBUTES: usize = 16;

/// Schema of [`Attributes`].
pub(crate) fn attributes() -> Schema {
    let is_optional = SchemaType::from_iter([Type::Object, Type::Null]);
    schema::attributes(Ref::from_schema_name("Id")).schema_type(is_optional).build().into()
}

/// Custom attributes, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Attributes<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> CheckBody<'a> {
    /// Parses a body. Stops at the first attribute above the maximum.
    pub(crate) fn parse(bytes: &'a [u8], limits: &RequestLimits) -> Result<Self, Problem> {
        body::parse_by(CheckParser { attributes_max: limits.attributes_max }, bytes)
    }

    /// Parses the members of a batch. Stops at the first one above the maximum.
    pub(crate) fn parse_batch(
        bytes: &'a [u8],
        limits: &RequestLimits,
    ) -> Result<Vec<Self>, Problem> {
        let one = CheckParser { attributes_max: limits.attributes_max };
        body::parse_by(ListOf { one, max: limits.batch_max }, bytes)
    }

    /// Validates everything but the address, which [`ip`](Self::ip) parses.
    pub(crate) fn validate(&self, limits: &RequestLimits) -> Result<(), Problem> {
        let texts = [
            ("user_id", self.user_id.as_ref().map(|id| &id.0)),
            ("endpoint", self.endpoint.as_ref().map(|text| &text.0)),
            ("method", self.method.as_ref().map(|text| &text.0)),
            ("plan", self.plan.as_ref().map(|text| &text.0)),
        ];
        for (field, text) in texts {
            limits.check_length(field, text.map_or(0, |text| text.len()))?;
        }
        if self.attributes.0.len() > limits.attributes_max {
            let most = format!("{TOO_MANY}{} members", limits.attributes_max);
            return Err(Problem::field("attributes", most));
        }
        for (name, value) in &self.attributes.0 {
            if !Attribute::is_name(name) {
                let name = quoted(name);
                return Err(Problem::field("attributes", format!("{name:?} is not a name")));
            }
            let field = || format!("attributes.{name}");
            if OWN_FIELDS.contains(&&**name) {
                return Err(Problem::field(field(), "has a field of its own"));
            }
            if value.len() > limits.value_bytes_max {
                limits.check_length(&field(), value.len())?;
            }
        }
        Ok(())
    }

    /// The address in its canonical form, if there is one.
    pub(crate) fn ip(&self) -> Result<Option<Cow<'_, str>>, Problem> {
        self.ip.as_ref().map(|Text(text)| address("ip", text)).transpose()
    }

    /// The request as an administrator names it.
    pub(crate) fn request<'b>(&'b self, ip: Option<&'b str>) -> Request<'b>
    where
        'a: 'b,
    {
        let attributes = self.attributes.0.iter();
        attributes
            .fold(self.own_fields(ip), |request, (name, value)| request.attribute(name, value))
    }

    /// The request of a caller in a namespace, or in none. A namespace that the body names is dropped.
    pub(crate) fn request_in<'b>(
        &'b self,
        namespace: Option<&'b str>,
        ip: Option<&'b str>,
    ) -> Request<'b>
    where
        'a: 'b,
    {
        let mut request = self.own_fields(ip);
        for (name, value) in &self.attributes.0 {
            if name != NAMESPACE {
                request = request.attribute(name, value);
            }
        }
        match namespace {
            Some(namespace) => request.attribute(NAMESPACE, namespace),
            None => request,
        }
    }

    /// The request without custom attributes.
    fn own_fields<'b>(&'b self, ip: Option<&'b str>) -> Request<'b>
    where
        'a: 'b,
    {
        let mut request = Request::new().cost(self.cost.map_or(1, |cost| cost.0));
        if let Some(Id(user_id)) = &self.user_id {
            request = request.user_id(user_id);
        }
        if let Some(ip) = ip {
            request = request.ip(ip);
        }
        if let Some(Text(endpoint)) = &self.endpoint {
            request = request.endpoint(endpoint);
        }
        if let Some(Text(method)) = &self.method {
            request = request.method(method);
        }
        if let Some(Text(plan)) = &self.plan {
            request = request.plan(plan);
        }
        request
    }
}

/// An address in its canonical form.
pub(crate) fn address<'a>(field: &str, text: &'a str) -> Result<Cow<'a, str>, Problem> {
    normalize::address(text).ok_or_else(|| Problem::field(field, "is not an address"))
}

// ===== parsing =====

/// Parses [`CheckBody`]. Written out, unlike other bodies, because the number of attributes is limited by a setting.
#[derive(Clone, Copy, Debug)]
struct CheckParser {
    attributes_max: usize,
}

impl<'de> DeserializeSeed<'de> for CheckParser {
    type Value = CheckBody<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CheckParser {
    type Value = CheckBody<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut body = CheckBody::default();
        let mut seen = 0u8;
        while let Some(field) = map.next_key::<Field>()? {
            if seen & field.bit() != 0 {
                return Err(de::Error::duplicate_field(field.name()));
            }
            seen |= field.bit();
            match field {
                Field::UserId => body.user_id = map.next_value()?,
                Field::Ip => body.ip = map.next_value()?,
                Field::Endpoint => body.endpoint = map.next_value()?,
                Field::Method => body.method = map.next_value()?,
                Field::Plan => body.plan = map.next_value()?,
                Field::Cost => body.cost = map.next_value()?,
                Field::Attributes => {
                    let parser = AttributesParser { max: self.attributes_max };
                    body.attributes = map.next_value_seed(parser)?;
                }
            }
        }
        Ok(body)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(text_instead(text, &self))
    }
}

impl Field {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn name(self) -> &'static str {
        OWN_FIELDS.get(self as usize).copied().unwrap_or("attributes")
    }
}

/// Up to as many attributes as the setting can allow.
impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AttributesParser { max: ATTRIBUTES_MAX_MAX }.deserialize(deserializer)
    }
}

struct AttributesParser {
    max: usize,
}

impl<'de> DeserializeSeed<'de> for AttributesParser {
    type Value = Attributes<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AttributesParser {
    type Value = Attributes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut attributes: Vec<(Cow<'de, str>, _)> = Vec::new();
        // Names of all attributes, if there are many.
        let mut names = HashSet::new();
        while let Some(Text(name)) = map.next_key::<Text<'de>>()? {
            if attributes.len() == self.max {
                return Err(too_many(self.max));
            }
            let is_duplicate = if attributes.len() < FEW_ATTRIBUTES {
                attributes.iter().any(|(earlier, _)| *earlier == name)
            } else {
                if names.is_empty() {
                    names.extend(attributes.iter().map(|(earlier, _)| earlier.clone()));
                }
                !names.insert(name.clone())
            };
            if is_duplicate {
                let name = quoted(&name);
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            let Id(value) = map.next_value()?;
            attributes.push((name, value));
        }
        Ok(Attributes(attributes))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Attributes::default())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(text_instead(text, &self))
    }
}
