//! Errors of a call.

use std::fmt;

use sluicegate::Trouble;
use tonic::Status;

use crate::app::store_trouble_message;
use crate::auth::admission::Refused;
use crate::data::DataError;
use crate::doors::admission;

/// Error of a call.
#[derive(Debug)]
pub(crate) enum CallError {
    /// A field of the message is invalid.
    Field {
        /// Path of the field: `descriptors[0].entries[1].key`.
        field: String,
        reason: String,
    },
    /// The caller lacks a right.
    Refused(Refused),
    /// The store is in trouble, and no policy could answer.
    Store(Trouble),
    /// A refund of an administrator cannot be recorded, and nothing was done.
    Unrecorded(DataError),
}

impl CallError {
    /// Error about a field.
    pub(super) fn field(field: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self::Field { field: field.into(), reason: reason.to_string() }
    }
}

impl From<Trouble> for CallError {
    fn from(trouble: Trouble) -> Self {
        Self::Store(trouble)
    }
}

impl From<DataError> for CallError {
    fn from(error: DataError) -> Self {
        Self::Unrecorded(error)
    }
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Field { field, reason } => {
                Self::invalid_argument(format!("{field}: {reason}"))
            }
            CallError::Refused(refused) => admission::status(refused),
            CallError::Store(trouble) => Self::unavailable(store_trouble_message(&trouble)),
            CallError::Unrecorded(_) => Self::unavailable(
                "the history cannot be written, so nothing was changed: try again",
            ),
        }
    }
}
