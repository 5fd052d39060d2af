//! Why a command did not do what it was asked to, and how it ends then.

use std::fmt;

use super::Exit;
use crate::data::DataError;
use crate::observe::logging::escaped;

/// The end of a command that went wrong: what to say, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
    /// `true` if the message says everything as it is to be shown, on lines of its own.
    is_report: bool,
}

/// How a command ends.
pub(super) type CliResult<T = Exit> = Result<T, Failure>;

impl Failure {
    /// What was asked for makes no sense, or was refused.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), is_report: false }
    }

    /// Something that is needed cannot be reached.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { exit: Exit::Unavailable, message: message.into(), is_report: false }
    }

    /// What is wrong with a file, rendered already.
    pub(super) fn report(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: text.into(), is_report: true }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

/// As it is shown to people, without anything that would control their terminal.
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
            DataError::Unavailable(_) | DataError::TooSlow | DataError::Unexpected(_) => {
                Self::unavailable(error.to_string())
            }
            DataError::NotFound(_)
            | DataError::Conflict { .. }
            | DataError::Stale { .. }
            | DataError::Refused(_) => Self::usage(error.to_string()),
        }
    }
}
