//! Failures of commands: message and exit code.

use std::fmt;

use super::Exit;
use crate::data::DataError;
use crate::observe::logging::escaped;

/// Failure of a command: message and exit code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
    /// `true` if the message is already rendered for a terminal.
    is_report: bool,
}

/// Result of a command, or of a step of one.
pub(super) type CliResult<T = Exit> = Result<T, Failure>;

impl Failure {
    /// The arguments are wrong, or the server refused.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), is_report: false }
    }

    /// The server or the database cannot be reached.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { exit: Exit::Unavailable, message: message.into(), is_report: false }
    }

    /// Errors in a file, already rendered.
    pub(super) fn report(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: text.into(), is_report: true }
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

/// The message with control characters escaped, so that it cannot control the terminal.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_report {
            return f.write_str(self.message.trim_end());
        }
        write!(f, "error: {}", escaped(&self.message, true))
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Unavailable(_)
            | DataError::TooSlow
            | DataError::Unrecorded(_)
            | DataError::Unexpected(_) => Self::unavailable(error.to_string()),
            DataError::NotFound(_)
            | DataError::Conflict { .. }
            | DataError::Stale { .. }
            | DataError::Exists { .. }
            | DataError::Refused(_) => Self::usage(error.to_string()),
        }
    }
}
