//! Runs this program again under callgrind.

use std::process::Command;

/// Error on a machine without valgrind.
pub(crate) const NO_VALGRIND: &str = "valgrind not installed";

/// Instructions in functions whose name contains `function`, in a child process with these arguments.
pub(crate) fn count(function: &str, arguments: &[&str]) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|_| NO_VALGRIND.to_owned())?;
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().replace(',', "").parse().ok());
    count.ok_or_else(|| format!("callgrind counted nothing: {report}"))
}
