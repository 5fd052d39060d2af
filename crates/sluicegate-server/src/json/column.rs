//! Members of a body that may be absent, null or given.

use serde::de::{Deserialize, Deserializer};

/// A column of a body. Null stands for its default, as in a merge patch (RFC 7396).
#[derive(Debug, Default)]
pub(crate) enum Column<T> {
    #[default]
    Absent,
    Null,
    Given(T),
}

impl<T> Column<T> {
    pub(crate) fn given(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Sets a column unless it is absent; true if it did.
    pub(crate) fn set<U: Default>(&self, place: &mut U, value: impl FnOnce(&T) -> U) -> bool {
        self.set_or(place, U::default(), value)
    }

    pub(crate) fn set_or<U>(&self, place: &mut U, default: U, value: impl FnOnce(&T) -> U) -> bool {
        match self {
            Self::Absent => return false,
            Self::Null => *place = default,
            Self::Given(given) => *place = value(given),
        }
        true
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Given))
    }
}
