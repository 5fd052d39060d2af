//! The command line.

mod buckets;
mod check;
mod client;
mod completions;
mod confirm;
mod database;
mod explain;
mod failure;
mod files;
mod man;
mod migrate;
mod options;
mod output;
mod overrides;
mod quota;
mod request;
mod rules;
mod serve;
mod table;
mod tokens;
mod violations;
mod waits;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

use self::failure::{CliResult, Failure};
use self::output::say_as_it_is;

/// How a command ended, as exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done = 0,
    /// A request was checked, and is denied.
    Denied = 1,
    /// Wrong arguments, settings or rules, or refused by the server.
    Usage = 2,
    /// The server or the database cannot be reached; or a port is taken, or something else that serving needs.
    Unavailable = 3,
}

const EXAMPLES: &str = "\
Examples:
  sluicegate serve                                    serve on port 8080
  sluicegate check --user-id 42 --plan free           is this allowed?
  sluicegate explain --user-id 42 --endpoint /login   which rules apply, and why
  sluicegate rules list                               what the rules are
  sluicegate overrides set --rule 1 --subject 42 --rate 100/s --for 2h
                                                    more for one customer, now
  sluicegate violations top --since 1h                who is denied most

Commands but for serve talk to a running server: --server URL or SLUICEGATE_SERVER says where it is, and \
SLUICEGATE_TOKEN or --token-file holds the token. --json is for programs.

Exit codes: 0 done or allowed, 1 denied (check), 2 wrong arguments or refused, 3 cannot reach or serve.";

/// Exact rate limiting over many tiers, as a service.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Check(check::Arguments),
    Explain(explain::Arguments),
    Rules(Box<rules::Arguments>),
    Overrides(overrides::Arguments),
    Violations(Box<violations::Arguments>),
    Buckets(buckets::Arguments),
    Tokens(tokens::Arguments),
    Migrate(migrate::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Does what the arguments of this process say, and returns its exit code.
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => {
            // Help and version are no errors and go to standard output. If nobody reads, so be it.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    let exit = match run(command) {
        Ok(exit) => exit,
        Err(failure) => {
            say_as_it_is(&failure.to_string());
            failure.exit()
        }
    };
    ExitCode::from(exit as u8)
}

fn run(command: Command) -> CliResult {
    match command {
        Command::Serve(arguments) => Ok(serve::run(&arguments)),
        Command::Check(arguments) => check::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Overrides(arguments) => overrides::run(&arguments),
        Command::Violations(arguments) => violations::run(&arguments),
        Command::Buckets(arguments) => buckets::run(&arguments),
        Command::Tokens(arguments) => runtime()?.block_on(tokens::run(&arguments)),
        Command::Migrate(arguments) => runtime()?.block_on(migrate::run(&arguments)),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// A runtime on this thread, for commands that open a database.
fn runtime() -> CliResult<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::unavailable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Every command says how it is used.
    #[test]
    fn every_command_has_examples() {
        fn look(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
            command.get_subcommands().for_each(look);
        }
        look(&Cli::command());
    }
}
