//! A request described in JSON: the body of `/v1/check`, of a member of a batch, and of `/v1/explain`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use sluicegate::Request;
use sluicegate::rules::Attribute;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Schema, SchemaType, Type};

use super::problem::Problem;
use crate::app::RequestLimits;
use crate::json::{Id, Text, Whole, schema};
use crate::normalize;

/// A request to be checked against the rules.
// Borrows its text from the body.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(
    as = Check,
    example = json!({"user_id": "42", "ip": "203.0.113.9", "endpoint": "/api/search", "plan": "free"})
)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckBody<'a> {
    /// Id of the user: text or a whole number.
    #[serde(borrow)]
    user_id: Option<Id<'a>>,
    /// Address of the client.
    #[schema(schema_with = schema::address)]
    ip: Option<Text<'a>>,
    /// Path of the request, or preferably the route's template.
    #[schema(value_type = Option<String>)]
    endpoint: Option<Text<'a>>,
    /// Method of the request.
    #[schema(value_type = Option<String>)]
    method: Option<Text<'a>>,
    /// Plan of the client.
    #[schema(value_type = Option<String>)]
    plan: Option<Text<'a>>,
    /// Number of tokens to take; 0 only peeks.
    #[schema(value_type = Option<u64>, default = 1)]
    cost: Option<Whole>,
    /// Any other attributes of rules.
    #[serde(default)]
    #[schema(schema_with = attributes)]
    attributes: Attributes<'a>,
}

/// Schema of [`Attributes`].
fn attributes() -> Schema {
    let is_optional = SchemaType::from_iter([Type::Object, Type::Null]);
    schema::attributes(Ref::from_schema_name("Id")).schema_type(is_optional).build().into()
}

/// Custom attributes, without duplicates.
#[derive(Debug, Default)]
struct Attributes<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> CheckBody<'a> {
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
            let most = format!("has more than {} members", limits.attributes_max);
            return Err(Problem::field("attributes", most));
        }
        for (name, value) in &self.attributes.0 {
            let field = format!("attributes.{name}");
            if !Attribute::is_name(name) {
                return Err(Problem::field("attributes", format!("{name:?} is not a name")));
            }
            if ["user_id", "ip", "endpoint", "method", "plan", "cost"].contains(&&**name) {
                return Err(Problem::field(field, "has a field of its own"));
            }
            limits.check_length(&field, value.len())?;
        }
        Ok(())
    }

    /// The address in its canonical form, if there is one.
    pub(crate) fn ip(&self) -> Result<Option<Cow<'_, str>>, Problem> {
        self.ip.as_ref().map(|Text(text)| address("ip", text)).transpose()
    }

    pub(crate) fn request<'b>(&'b self, ip: Option<&'b str>) -> Request<'b>
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
        for (name, value) in &self.attributes.0 {
            request = request.attribute(name, value);
        }
        request
    }
}

/// An address in its canonical form.
pub(crate) fn address<'a>(field: &str, text: &'a str) -> Result<Cow<'a, str>, Problem> {
    normalize::address(text).ok_or_else(|| Problem::field(field, "is not an address"))
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Attributes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut attributes: Vec<(Cow<'de, str>, _)> = Vec::new();
        while let Some(Text(name)) = map.next_key::<Text<'de>>()? {
            // Bounded by the size of the body, and short in practice.
            if attributes.iter().any(|(earlier, _)| *earlier == name) {
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
}

impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributesVisitor)
    }
}
