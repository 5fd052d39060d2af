//! Asking before something is destroyed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::{CliResult, Failure};

/// Asks whether to go on, unless that was said already. Where nobody can be asked, it must have been.
///
/// # Errors
///
/// That the answer was no, or that nobody could be asked.
pub(super) fn confirm(question: &str, is_confirmed: bool) -> CliResult<()> {
    if is_confirmed {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message =
            format!("{question} Nobody can be asked here: say --yes, or look with --dry-run");
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
