//! Error replies.

use std::borrow::Cow;
use std::fmt;

use super::commands::table::CommandSpec;
use crate::app::store_trouble_message;
use crate::data::Right;

/// Error reply: its text, beginning with the word for its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(Cow<'static, str>);

/// Maximum bytes of a client's input repeated in an error.
const REPEATED_BYTES_MAX: usize = 64;

impl Fault {
    /// Error with this whole text.
    pub(super) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Error about an argument.
    pub(super) fn field(name: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self(format!("ERR {name}: {what}").into())
    }

    /// Error about the number of arguments.
    pub(super) fn arguments(known: &CommandSpec) -> Self {
        let CommandSpec { text, usage, .. } = known;
        Self(format!("ERR wrong number of arguments for '{text}' command: {usage}").into())
    }

    /// Error about an unknown command.
    pub(super) fn unknown(name: &[u8]) -> Self {
        let shown = shown(name);
        let hint = match () {
            () if name.eq_ignore_ascii_case(b"throttle") => {
                "a command of another server, with a different reply: use CL.THROTTLE"
            }
            () if is_one_of(name, &["multi", "exec", "discard", "watch", "unwatch"]) => {
                "transactions are not supported: send a pipeline without one"
            }
            () if is_one_of(name, &["del", "unlink", "ttl", "pttl"]) => {
                "read and delete buckets over HTTP, at /v1/buckets/{key}"
            }
            () => {
                "this is Sluicegate, a rate limiter; its commands are CL.THROTTLE, SG.CHECK, SG.TAKE and SG.REFUND"
            }
        };
        Self(format!("ERR unknown command '{shown}': {hint}").into())
    }

    /// Error about an unknown subcommand.
    pub(super) fn unknown_within(known: &CommandSpec, name: &[u8]) -> Self {
        let (shown, usage) = (shown(name), known.usage);
        Self(format!("ERR unknown subcommand '{shown}': {usage}").into())
    }

    /// Error about a command that the caller may not run.
    pub(super) fn right(known: &CommandSpec, right: Right) -> Self {
        let (text, right) = (known.text, right.name());
        Self(format!("NOPERM this caller may not run '{text}': it lacks the right {right}").into())
    }

    /// Error about a command that needs a caller, whatever the listener allows without one.
    pub(super) fn caller_needed(known: &CommandSpec, right: Right) -> Self {
        let (text, right) = (known.text, right.name());
        let hint = "authenticate with AUTH name token";
        Self(format!("NOAUTH '{text}' needs a caller with the right {right}: {hint}").into())
    }

    /// Error of a store that is unavailable, where no policy may answer.
    pub(super) fn trouble(trouble: &sluicegate::Trouble) -> Self {
        Self(format!("UNAVAILABLE {}", store_trouble_message(trouble)).into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// A client's input, escaped and truncated.
pub(super) fn shown(bytes: &[u8]) -> impl fmt::Display {
    bytes[..bytes.len().min(REPEATED_BYTES_MAX)].escape_ascii()
}
