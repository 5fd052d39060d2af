//! The command line.

mod buckets;
mod callers;
mod check;
mod client;
mod completions;
mod confirm;
mod credentials;
mod database;
mod explain;
mod failure;
mod files;
mod history;
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

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done = 0,
    /// `check`: the request is denied.
    Denied = 1,
    /// Wrong arguments, settings or rules, or refused by the server.
    Usage = 2,
    /// The server or the database cannot be reached; or `serve` lacks something, such as a free port.
    Unavailable = 3,
}

const EXAMPLES: &str = "\
Examples:
  sluicegate serve                                    serve on port 8080
  sluicegate check --user-id 42 --plan free           check a request, and charge it
  sluicegate explain --user-id 42 --endpoint /login   show which rules apply, and why
  sluicegate rules list                               list the rules
  sluicegate overrides set --rule 1 --subject 42 --rate 100/s --for 2h
                                                    give one user a higher rate
  sluicegate violations top --since 1h                list who was denied most

All commands but serve, tokens, callers and migrate talk to a running server: --server URL or SLUICEGATE_SERVER names it, and \
SLUICEGATE_TOKEN or --token-file holds the token. HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY are honoured. With --json, \
output is JSON.

Exit codes: 0 done or allowed, 1 denied (check), 2 wrong arguments or refused, 3 cannot reach the server or cannot serve.";

/// Exact rate limiting by many rules at once, as a service.
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
    History(Box<history::Arguments>),
    Buckets(buckets::Arguments),
    Tokens(tokens::Arguments),
    Callers(callers::Arguments),
    Migrate(migrate::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the command that the arguments of this process name, and returns its exit code.
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => {
            // Help and version go to standard output. A closed pipe is ignored.
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
        Command::History(arguments) => history::run(&arguments),
        Command::Buckets(arguments) => buckets::run(&arguments),
        Command::Tokens(arguments) => runtime()?.block_on(tokens::run(&arguments)),
        Command::Callers(arguments) => runtime()?.block_on(callers::run(&arguments)),
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

    /// The help of every command has examples.
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
