//! The servers, each a separate process with all its doors open.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use sluicegate_tests::process::Process;
use sluicegate_tests::servers::free_port;
use sluicegate_tests::wait;
use tempfile::TempDir;

use crate::cores;
use crate::doors::{Door, NULL, SLUICEGATE, THROTTLECRAB};
use crate::null::Answers;

const START_LIMIT: Duration = Duration::from_secs(20);

/// Time to start under callgrind, which is some fifty times slower.
const COUNTED_START_LIMIT: Duration = Duration::from_secs(120);
/// Time to shut down under callgrind.
const COUNTED_STOP_LIMIT: Duration = Duration::from_secs(60);

/// Counts inside tasks only: the runtime's own work, and clocks that calibrate themselves, depend on chance. The names
/// are in every build that is not stripped.
const COUNTED: &str = "--toggle-collect=*runtime::task::harness::Harness*::poll";

/// File with callgrind's messages, in the server's folder.
const CALLGRIND_LOG: &str = "callgrind.log";

/// Program built by `make bench-server`, unless `SLUICEGATE_BIN` names another.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/dist/sluicegate");
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/peers/bin/throttlecrab-server");

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/rules.toml");

/// Maximum number of connections, more than are ever open.
const CONNECTIONS_MAX: usize = 20_000;

/// Idle timeout, longer than a run.
const IDLE_TIMEOUT_MS: u64 = 3_600_000;

/// True if the peer was built.
pub(crate) fn has_throttlecrab() -> bool {
    Path::new(PEER).exists()
}

/// Sluicegate's program.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("SLUICEGATE_BIN").map_or_else(|| PROGRAM.into(), PathBuf::from)
}

/// A program, and the way to run it.
struct Runner<'a> {
    program: &'a Path,
    is_pinned: bool,
    /// Under callgrind, which counts instructions.
    is_counted: bool,
}

/// A server that runs until this is dropped.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    process: Process,
    ports: [u16; 4],
    /// Folder of its files, deleted with it.
    folder: TempDir,
}

impl Server {
    /// Sluicegate with its defaults, and rules from a file.
    pub(crate) fn sluicegate(is_pinned: bool) -> Result<Self, String> {
        Self::of_build(Runner { program: &program(), is_pinned, is_counted: false })
    }

    /// A build of Sluicegate on one core under callgrind.
    pub(crate) fn counted(program: &Path) -> Result<Self, String> {
        Self::of_build(Runner { program, is_pinned: true, is_counted: true })
    }

    fn of_build(runner: Runner<'_>) -> Result<Self, String> {
        let (http, grpc, resp) = (free_port(), free_port(), free_port());
        Self::start(SLUICEGATE, runner, [http, grpc, resp, resp], |command| {
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLUICEGATE_")) {
                command.env_remove(name);
            }
            let at = |port| format!("127.0.0.1:{port}");
            command
                .args(["serve", "--rules", RULES])
                .env("SLUICEGATE_LISTEN_HTTP", at(http))
                .env("SLUICEGATE_LISTEN_GRPC", at(grpc))
                .env("SLUICEGATE_LISTEN_RESP", at(resp))
                .env("SLUICEGATE_LIMITS_CONNECTIONS_MAX", CONNECTIONS_MAX.to_string())
                // Connections are idle during the other contenders' turns.
                .env("SLUICEGATE_LIMITS_IDLE_TIMEOUT_MS", IDLE_TIMEOUT_MS.to_string())
                .env("SLUICEGATE_LOG_LEVEL", "error");
        })
    }

    /// The null server: this program, which parses requests and always sends the same answer.
    pub(crate) fn null(is_pinned: bool, answers: &Answers) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        answers.save(folder.path()).map_err(|error| error.to_string())?;
        let ports = [(); 4].map(|()| free_port());
        let path = folder.path().to_owned();
        let runner = Runner { program: &program, is_pinned, is_counted: false };
        let mut server = Self::start(NULL, runner, ports, |command| {
            command.arg("--null").arg(path).args(ports.map(|port| port.to_string()));
        })?;
        server.folder = folder;
        Ok(server)
    }

    /// throttlecrab's own server with its defaults.
    pub(crate) fn throttlecrab(is_pinned: bool) -> Result<Self, String> {
        let ports @ [http, grpc, resp, _] = [(); 4].map(|()| free_port());
        let runner = Runner { program: Path::new(PEER), is_pinned, is_counted: false };
        Self::start(THROTTLECRAB, runner, [http, grpc, resp, resp], |command| {
            for (door, port) in ["http", "grpc", "redis"].into_iter().zip(ports) {
                command.arg(format!("--{door}"));
                command.args([&format!("--{door}-host"), "127.0.0.1"]);
                command.args([&format!("--{door}-port"), &port.to_string()]);
            }
            command.args(["--log-level", "error"]);
        })
    }

    fn start(
        name: &'static str,
        runner: Runner<'_>,
        ports: [u16; 4],
        configure: impl FnOnce(&mut Command),
    ) -> Result<Self, String> {
        let Runner { program, is_pinned, is_counted } = runner;
        if !program.exists() {
            return Err(format!("{} is missing: make bench-server builds it", program.display()));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let process = Process::start("taskset", |command| {
            command.args(["-c", &cores::of_servers(is_pinned)]);
            if is_counted {
                command.args(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                command.args([COUNTED, &format!("--log-file={CALLGRIND_LOG}")]);
            }
            command.arg(program);
            command.current_dir(folder.path()).stdout(Stdio::null());
            configure(command);
        });
        let is_open = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let are_open = || ports.iter().all(|port| is_open(*port));
        let limit = if is_counted { COUNTED_START_LIMIT } else { START_LIMIT };
        if wait::within(limit, || process.ended().is_some() || are_open()) && are_open() {
            Ok(Self { name, process, ports, folder })
        } else {
            Err(format!("{} did not start", program.display()))
        }
    }

    /// Shuts a server under callgrind down, and returns the number of instructions of its tasks.
    pub(crate) fn instructions(self) -> Result<f64, String> {
        self.process.signal(Signal::TERM);
        if !wait::within(COUNTED_STOP_LIMIT, || self.process.ended().is_some()) {
            return Err("the server did not shut down under callgrind".to_owned());
        }
        let log = fs::read_to_string(self.folder.path().join(CALLGRIND_LOG));
        let log = log.map_err(|error| format!("callgrind's log: {error}"))?;
        let collected = log.lines().find_map(|line| line.split_once("Collected :"));
        let count = collected.and_then(|(_, count)| count.trim().replace(',', "").parse().ok());
        count.ok_or_else(|| format!("callgrind counted nothing: {log}"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn port(&self, door: Door) -> u16 {
        self.ports[door as usize]
    }
}
