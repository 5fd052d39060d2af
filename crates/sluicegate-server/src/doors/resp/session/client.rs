//! `CLIENT`: information about a connection.

use super::ClientSession;
use crate::doors::resp::commands::table::CommandSpec;
use crate::doors::resp::error::Fault;
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::{Protocol, Replies};

/// Maximum bytes of a connection's name: the longest host name, which some clients use, and some
/// more.
const NAME_BYTES_MAX: usize = 320;
/// Maximum bytes of a subcommand.
const SUBCOMMAND_BYTES_MAX: usize = 16;

impl ClientSession {
    /// `CLIENT subcommand [argument ...]`
    pub(super) fn client(
        &mut self,
        command: &Command<'_, '_>,
        known: &CommandSpec,
        replies: &mut Replies,
    ) -> Result<(), Fault> {
        let subcommand = command.argument(1);
        let argument = command.argument(2);
        match (&*lower(subcommand), command.len()) {
            (b"setname", 3) => {
                self.name = Self::name(argument)?;
                replies.ok();
            }
            (b"getname", 2) => match &self.name {
                Some(name) => replies.bulk(name),
                None => replies.null(),
            },
            (b"id", 2) => replies.unsigned(self.id),
            (b"info", 2) => replies.verbatim(&self.line()),
            // The client library is not recorded.
            (b"setinfo", 4) => match &*lower(argument) {
                b"lib-name" | b"lib-ver" => replies.ok(),
                _ => {
                    return Err(Fault::new(
                        "ERR Unrecognized option: lib-name and lib-ver are known",
                    ));
                }
            },
            // No connection causes evictions or touches keys.
            (b"no-evict" | b"no-touch", 3) => match &*lower(argument) {
                b"on" | b"off" => replies.ok(),
                _ => return Err(Fault::new("ERR syntax error: must be one of ON, OFF")),
            },
            (b"reply", 3) if argument.eq_ignore_ascii_case(b"on") => replies.ok(),
            (b"reply", 3) => return Err(Fault::new("ERR replies cannot be turned off")),
            (b"tracking", _) if argument.eq_ignore_ascii_case(b"off") => replies.ok(),
            (b"tracking" | b"caching" | b"trackinginfo" | b"getredir", _) => {
                return Err(Fault::new("ERR client-side caching is not supported"));
            }
            (
                b"setname" | b"getname" | b"id" | b"info" | b"setinfo" | b"no-evict" | b"no-touch"
                | b"reply",
                _,
            ) => return Err(Fault::arguments(known)),
            _ => return Err(Fault::unknown_within(known, subcommand)),
        }
        Ok(())
    }

    /// Validates a connection's name; an empty one is `None`.
    pub(super) fn name(name: &[u8]) -> Result<Option<Box<[u8]>>, Fault> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Fault::new("ERR Client names must have at most 320 bytes"));
        }
        if !name.iter().all(u8::is_ascii_graphic) {
            return Err(Fault::new(
                "ERR Client names cannot contain spaces, newlines or special characters.",
            ));
        }
        Ok((!name.is_empty()).then(|| name.into()))
    }

    /// Description of the connection in Redis's format.
    fn line(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default().escape_ascii();
        let resp = match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        format!("id={} addr={} name={name} db=0 resp={resp}\n", self.id, self.peer())
    }
}

/// Lower-case word. Longer than every known word if it is too long.
pub(super) fn lower(word: &[u8]) -> Vec<u8> {
    word.iter().take(SUBCOMMAND_BYTES_MAX + 1).map(u8::to_ascii_lowercase).collect()
}
