//! Starts proxies with the files of `examples/proxies`.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use sluicegate_tests::process::Process;
use sluicegate_tests::servers::free_port;
use tempfile::TempDir;

use crate::common::{Client, eventually};

// Addresses in the files.
const SLUICEGATE: &str = "127.0.0.1:8080";
const APP: &str = "127.0.0.1:3000";
const LISTEN: &str = "127.0.0.1:8000";

/// Maximum number of starts: another process may have taken the port.
const STARTS_MAX: usize = 5;

/// A proxy and its configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx403,
    Nginx429,
    Caddy,
    CaddyShort,
    Traefik,
    HaProxy,
}

/// Timeout of proxies for Sluicegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The timeout in the files.
    AsWritten,
    /// A timeout that a busy machine does not exceed.
    Long,
}

/// A running proxy. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Nginx403,
        Self::Nginx429,
        Self::Caddy,
        Self::CaddyShort,
        Self::Traefik,
        Self::HaProxy,
    ];

    /// Name of its program in the folder of servers.
    fn server(self) -> &'static str {
        match self {
            Self::Nginx403 | Self::Nginx429 => "nginx",
            Self::Caddy | Self::CaddyShort => "caddy",
            Self::Traefik => "traefik",
            Self::HaProxy => "haproxy",
        }
    }

    /// Its files in `examples/proxies`.
    pub(crate) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Nginx403 => &["nginx-403.conf"],
            Self::Nginx429 => &["nginx-429.conf"],
            Self::Caddy => &["Caddyfile"],
            Self::CaddyShort => &["Caddyfile.short"],
            Self::Traefik => &["traefik/traefik.yml", "traefik/sluicegate.yml"],
            Self::HaProxy => &["haproxy.cfg", "sluicegate.lua"],
        }
    }

    /// Command line arguments, relative to the folder of its files.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Nginx403 | Self::Nginx429 => &["-e", "stderr", "-p", ".", "-c", "nginx.conf"],
            Self::Caddy => &["run", "--config", "Caddyfile"],
            Self::CaddyShort => &["run", "--adapter", "caddyfile", "--config", "Caddyfile.short"],
            Self::Traefik => &["--configfile", "traefik.yml"],
            Self::HaProxy => &["-db", "-f", "haproxy.cfg"],
        }
    }

    /// Main configuration that includes the files: the necessary parts of Debian's nginx.conf, for one process.
    fn around(self) -> Option<(&'static str, String)> {
        let (Self::Nginx403 | Self::Nginx429) = self else { return None };
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr;
             events {{ worker_connections 512; }}
             http {{
                 access_log off;
                 client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                 uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                 include {};
             }}",
            self.files()[0]
        );
        Some(("nginx.conf", text))
    }
}

impl Proxy {
    /// Starts the proxy in front of this Sluicegate and this application, and waits until it serves.
    pub(crate) fn start(
        kind: Kind,
        patience: Patience,
        sluicegate: SocketAddr,
        app: SocketAddr,
    ) -> Self {
        for _ in 0..STARTS_MAX {
            let proxy = Self::try_start(kind, patience, sluicegate, app);
            let serves = eventually("the proxy", || {
                let ended = proxy.process.ended().is_some();
                if ended { Some(false) } else { proxy.serves().then_some(true) }
            });
            if serves {
                return proxy;
            }
            // Another process has the port, or the files are invalid.
            println!("{kind:?} ended: {}", proxy.log());
        }
        panic!("{kind:?} does not start");
    }

    fn try_start(kind: Kind, patience: Patience, sluicegate: SocketAddr, app: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        for file in kind.files() {
            let path = Path::new(file);
            let text = fs::read_to_string(examples().join(path)).unwrap();
            let text = with_addresses(&text, sluicegate, app, address);
            let text = if patience == Patience::Long { patient(&text) } else { text };
            fs::write(folder.path().join(path.file_name().unwrap()), text).unwrap();
        }
        if let Some((name, text)) = kind.around() {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let log = File::create(folder.path().join("log")).unwrap();
        let program = servers().join(kind.server()).join("server").canonicalize();
        let program =
            program.unwrap_or_else(|_| panic!("{} is missing: run `make servers`", kind.server()));
        let process = Process::start(program, |command| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.args(kind.arguments()).current_dir(folder.path()).env_clear().env("PATH", path);
            // Keeps Caddy's files in the folder.
            command.env("HOME", folder.path());
            command.env("CADDY_ADMIN", format!("unix/{}", folder.path().join("admin").display()));
            write_to(command, &log);
        });
        Self { address, process, folder }
    }

    /// Opens a connection to the proxy.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// Output of the proxy.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn serves(&self) -> bool {
        let ask = || Client::connect(self.address)?.request("GET", "/ready", &[], b"");
        ask().is_ok_and(|response| response.header("x-app").is_some())
    }
}

fn write_to(command: &mut Command, log: &File) {
    command.stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
}

/// Replaces the addresses in a file.
fn with_addresses(
    text: &str,
    sluicegate: SocketAddr,
    app: SocketAddr,
    listen: SocketAddr,
) -> String {
    text.replace(SLUICEGATE, &sluicegate.to_string())
        .replace(APP, &app.to_string())
        .replace(LISTEN, &listen.to_string())
        // Lua has address and port apart, and Caddy has the port only.
        .replace(r#""127.0.0.1", 8080"#, &format!(r#""127.0.0.1", {}"#, sluicegate.port()))
        .replace("http://:8000", &format!("http://:{}", listen.port()))
}

/// Replaces the timeouts by long ones that a busy machine does not reach.
fn patient(text: &str) -> String {
    text.replace("100ms", "15s").replace("50ms", "15s").replace("TIMEOUT_S = 0.1", "TIMEOUT_S = 15")
}

/// Folder of the example files.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/proxies")
}

fn servers() -> PathBuf {
    std::env::var_os("SLUICEGATE_SERVERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers"),
        PathBuf::from,
    )
}
