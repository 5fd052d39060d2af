//! `sluicegate man`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use roff::{Roff, roman};

use super::failure::{CliResult, Failure};
use super::output::{Output, say};
use super::{Cli, Exit};
use crate::config::reason;

const EXAMPLES: &str = "\
Examples:
  sluicegate man | man -l -
  sluicegate man --out /usr/local/share/man/man1";

/// Write the manual pages, one for every command
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder for the pages [default: the first page, to standard output]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = &arguments.out else {
        let page = page(&command).map_err(|error| Failure::unavailable(reason(&error)))?;
        Output::data(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Done);
    };
    let written = fs::create_dir_all(folder).and_then(|()| write(&command, "sluicegate", folder));
    let count = written.map_err(|error| {
        Failure::unavailable(format!("cannot write to {}: {}", folder.display(), reason(&error)))
    })?;
    say(&format!("{count} pages were written to {}.", folder.display()));
    Ok(Exit::Done)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // clap_mangen would render it as running text, which breaks commands across lines.
    Man::new(command.clone().after_help(Resettable::Reset)).render(&mut page)?;
    if let Some(after) = command.get_after_help() {
        sections(&after.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// The sections below a help text: the examples line by line, and the notes behind them.
fn sections(after: &str) -> Roff {
    let (examples, notes) = after.split_once("\n\n").unwrap_or((after, ""));
    let mut page = Roff::new();
    page.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples.lines().filter(|line| *line != "Examples:") {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("fi", []);
    for (position, note) in notes.split("\n\n").filter(|note| !note.is_empty()).enumerate() {
        if position == 0 {
            page.control("SH", ["NOTES"]);
        } else {
            page.control("PP", []);
        }
        page.text([roman(note)]);
    }
    page
}

/// Writes the pages of a command and its subcommands, and returns their number.
fn write(command: &Command, name: &str, folder: &Path) -> io::Result<usize> {
    fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    let mut count = 1;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        count += write(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(count)
}
