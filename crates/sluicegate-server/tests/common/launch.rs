//! Starts and stops the binary.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::{fs, thread};

use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use tempfile::TempDir;

use super::{Client, PATIENCE, Response, eventually, now, suite_caller};

/// Command line and environment of the binary: [`start`](Self::start) runs a service,
/// [`run`](Self::run) a command to its end.
#[derive(Debug)]
pub(crate) struct Launch {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// Shell commands to run before the binary, in its process.
    before: Option<String>,
    folder: TempDir,
}

/// A running service. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    /// Address of the HTTP listener.
    pub(crate) address: SocketAddr,
    child: Child,
    log: Arc<Log>,
    folder: TempDir,
}

/// Exit code and output of a process that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Lines that a process has written to standard error.
#[derive(Debug, Default)]
struct Log {
    lines: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

// ===== impl Launch =====

impl Launch {
    /// `sluicegate` with these arguments, in an empty folder and an empty environment.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self {
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            before: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// `sluicegate serve` with these arguments, on a free port for HTTP and without the other listeners.
    pub(crate) fn serve(arguments: &[&str]) -> Self {
        Self::new(&["serve"])
            .args(arguments)
            .env("SLUICEGATE_LISTEN_HTTP", "127.0.0.1:0")
            .env("SLUICEGATE_LISTEN_GRPC", "")
            .env("SLUICEGATE_LISTEN_RESP", "")
    }

    /// Adds a gRPC listener on a free port.
    pub(crate) fn with_grpc(self) -> Self {
        self.env("SLUICEGATE_LISTEN_GRPC", "127.0.0.1:0")
    }

    /// Adds a listener for the Redis protocol on a free port.
    pub(crate) fn with_resp(self) -> Self {
        self.env("SLUICEGATE_LISTEN_RESP", "127.0.0.1:0")
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes an environment variable.
    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self
    }

    /// Writes a file to the folder it runs in.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    /// Runs a shell command first in the same process, such as `ulimit -n 64`.
    pub(crate) fn after_shell(mut self, command: &str) -> Self {
        self.before = Some(command.to_owned());
        self
    }

    /// The folder it runs in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(self) -> Server {
        suite_caller::install(self.folder(), self.database_url());
        let mut child = self.command().spawn().unwrap();
        let log = Log::follow(child.stderr.take().unwrap());
        // Created before waiting, so that the process is killed if it never listens.
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Server { address: unknown, child, log, folder: self.folder };
        // A Unix socket has no such address.
        server.address = server.listener("http").parse().unwrap_or(unknown);
        server
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Finished {
        let mut child = self.command().spawn().unwrap();
        let log = Log::follow(child.stderr.take().unwrap());
        // Wrapped in a server, so that the process is killed if it never ends.
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        Server { address: unknown, child, log, folder: self.folder }.wait()
    }

    /// Database that its arguments or its environment name.
    fn database_url(&self) -> Option<&str> {
        let mut arguments = self.arguments.iter().skip_while(|flag| *flag != "--database-url");
        let by_variable = || {
            let mut variables = self.environment.iter();
            variables.find(|(name, _)| name == "SLUICEGATE_DATABASE_URL").map(|(_, url)| url)
        };
        arguments.nth(1).or_else(by_variable).map(String::as_str)
    }

    fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_sluicegate");
        let mut command = match &self.before {
            None => Command::new(binary),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        command
            .args(&self.arguments)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

// ===== impl Server =====

impl Server {
    /// Starts `sluicegate serve` on a free port with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Launch::serve(arguments).start()
    }

    /// `GET`s a path.
    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], "")
    }

    /// `POST`s JSON to a path.
    pub(crate) fn post_json(&self, path: &str, body: &str) -> Response {
        self.request("POST", path, &[("content-type", "application/json")], body)
    }

    /// Sends a request over a new connection.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        self.connect().request(method, path, headers, body.as_bytes()).unwrap()
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// The folder it runs in.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `TERM` or `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits for it to end.
    pub(crate) fn wait(mut self) -> Finished {
        // Read meanwhile: a process blocks when its pipe is full.
        let mut pipe = self.child.stdout.take().unwrap();
        let reading = thread::spawn(move || {
            let mut stdout = String::new();
            pipe.read_to_string(&mut stdout).map(|_| stdout)
        });
        let status = wait(&mut self.child);
        let stdout = reading.join().unwrap().unwrap();
        Finished { code: status.code(), stdout, stderr: self.log.to_end() }
    }

    /// Waits for a line of the log with this message, and returns the first.
    pub(crate) fn wait_for_log(&self, message: &str) -> Value {
        self.wait_for_logs(message, 1).remove(0)
    }

    /// Waits for `count` lines of the log with this message.
    pub(crate) fn wait_for_logs(&self, message: &str, count: usize) -> Vec<Value> {
        self.log.wait_for(message, |lines| {
            let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found: Vec<_> = parsed.filter(|line| line["message"] == message).collect();
            (found.len() >= count).then_some(found)
        })
    }

    /// Waits for a line of standard error that satisfies `is_it`.
    pub(crate) fn wait_for_line(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.log.wait_for("a line", |lines| lines.iter().find(|line| is_it(line)).cloned())
    }

    /// Address of another listener, such as `grpc`.
    pub(crate) fn address_of(&self, listener: &str) -> SocketAddr {
        self.listener(listener).parse().unwrap()
    }

    /// Address of a listener as it is announced: `127.0.0.1:8080`, or `unix:/path`.
    fn listener(&self, listener: &str) -> String {
        let line =
            self.wait_for_line(|line| line.contains("listening") && listener_in(line) == listener);
        address_in(&line)
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.log.lines.lock().0.join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Kills by process id, and only a child that has not been waited for: no other process can have the id.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Listener in a line of the log, in JSON or text.
fn listener_in(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(line) => line["listener"].as_str().unwrap_or_default().to_owned(),
        Err(_) => {
            let rest = line.split("listener=").nth(1).unwrap_or_default();
            rest.trim_start_matches('"').chars().take_while(char::is_ascii_alphanumeric).collect()
        }
    }
}

/// Address in a line of the log, in JSON or text.
fn address_in(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(line) => line["address"].as_str().unwrap().to_owned(),
        Err(_) => line.split("address=").nth(1).unwrap().trim().to_owned(),
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    eventually("the process to end", || child.try_wait().unwrap())
}

// ===== impl Log =====

impl Log {
    fn follow(stderr: ChildStderr) -> Arc<Self> {
        let log = Arc::new(Self::default());
        let follower = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { break };
                follower.lines.lock().0.push(line);
                follower.changed.notify_all();
            }
            follower.lines.lock().1 = true;
            follower.changed.notify_all();
        });
        log
    }

    /// Waits until `find` returns a value.
    fn wait_for<T>(&self, what: &str, find: impl Fn(&[String]) -> Option<T>) -> T {
        let started = now();
        let mut lines = self.lines.lock();
        loop {
            if let Some(found) = find(&lines.0) {
                return found;
            }
            let left = PATIENCE.saturating_sub(now() - started);
            let goes_on = !lines.1 && !left.is_zero();
            assert!(goes_on, "no {what:?} in the log, but:\n{}", lines.0.join("\n"));
            self.changed.wait_for(&mut lines, left);
        }
    }

    /// Waits until the process has closed its end, and returns everything.
    fn to_end(&self) -> String {
        let mut lines = self.lines.lock();
        while !lines.1 {
            assert!(!self.changed.wait_for(&mut lines, PATIENCE).timed_out(), "stderr stays open");
        }
        lines.0.iter().map(|line| format!("{line}\n")).collect()
    }
}
