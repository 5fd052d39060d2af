//! `sluicegate completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::CliResult;
use super::output::Output;
use super::{Cli, Exit};

const EXAMPLES: &str = "\
Examples:
  sluicegate completions bash > /etc/bash_completion.d/sluicegate
  sluicegate completions zsh > ~/.zfunc/_sluicegate
  sluicegate completions fish > ~/.config/fish/completions/sluicegate.fish";

/// Write shell completions to standard output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Shell to complete in
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "sluicegate", &mut script);
    Output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
