//! `CLIENT`: a connection, as its client sees it.

use super::Session;
use crate::doors::resp::commands::table::Known;
use crate::doors::resp::error::Fault;
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::{Protocol, Replies};

/// The longest name of a connection, in bytes: the longest name of a host, which some clients give, and a little.
const NAME_BYTES_MAX: usize = 320;
/// The longest subcommand.
const SUBCOMMAND_BYTES_MAX: usize = 16;

impl Session {
    /// `CLIENT subcommand [argument ...]`
    pub(super) fn client(
        &mut self,
        command: &Command<'_, '_>,
        known: &Known,
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
            // Which library it is makes no difference here.
            (b"setinfo", 4) => match &*lower(argument) {
                b"lib-name" | b"lib-ver" => replies.ok(),
                _ => {
                    return Err(Fault::new(
                        "ERR Unrecognized option: lib-name and lib-ver are known",
                    ));
                }
            },
            // Nothing is evicted for a connection, and nothing is touched by one.
            (b"no-evict" | b"no-touch", 3) => match &*lower(argument) {
                b"on" | b"off" => replies.ok(),
                _ => return Err(Fault::new("ERR syntax error: it is ON or OFF")),
            },
            (b"reply", 3) if argument.eq_ignore_ascii_case(b"on") => replies.ok(),
            (b"reply", 3) => return Err(Fault::new("ERR every command is answered here")),
            (b"tracking", _) if argument.eq_ignore_ascii_case(b"off") => replies.ok(),
            (b"tracking" | b"caching" | b"trackinginfo" | b"getredir", _) => {
                return Err(Fault::new("ERR there is nothing here that clients could cache"));
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

    /// The name of a connection; an empty one is none.
    pub(super) fn name(name: &[u8]) -> Result<Option<Box<[u8]>>, Fault> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Fault::new("ERR Client names have at most 320 bytes"));
        }
        if !name.iter().all(u8::is_ascii_graphic) {
            return Err(Fault::new(
                "ERR Client names cannot contain spaces, newlines or special characters.",
            ));
        }
        Ok((!name.is_empty()).then(|| name.into()))
    }

    /// All about it in a line, as Redis writes it.
    fn line(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default().escape_ascii();
        let resp = match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        format!("id={} addr={} name={name} db=0 resp={resp}\n", self.id, self.peer)
    }
}

/// A word in small letters. What is longer than any that is known is none.
pub(super) fn lower(word: &[u8]) -> Vec<u8> {
    word.iter().take(SUBCOMMAND_BYTES_MAX + 1).map(u8::to_ascii_lowercase).collect()
}
