//! Why a call gets no answer.

use std::fmt;

use sluicegate::Trouble;
use tonic::Status;

use crate::app::store_trouble_message;

/// Why a call gets no answer.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Something in the message is wrong.
    Field {
        /// Which: `descriptors[0].entries[1].key`.
        field: String,
        /// Why.
        reason: String,
    },
    /// The store is in trouble, and no policy could answer for it.
    Store(Trouble),
}

impl Refused {
    /// This field is wrong.
    pub(super) fn field(field: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self::Field { field: field.into(), reason: reason.to_string() }
    }
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        Self::Store(trouble)
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Field { field, reason } => {
                Self::invalid_argument(format!("{field}: {reason}"))
            }
            Refused::Store(trouble) => Self::unavailable(store_trouble_message(&trouble)),
        }
    }
}
