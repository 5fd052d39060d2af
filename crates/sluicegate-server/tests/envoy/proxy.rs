//! Starts Envoy with the example file.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sluicegate_tests::process::Process;
use tempfile::TempDir;

use crate::common::{Client, Response, eventually};

// Ports in the file.
const LISTEN: &str = "port_value: 10000";
const APP: &str = "port_value: 8000";
const SLUICEGATE: &str = "port_value: 8081";
/// Timeout of Envoy for Sluicegate in the file, and one that a busy machine does not exceed.
const TIMEOUT: &str = "timeout: 0.1s";
const PATIENT: &str = "timeout: 20s";
/// Service of the filter in the file.
const SERVICE: &str = "grpc_service: { envoy_grpc: { cluster_name: sluicegate } }";
/// Field of Envoy that names its caller, and a token in its place in `docs/envoy.md`.
pub(crate) const CALLER: &str = "initial_metadata";
const TOKEN: &str = "sg_...";

/// A running Envoy. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Envoy {
    address: SocketAddr,
    admin: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

/// Path of the example file.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/envoy/envoy.yaml")
}

fn program() -> PathBuf {
    let target = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let folder = std::env::var_os("SLUICEGATE_SERVERS").map_or_else(target, PathBuf::from);
    let program = folder.join("envoy/server");
    assert!(program.exists(), "{} is missing: run `make servers`", program.display());
    program
}

impl Envoy {
    /// Starts Envoy in front of this Sluicegate and this application, and waits until it serves.
    pub(crate) fn start(sluicegate: SocketAddr, app: SocketAddr) -> Self {
        Self::start_with(sluicegate, app, &[(TIMEOUT, PATIENT)])
    }

    /// Like `start`, with the token of a caller, set as `docs/envoy.md` shows.
    pub(crate) fn start_as(token: &str, sluicegate: SocketAddr, app: SocketAddr) -> Self {
        let page = include_str!("../../../../docs/envoy.md");
        let blocks = page.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
        let block = blocks.into_iter().find(|block| block.contains(CALLER)).unwrap();
        let service = block.trim().replace(TOKEN, token);
        Self::start_with(sluicegate, app, &[(TIMEOUT, PATIENT), (SERVICE, &service)])
    }

    /// Like `start`, with replacements in the file.
    pub(crate) fn start_with(
        sluicegate: SocketAddr,
        app: SocketAddr,
        changes: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = fs::read_to_string(example()).unwrap();
        let ports = [
            (LISTEN, "port_value: 0".to_owned()),
            (APP, format!("port_value: {}", app.port())),
            (SLUICEGATE, format!("port_value: {}", sluicegate.port())),
        ];
        let ports = ports.iter().map(|(from, to)| (*from, to.as_str()));
        for (from, to) in ports.chain(changes.iter().copied()) {
            assert_eq!(text.matches(from).count(), 1, "{from:?} is in the file once");
            text = text.replace(from, to);
        }
        text += "admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }\n";
        fs::write(folder.path().join("envoy.yaml"), text).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let process = Process::start(program(), |command| {
            command
                .args(["-c", "envoy.yaml", "--concurrency", "1", "--disable-hot-restart"])
                .args(["--log-level", "warning", "--admin-address-path", "admin"])
                .current_dir(folder.path())
                .stdout(log.try_clone().unwrap())
                .stderr(log);
        });
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let admin: SocketAddr = eventually("Envoy", || {
            assert!(process.ended().is_none(), "Envoy ended: {}", read("log"));
            read("admin").parse().ok()
        });
        let address = eventually("Envoy's listener", || listener(admin));
        Self { address, admin, _process: process, _folder: folder }
    }

    /// Sends a request over a new connection.
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut client = Client::connect(self.address).unwrap();
        client.request("GET", path, headers, b"").unwrap()
    }

    /// Statistic of Envoy's rate limit filter.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let name = format!("cluster.app.ratelimit.{name}");
        let path = format!("/stats?filter={name}");
        let mut client = Client::connect(self.admin).unwrap();
        let body = client.request("GET", &path, &[], b"").unwrap().body;
        let is_it = |line: &&str| line.starts_with(&format!("{name}:"));
        body.lines().find(is_it).map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }
}

/// Address of the listener; `None` until Envoy listens.
fn listener(admin: SocketAddr) -> Option<SocketAddr> {
    let mut client = Client::connect(admin).ok()?;
    let ready = client.request("GET", "/ready", &[], b"").ok()?;
    let listeners = client.request("GET", "/listeners", &[], b"").ok()?.body;
    let line = listeners.lines().find_map(|line| line.strip_prefix("ingress::"))?;
    line.parse().ok().filter(|_| ready.status == 200)
}
