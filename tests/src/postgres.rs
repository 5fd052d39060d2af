//! A private PostgreSQL: on a free port of its own, nothing synced to disk, gone when dropped.
//!
//! ```no_run
//! use sluicegate_tests::postgres::Postgres;
//!
//! let server = Postgres::start();
//! let url = server.create("one"); // a database of its own for each test
//! server.sql("one", "SELECT 1");
//! server.pause(); // SIGSTOP: connections stay open and nothing answers
//! server.resume();
//! server.kill(); // SIGKILL: connections break
//! server.restart(); // the same port, with what was committed
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use parking_lot::RwLock;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::Process;
use crate::servers::free_port;
use crate::wait;

/// Time in which the server must start, including recovery after a kill.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Attempts with another port when another process took the port.
const PORT_ATTEMPTS_MAX: usize = 10;

/// Oldest supported version.
const VERSION_MIN: u32 = 15;

/// Fast, small, and in English. Commits survive a killed process; a power failure is not tested.
const SETTINGS: [&str; 6] = [
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=16MB",
    "max_connections=100",
    "autovacuum=off",
    "lc_messages=C",
];

/// Owner of every database.
const USER: &str = "sluicegate";

/// A private PostgreSQL, killed on drop.
///
/// All methods may be called from several threads concurrently.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    port: u16,
    password: Option<String>,
    process: RwLock<Process>,
}

// ===== lifecycle =====

impl Postgres {
    /// Starts a server that trusts all local connections, and waits until it replies.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is missing or does not start: a test that cannot run has failed.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a server that requires this password.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn start_with_password(password: &str) -> Self {
        Self::start_with(Some(password))
    }

    fn start_with(password: Option<&str>) -> Self {
        let folder = TempDir::with_prefix("sluicegate-postgres-").expect("a temporary folder");
        if let Some((user, group)) = other_user() {
            chown(folder.path(), Some(user), Some(group)).expect("root can give a folder away");
        }
        initialise(folder.path(), password);
        let mut port = free_port();
        let mut process = run(folder.path(), port);
        for _ in 0..PORT_ATTEMPTS_MAX {
            match wait_ready(folder.path(), &process) {
                Ok(()) => {
                    let password = password.map(Into::into);
                    return Self { folder, port, password, process: RwLock::new(process) };
                }
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("PostgreSQL did not start:\n{log}"),
            }
            port = free_port();
            process = run(folder.path(), port);
        }
        panic!("PostgreSQL found every port taken, {PORT_ATTEMPTS_MAX} times");
    }

    /// Stops all its processes (SIGSTOP): connections stay open, new ones are accepted by the kernel, and
    /// nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues stopped processes (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills all its processes (SIGKILL) and waits until they are gone: connections break, new ones are
    /// refused.
    pub fn kill(&self) {
        let process = self.process.read();
        let children = children(process.pid());
        process.kill();
        for child in children {
            if let Some(pid) = Pid::from_raw(child.cast_signed()) {
                // It may have ended with its parent.
                let _ = kill_process(pid, Signal::KILL);
            }
            let entry = PathBuf::from(format!("/proc/{child}"));
            wait::until("a process of PostgreSQL to be gone", READY_LIMIT, || !entry.exists());
        }
    }

    /// Restarts it on the same port, after killing it if it is running. Committed data is kept.
    ///
    /// # Panics
    ///
    /// If it does not start; the message contains its log.
    pub fn restart(&self) {
        self.kill();
        let mut process = self.process.write();
        *process = run(self.folder.path(), self.port);
        if let Err(log) = wait_ready(self.folder.path(), &process) {
            panic!("PostgreSQL did not start again:\n{log}");
        }
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.read();
        process.signal(signal);
        for child in children(process.pid()) {
            if let Some(pid) = Pid::from_raw(child.cast_signed()) {
                // A backend may have ended with its client.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

// ===== databases and SQL =====

impl Postgres {
    /// Port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of a database.
    pub fn url(&self, database: &str) -> String {
        let password = self.password.as_deref().map(|word| format!(":{word}")).unwrap_or_default();
        format!("postgres://{USER}{password}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database and returns its URL.
    ///
    /// # Panics
    ///
    /// If it exists.
    pub fn create(&self, database: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE \"{database}\""));
        self.url(database)
    }

    /// Runs SQL with `psql`, as an operator would, and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs SQL with `psql` and returns its output.
    ///
    /// # Errors
    ///
    /// The error output of `psql`.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let output = Command::new(program("psql"))
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(self.url(database))
            .output()
            .expect("psql can be run");
        text(&output)
    }
}

// ===== programs =====

/// Initialises the data folder of a server.
fn initialise(folder: &Path, password: Option<&str>) {
    let mut command = as_owner(&program("initdb"));
    command.args(["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C", "-U", USER]);
    command.arg("-D").arg(folder.join("data")).current_dir(folder);
    match password {
        None => _ = command.arg("--auth=trust"),
        Some(password) => {
            let file = folder.join("password");
            fs::write(&file, password).expect("a file can be written");
            command.arg("--auth=scram-sha-256").arg("--pwfile").arg(&file);
        }
    }
    text(&command.output().expect("initdb can be run")).expect("initdb works");
}

fn run(folder: &Path, port: u16) -> Process {
    let log = File::create(folder.join("log")).expect("the log can be written");
    let (program, before) = owner_prefix(&program("postgres"));
    Process::start(program, |command| {
        command.args(before).arg("-D").arg(folder.join("data")).current_dir(folder);
        command.arg("-k").arg(folder).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.stdout(log.try_clone().expect("a file has two names")).stderr(log);
    })
}

/// Waits until this process serves; the error is its log.
fn wait_ready(folder: &Path, process: &Process) -> Result<(), String> {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let mut is_ready = false;
    wait::within(READY_LIMIT, || {
        let has_ended = process.ended().is_some();
        is_ready = log().contains("database system is ready to accept connections");
        is_ready || has_ended
    });
    if is_ready { Ok(()) } else { Err(log()) }
}

/// A program of the newest installed PostgreSQL.
///
/// # Panics
///
/// If none is new enough.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| *version >= VERSION_MIN)
        .max();
    let newest = newest.unwrap_or_else(|| {
        panic!("PostgreSQL {VERSION_MIN} or newer is missing: run `make servers`")
    });
    let program = PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin/{name}"));
    assert!(program.exists(), "{} is missing: run `make servers`", program.display());
    program
}

/// The user to run PostgreSQL as, which refuses to run as root.
fn other_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there is a list of users");
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    Some(of("postgres").or_else(|| of("nobody")).expect("there is a user beside root"))
}

fn as_owner(program: &Path) -> Command {
    let (program, before) = owner_prefix(program);
    let mut command = Command::new(program);
    command.args(before);
    command
}

/// Program and leading arguments that run it as [`other_user`], if that is needed.
fn owner_prefix(program: &Path) -> (OsString, Vec<OsString>) {
    let Some((user, group)) = other_user() else { return (program.into(), Vec::new()) };
    let before = [format!("--reuid={user}"), format!("--regid={group}")];
    let rest = ["--clear-groups", "--pdeathsig", "KILL", "--"];
    let before = before.iter().map(String::as_str).chain(rest).map(OsString::from);
    ("setpriv".into(), before.chain([program.into()]).collect())
}

/// The child processes of a process. Each connection is one, with a process group of its own.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn text(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{} {}", text(&output.stdout), text(&output.stderr)))
    }
}
