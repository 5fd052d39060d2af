//! `COMMAND`, `CONFIG` and `INFO`: server information for clients and tools.

use std::fmt::Write;

use super::client::lower;
use super::hello::REDIS_VERSION;
use crate::doors::resp::commands::table::{COMMANDS, CommandSpec};
use crate::doors::resp::error::{Fault, is_one_of};
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::Replies;
use crate::doors::resp::session::SharedConfig;

/// Parameters that tools read before they begin. This protocol stores nothing on disk.
const PARAMETERS: [(&str, &str); 4] =
    [("appendonly", "no"), ("databases", "1"), ("maxmemory", "0"), ("save", "")];

/// `COMMAND [COUNT|DOCS [name ...]|INFO [name ...]|LIST]`
pub(super) fn command(
    command: &Command<'_, '_>,
    known: &CommandSpec,
    replies: &mut Replies,
) -> Result<(), Fault> {
    let named = || command.arguments(2).map(CommandSpec::find);
    match &*lower(command.argument(1)) {
        b"" | b"info" if command.len() <= 2 => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|known| describe(known, replies));
        }
        b"info" => {
            replies.array(named().len());
            named().for_each(|known| match known {
                Some(known) => describe(known, replies),
                None => replies.null(),
            });
        }
        b"docs" if command.len() == 2 => {
            replies.map(COMMANDS.len());
            COMMANDS.iter().for_each(|known| document(known, replies));
        }
        b"docs" => {
            replies.map(named().flatten().count());
            named().flatten().for_each(|known| document(known, replies));
        }
        b"count" => replies.unsigned(COMMANDS.len() as u64),
        b"list" => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|known| replies.bulk(known.text));
        }
        _ => return Err(Fault::unknown_within(known, command.argument(1))),
    }
    Ok(())
}

/// Writes name, arity, flags, first key, last key, step, categories, tips, key specifications,
/// subcommands.
fn describe(known: &CommandSpec, replies: &mut Replies) {
    let (flags, key): (&[_], _) =
        if known.has_key { (&["write", "fast"], 1) } else { (&["fast"], 0) };
    replies.array(10);
    replies.bulk(known.text);
    replies.integer(known.arity);
    replies.array(flags.len());
    flags.iter().for_each(|flag| replies.status(flag));
    for _first_last_step in 0..3 {
        replies.integer(key);
    }
    for _list in 0..4 {
        replies.array(0);
    }
}

/// Writes the name and documentation of a command.
fn document(known: &CommandSpec, replies: &mut Replies) {
    replies.bulk(known.text);
    replies.map(3);
    for (name, text) in [("summary", known.summary), ("since", "0.1.0"), ("group", known.group)] {
        replies.bulk(name);
        replies.bulk(text);
    }
}

/// `CONFIG GET parameter [parameter ...]`
pub(super) fn config(
    command: &Command<'_, '_>,
    known: &CommandSpec,
    replies: &mut Replies,
) -> Result<(), Fault> {
    match &*lower(command.argument(1)) {
        b"get" if command.len() > 2 => {
            let is_requested = |name: &str| {
                command.arguments(2).any(|wanted| wanted == b"*" || is_one_of(wanted, &[name]))
            };
            let found = || PARAMETERS.iter().filter(|(name, _)| is_requested(name));
            replies.map(found().count());
            for (name, value) in found() {
                replies.bulk(name);
                replies.bulk(value);
            }
            Ok(())
        }
        b"set" | b"rewrite" | b"resetstat" => Err(Fault::new(
            "ERR settings cannot be changed with this command: see docs/reference/configuration.md",
        )),
        _ => Err(Fault::unknown_within(known, command.argument(1))),
    }
}

/// `INFO [section ...]`
pub(super) fn info(command: &Command<'_, '_>, shared_config: &SharedConfig, replies: &mut Replies) {
    let mut server = String::new();
    let uptime = shared_config.opened.elapsed().as_secs();
    // Writing to a string cannot fail.
    let _ = write!(
        server,
        "redis_version:{REDIS_VERSION}\r\nserver_name:sluicegate\r\nsluicegate_version:{}\r\n\
         redis_mode:standalone\r\nprocess_id:{}\r\nuptime_in_seconds:{uptime}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
    );
    let sections = [
        ("Server", &*server),
        ("Persistence", "loading:0\r\n"),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n"),
        ("Cluster", "cluster_enabled:0\r\n"),
    ];
    let is_requested = |section: &str| {
        let mut wanted = command.arguments(1);
        command.len() == 1
            || wanted.any(|name| is_one_of(name, &[section, "all", "default", "everything"]))
    };
    let mut text = String::new();
    for (section, lines) in sections.into_iter().filter(|(section, _)| is_requested(section)) {
        let gap = if text.is_empty() { "" } else { "\r\n" };
        let _ = write!(text, "{gap}# {section}\r\n{lines}");
    }
    replies.verbatim(&text);
}
