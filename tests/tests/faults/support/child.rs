//! Child processes: this program again, with a job instead of tests.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use sluicegate_tests::process::Process;
use sluicegate_tests::shim::ClockShim;
use sluicegate_tests::wait;
use tempfile::NamedTempFile;

use super::LONG;
use crate::faults::standalone;

const JOB: &str = "SLUICEGATE_FAULTS_JOB";
const ANSWER: &str = "SLUICEGATE_FAULTS_ANSWER";
const BETWEEN: char = '|';

/// A process with a job.
pub(crate) struct Child {
    process: Process,
    answer: NamedTempFile,
    /// Keeps its clock until the end.
    _shim: Option<ClockShim>,
}

impl Child {
    /// Starts a process with a job: its name and arguments.
    pub(crate) fn start(job: &[&str], shim: Option<&ClockShim>) -> Self {
        let answer = NamedTempFile::with_prefix("sluicegate-child-").unwrap();
        let process = Process::start(std::env::current_exe().unwrap(), |command| {
            command.args([
                "--exact",
                "faults::support::child::child",
                "--nocapture",
                "--test-threads=1",
            ]);
            command.stdout(Stdio::null());
            command.env(JOB, job.join(&BETWEEN.to_string())).env(ANSWER, answer.path());
            if let Some(shim) = shim {
                shim.apply(command);
            }
        });
        Self { process, answer, _shim: shim.cloned() }
    }

    /// Waits for its end, and reads its output.
    pub(crate) fn finish(self, limit: Duration) -> String {
        wait::until("the other process", limit + LONG, || self.process.ended().is_some());
        assert!(self.process.ended().unwrap().success(), "the other process failed");
        fs::read_to_string(self.answer.path()).unwrap()
    }
}

/// Arguments of a process.
pub(crate) struct Job {
    words: std::vec::IntoIter<String>,
    answer: String,
}

impl Job {
    pub(crate) fn next<T: FromStr>(&mut self) -> T {
        let word = self.words.next().expect("another word of the job");
        word.parse().ok().unwrap_or_else(|| panic!("{word} in a job"))
    }

    pub(crate) fn answer(&mut self, line: &str) {
        writeln!(self.answer, "{line}").unwrap();
    }
}

/// Not a test: the entry point of a [`Child`].
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(job) = std::env::var(JOB) else { return };
    let words: Vec<String> = job.split(BETWEEN).map(str::to_owned).collect();
    let mut job = Job { words: words.into_iter(), answer: String::new() };
    match job.next::<String>().as_str() {
        "exact" => standalone::exact::child(&mut job).await,
        "load" => standalone::steady::child(&mut job).await,
        "files" => standalone::scarce::child(&mut job).await,
        other => panic!("no such job: {other}"),
    }
    fs::write(std::env::var(ANSWER).unwrap(), job.answer).unwrap();
}
