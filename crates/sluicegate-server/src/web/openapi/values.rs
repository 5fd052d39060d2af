//! What values look like that several bodies and answers have.

#![expect(dead_code, reason = "describes values and is never made")]

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{Number, PartialSchema, ToSchema};

pub(crate) use crate::json::schema::{AlgorithmName, ModeName, RefillName, ScopeName};

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

/// The status of a denial.
#[derive(Serialize, ToSchema)]
pub(crate) enum DenyStatus {
    #[serde(rename = "429")]
    TooManyRequests,
    #[serde(rename = "403")]
    Forbidden,
}
