//! Confirmation of changes.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::{CliResult, Failure};

/// Asks for confirmation, unless `--yes` was given. Without a terminal `--yes` is required.
///
/// # Errors
///
/// If the answer is not yes, or there is no terminal.
pub(super) fn confirm(question: &str, is_confirmed: bool) -> CliResult<()> {
    if is_confirmed {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = format!(
            "{question} There is no terminal to confirm on: confirm with --yes, or try with --dry-run"
        );
        return Err(Failure::usage(message));
    }
    let _ = write!(io::stderr(), "{} [y/N] ", crate::observe::logging::escaped(question, true));
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes") {
        return Ok(());
    }
    Err(Failure::usage("nothing was changed"))
}
