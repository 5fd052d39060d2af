//! Why a command was not done.

use std::borrow::Cow;
use std::fmt;

use super::commands::table::Known;
use crate::app::store_trouble_message;

/// Why a command was not done: the text of its error, with the word that says which kind it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(Cow<'static, str>);

/// So many bytes of what a client sent are repeated in an error.
const REPEATED_BYTES_MAX: usize = 64;

impl Fault {
    /// An error of this whole text.
    pub(super) const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Something is wrong with an argument.
    pub(super) fn field(name: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self(format!("ERR {name}: {what}").into())
    }

    /// There are too few arguments, or too many.
    pub(super) fn arguments(known: &Known) -> Self {
        let Known { text, usage, .. } = known;
        Self(format!("ERR wrong number of arguments for '{text}' command: {usage}").into())
    }

    /// There is no such command.
    pub(super) fn unknown(name: &[u8]) -> Self {
        let shown = shown(name);
        let hint = match () {
            () if name.eq_ignore_ascii_case(b"throttle") => {
                "that is another server's, and its answer another: use CL.THROTTLE"
            }
            () if is_one_of(name, &["multi", "exec", "discard", "watch", "unwatch"]) => {
                "there are no transactions: send a pipeline without one"
            }
            () if is_one_of(name, &["del", "unlink", "ttl", "pttl"]) => {
                "buckets are looked at and forgotten over HTTP, at /v1/buckets/{key}"
            }
            () => {
                "this is Sluicegate, a rate limiter, which takes CL.THROTTLE, SG.CHECK and SG.TAKE"
            }
        };
        Self(format!("ERR unknown command '{shown}': {hint}").into())
    }

    /// There is no such subcommand.
    pub(super) fn unknown_within(known: &Known, name: &[u8]) -> Self {
        let (shown, usage) = (shown(name), known.usage);
        Self(format!("ERR unknown subcommand '{shown}': {usage}").into())
    }

    /// The store cannot tell, and nothing may answer in its place.
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

/// What a client sent, as far as it can be shown.
pub(super) fn shown(bytes: &[u8]) -> impl fmt::Display {
    bytes[..bytes.len().min(REPEATED_BYTES_MAX)].escape_ascii()
}
