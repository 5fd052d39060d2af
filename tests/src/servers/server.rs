//! A running server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use redis::{
    Client, Connection, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisError,
    RedisResult, Value,
};
use rustix::process::Signal;
use tempfile::TempDir;

use super::builder::ADMIN;
use super::{Builder, Flavour};
use crate::process::Process;
use crate::shim::ClockShim;
use crate::wait;

/// Time in which a server must start.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// Timeout of the harness's own commands.
const COMMAND_LIMIT: Duration = Duration::from_secs(3);

/// Number of consecutive broken connections that is an error.
const CUTS_MAX: usize = 5;

/// Settings from [`Builder`].
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) flavour: Flavour,
    pub(super) folder: TempDir,
    pub(super) port: u16,
    pub(super) tls_port: Option<u16>,
    pub(super) socket: Option<PathBuf>,
    pub(super) guarded: bool,
    pub(super) shim: Option<ClockShim>,
    pub(super) sentinel: bool,
    pub(super) ready_line: &'static str,
}

/// A private server, killed on drop.
///
/// All methods may be called from several threads concurrently.
#[derive(Debug)]
pub struct RedisServer {
    launch: Launch,
    process: RwLock<Process>,
    stopped: AtomicBool,
}

// ===== lifecycle =====

impl RedisServer {
    /// Starts a server with the default configuration, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it does not start; the message contains its log.
    pub fn start(flavour: Flavour) -> Self {
        Self::builder(flavour).start()
    }

    /// A builder of a server.
    pub const fn builder(flavour: Flavour) -> Builder {
        Builder::new(flavour)
    }

    pub(super) fn launch(launch: Launch) -> Self {
        let process = RwLock::new(launch.run());
        Self { launch, process, stopped: AtomicBool::new(false) }
    }

    /// Waits until this process listens; the error is its log. The log is read instead of connecting to the
    /// port, on which another server might reply.
    pub(super) fn wait_started(&self) -> Result<(), String> {
        let process = self.process.read();
        let mut ready = false;
        let settled = wait::within(READY_LIMIT, || {
            let ended = process.ended().is_some();
            ready = self.log().contains(self.launch.ready_line);
            ready || ended
        });
        if ready && settled { Ok(()) } else { Err(self.log()) }
    }

    /// Stops the process (SIGSTOP): its connections stay open, new ones are accepted by the kernel, and
    /// nothing is answered.
    pub fn stop(&self) {
        self.process.read().signal(Signal::STOP);
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Continues a stopped process (SIGCONT).
    pub fn cont(&self) {
        self.process.read().signal(Signal::CONT);
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Kills the process (SIGKILL) and waits until it is gone: connections break, new ones are refused.
    pub fn kill(&self) {
        self.process.read().kill();
    }

    /// Restarts it on the same port, after killing it if it is running. It is empty then, unless persistence
    /// is configured.
    ///
    /// # Panics
    ///
    /// If it does not start; the message contains its log.
    pub fn restart(&self) {
        {
            let mut process = self.process.write();
            process.kill();
            *process = self.launch.run();
            self.stopped.store(false, Ordering::SeqCst);
        }
        if let Err(log) = self.wait_started() {
            panic!("{:?} did not start again:\n{log}", self.launch.flavour);
        }
    }

    /// Waits until it replies to PING, which a replica or a loading server does late.
    ///
    /// # Panics
    ///
    /// After ten seconds.
    pub fn wait_ready(&self) {
        wait::until("PONG", READY_LIMIT, || self.try_command(&["PING"]).is_ok());
    }
}

// ===== address and process =====

impl RedisServer {
    /// Server and version.
    pub const fn flavour(&self) -> Flavour {
        self.launch.flavour
    }

    /// Port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.launch.port
    }

    /// Port for TLS.
    ///
    /// # Panics
    ///
    /// If it was started without.
    pub fn tls_port(&self) -> u16 {
        self.launch.tls_port.expect("the server was started with TLS")
    }

    /// Path of its Unix socket.
    ///
    /// # Panics
    ///
    /// If it was started without.
    pub fn unix_socket(&self) -> &Path {
        self.launch.socket.as_deref().expect("the server was started with a unix socket")
    }

    /// URL, `redis://127.0.0.1:<port>`, without a user.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Process id; it changes with a restart.
    pub fn pid(&self) -> u32 {
        self.process.read().pid()
    }

    /// Is its process alive and not stopped by [`Self::stop`]?
    pub fn is_running(&self) -> bool {
        !self.stopped.load(Ordering::SeqCst) && self.process.read().ended().is_none()
    }

    /// Working folder; removed on drop.
    pub fn folder(&self) -> &Path {
        self.launch.folder.path()
    }

    /// Log since the last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.launch.log_path()).unwrap_or_default()
    }
}

