//! The command line.

mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// How a command ended, as exit codes. 1 is kept for "denied".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done = 0,
    /// Wrong arguments, settings or rules.
    Usage = 2,
    /// A port is taken, or something else that serving needs.
    Unavailable = 3,
}

/// Exact rate limiting over many tiers, as a service.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
}

/// Does what the arguments of this process say, and returns its exit code.
pub fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(Cli { command: Command::Serve(arguments) }) => serve::run(&arguments),
        Err(error) => {
            // Help and version are no errors and go to standard output. If nobody reads, so be it.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    ExitCode::from(exit as u8)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
