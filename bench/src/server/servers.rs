//! The servers, each a separate process with all its doors open.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sluicegate_tests::process::Process;
use sluicegate_tests::servers::free_port;
use sluicegate_tests::wait;
use tempfile::TempDir;

use crate::cores;
use crate::doors::{Door, NULL, SLUICEGATE, THROTTLECRAB};
use crate::null::Answers;

const START_LIMIT: Duration = Duration::from_secs(20);

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

/// A server that runs until this is dropped.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    process: Process,
    ports: [u16; 4],
    /// Folder of its files, deleted with it.
    _folder: TempDir,
}

impl Server {
    /// Sluicegate with its defaults, and rules from a file.
    pub(crate) fn sluicegate(is_pinned: bool) -> Result<Self, String> {
        let program =
            std::env::var_os("SLUICEGATE_BIN").map_or_else(|| PROGRAM.into(), PathBuf::from);
        let (http, grpc, resp) = (free_port(), free_port(), free_port());
        Self::start(SLUICEGATE, &program, is_pinned, [http, grpc, resp, resp], |command| {
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
        let mut server = Self::start(NULL, &program, is_pinned, ports, |command| {
            command.arg("--null").arg(path).args(ports.map(|port| port.to_string()));
        })?;
        server._folder = folder;
        Ok(server)
    }

    /// throttlecrab's own server with its defaults.
    pub(crate) fn throttlecrab(is_pinned: bool) -> Result<Self, String> {
        let ports @ [http, grpc, resp, _] = [(); 4].map(|()| free_port());
        Self::start(THROTTLECRAB, Path::new(PEER), is_pinned, [http, grpc, resp, resp], |command| {
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
        program: &Path,
        is_pinned: bool,
        ports: [u16; 4],
        configure: impl FnOnce(&mut Command),
    ) -> Result<Self, String> {
        if !program.exists() {
            return Err(format!("{} is missing: make bench-server builds it", program.display()));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let process = Process::start("taskset", |command| {
            command.args(["-c", &cores::of_servers(is_pinned)]).arg(program);
            command.current_dir(folder.path()).stdout(Stdio::null());
            configure(command);
        });
        let is_open = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let are_open = || ports.iter().all(|port| is_open(*port));
        if wait::within(START_LIMIT, || process.ended().is_some() || are_open()) && are_open() {
            Ok(Self { name, process, ports, _folder: folder })
        } else {
            Err(format!("{} did not start", program.display()))
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn port(&self, door: Door) -> u16 {
        self.ports[door as usize]
    }
}