// ===== queries =====

impl RedisServer {
    /// Sends a command on a separate connection, as a user with all permissions.
    ///
    /// # Panics
    ///
    /// On every error, including error replies.
    pub fn command(&self, words: &[&str]) -> Value {
        self.try_command(words)
            .unwrap_or_else(|error| panic!("{words:?} to {}: {error}", self.url()))
    }

    /// The same, for commands that may fail. Waits for three seconds at most.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, does not reply in time, or replies with an error.
    pub fn try_command(&self, words: &[&str]) -> RedisResult<Value> {
        let (name, arguments) = words.split_first().expect("a command has a name");
        redis::cmd(name).arg(arguments).query(&mut self.connection()?)
    }

    /// A connection of the user with all permissions, for commands that depend on the connection, such as
    /// WAIT or MULTI. Each reply is waited for three seconds at most.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub fn connection(&self) -> RedisResult<Connection> {
        let client = Client::open(self.connection_info()?)?;
        let connection = client.get_connection_with_timeout(COMMAND_LIMIT)?;
        connection.set_read_timeout(Some(COMMAND_LIMIT))?;
        connection.set_write_timeout(Some(COMMAND_LIMIT))?;
        Ok(connection)
    }

    /// The text of a reply.
    ///
    /// # Panics
    ///
    /// On every error, and if the reply is not text.
    pub fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.command(words)).expect("the answer is text")
    }

    /// A field of `INFO`: `info("replication", "role")`. Retried if the connection breaks: sentinels
    /// disconnect all clients of a server whose role they change.
    ///
    /// # Panics
    ///
    /// On every other error.
    pub fn info(&self, section: &str, field: &str) -> Option<String> {
        let words = ["INFO", section];
        let is_cut = |error: &RedisError| error.is_io_error() && !error.is_timeout();
        let mut answer = self.try_command(&words);
        for _ in 0..CUTS_MAX {
            if !answer.as_ref().is_err_and(is_cut) {
                break;
            }
            answer = self.try_command(&words);
        }
        let answer = answer.unwrap_or_else(|error| panic!("{words:?} to {}: {error}", self.url()));
        let text: String = redis::from_redis_value(answer).expect("the answer is text");
        lookup(&text, field)
    }

    /// The same, as a number.
    ///
    /// # Panics
    ///
    /// On every error, and if the field is not a number.
    pub fn info_number(&self, section: &str, field: &str) -> i64 {
        let text =
            self.info(section, field).unwrap_or_else(|| panic!("INFO {section} has no {field}"));
        text.parse().unwrap_or_else(|_| panic!("{field}:{text} is not a number"))
    }

    fn connection_info(&self) -> RedisResult<ConnectionInfo> {
        let info = self.url().as_str().into_connection_info()?;
        let Some((user, password)) = self.login() else { return Ok(info) };
        let admin = RedisConnectionInfo::default().set_username(user).set_password(password);
        Ok(info.set_redis_settings(admin))
    }

    /// User and password of the harness, if passwords are required.
    pub(crate) fn login(&self) -> Option<(&'static str, &'static str)> {
        self.launch.guarded.then_some(ADMIN)
    }
}

/// The value of `field` in lines of the form `field:value`.
pub(crate) fn lookup(text: &str, field: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .map(|value| value.trim().to_owned())
}

// ===== impl Launch =====

impl Launch {
    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn run(&self) -> Process {
        let log = File::create(self.log_path()).expect("the log can be written");
        Process::start(self.flavour.program(), |command| {
            command.arg(self.folder.path().join("server.conf"));
            if self.sentinel {
                command.arg("--sentinel");
            }
            command.stderr(log.try_clone().expect("a second handle")).stdout(log);
            if let Some(shim) = &self.shim {
                shim.apply(command);
            }
        })
    }
}
