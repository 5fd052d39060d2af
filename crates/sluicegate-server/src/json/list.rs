//! Lists with a maximum number of members.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::scalar::text_instead;

/// A list of at most `MAX` members. Parsing stops at the first one above it.
#[derive(Debug)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<T>);

/// Parses a list of at most `max` members, each by `one`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListOf<S> {
    pub(crate) one: S,
    pub(crate) max: usize,
}

/// Beginning of the error about a list or an object with too many members.
pub(crate) const TOO_MANY: &str = "has more than ";

/// Error about a list or an object with more members than `max`.
pub(crate) fn too_many<E: de::Error>(max: usize) -> E {
    E::custom(format_args!("{TOO_MANY}{max} members"))
}

/// Rejects the member that would be one too many, without parsing it.
struct OneTooMany {
    max: usize,
}

impl<'de> DeserializeSeed<'de> for OneTooMany {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(too_many(self.max))
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for ListOf<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let Self { one, max } = self;
        let mut members = Vec::new();
        while members.len() < max {
            match seq.next_element_seed(one)? {
                Some(member) => members.push(member),
                None => return Ok(members),
            }
        }
        seq.next_element_seed(OneTooMany { max })?;
        Ok(members)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(text_instead(text, &self))
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for ListOf<S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Not `deserialize_seq`, which would escape all of a text for its error.
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ListOf { one: PhantomData::<T>, max: MAX }.deserialize(deserializer).map(Self)
    }
}
