//! Configuration of a server.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::server::{Launch, RedisServer};
use super::{Flavour, free_port};
use crate::shim::ClockShim;
use crate::tls::{Certificates, ServerCertificate};

/// Attempts with another port when another process took the port.
const PORT_ATTEMPTS_MAX: usize = 10;

/// User of the harness on servers with passwords.
pub(super) const ADMIN: (&str, &str) = ("harness", "harness-admin");

/// Part of the line that each server logs when it listens.
const READY: &str = "eady to accept connections";
const READY_SENTINEL: &str = "Sentinel ID is ";

/// Builder of a server, from [`RedisServer::builder`].
#[derive(Debug)]
#[must_use = "nothing is started yet"]
pub struct Builder {
    flavour: Flavour,
    lines: Vec<String>,
    guarded: bool,
    tls: Option<(PathBuf, PathBuf, PathBuf)>,
    unix_socket: bool,
    shim: Option<ClockShim>,
    sentinel: bool,
}

impl Builder {
    pub(super) const fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            lines: Vec::new(),
            guarded: false,
            tls: None,
            unix_socket: false,
            shim: None,
            sentinel: false,
        }
    }

    /// Adds a line to the configuration file. Later lines win.
    pub fn config(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Requires this password from every client, and uses it towards a master.
    ///
    /// The harness's own commands use a user of their own and keep working.
    pub fn requirepass(mut self, password: &str) -> Self {
        self.guarded = true;
        self.config(format!("requirepass {password}")).config(format!("masterauth {password}"))
    }

    /// Adds a user, in the syntax of `ACL SETUSER`: `acl_user("app", "on >secret ~sg:* +eval")`.
    pub fn acl_user(mut self, name: &str, rules: &str) -> Self {
        self.guarded = true;
        self.config(format!("user {name} {rules}"))
    }

    /// Opens a second port with TLS and this certificate; see [`RedisServer::tls_port`].
    ///
    /// Clients need no certificate, unless the line `tls-auth-clients yes` is added: then one of
    /// [`Certificates::client`].
    ///
    /// # Panics
    ///
    /// If the flavour was built without TLS.
    pub fn tls(mut self, certificates: &Certificates, server: ServerCertificate) -> Self {
        assert!(self.flavour.has_tls(), "{:?} was built without TLS", self.flavour);
        let pair = certificates.server(server);
        self.tls = Some((pair.certificate, pair.key, certificates.authority()));
        self
    }

    /// Listens on a Unix socket too; see [`RedisServer::unix_socket`].
    pub const fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Runs the server on a wall clock that the test can step.
    pub fn preload(mut self, shim: &ClockShim) -> Self {
        self.shim = Some(shim.clone());
        self
    }

    /// Replicates the master on this port, which may be that of a proxy.
    pub fn replica_of(self, port: u16) -> Self {
        self.config(format!("replicaof 127.0.0.1 {port}"))
    }

    /// Runs as a node of a cluster.
    pub fn cluster_node(self, node_timeout: Duration) -> Self {
        self.config("cluster-enabled yes")
            .config("cluster-config-file nodes.conf")
            .config(format!("cluster-node-timeout {}", node_timeout.as_millis()))
    }

    /// Runs as a sentinel.
    pub const fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Starts the server and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it does not start; the message contains its log.
    pub fn start(self) -> RedisServer {
        for _ in 0..PORT_ATTEMPTS_MAX {
            let server = RedisServer::launch(self.prepare());
            match server.wait_started() {
                Ok(()) => return server,
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("{:?} did not start:\n{log}", self.flavour),
            }
        }
        panic!("{:?} found every port taken, {PORT_ATTEMPTS_MAX} times", self.flavour);
    }

    fn prepare(&self) -> Launch {
        let folder = TempDir::with_prefix("sluicegate-server-").expect("a temporary folder");
        let port = free_port();
        let tls_port = self.tls.as_ref().map(|_| free_port());
        let socket = self.unix_socket.then(|| folder.path().join("server.sock"));
        let text = self.text(folder.path(), port, tls_port, socket.as_deref());
        fs::write(folder.path().join("server.conf"), text).expect("the configuration is written");
        Launch {
            flavour: self.flavour,
            folder,
            port,
            tls_port,
            socket,
            guarded: self.guarded,
            shim: self.shim.clone(),
            sentinel: self.sentinel,
            ready_line: if self.sentinel { READY_SENTINEL } else { READY },
        }
    }

    fn text(&self, folder: &Path, port: u16, tls: Option<u16>, socket: Option<&Path>) -> String {
        let mut text = format!("bind 127.0.0.1\nport {port}\ndir {}\n", folder.display());
        if !self.sentinel {
            // Replicas are synchronised at once, and without a file on disk.
            text +=
                "save \"\"\nappendonly no\nrepl-diskless-sync yes\nrepl-diskless-sync-delay 0\n";
        }
        if let (Some(port), Some((certificate, key, authority))) = (tls, &self.tls) {
            writeln!(text, "tls-port {port}\ntls-auth-clients no").unwrap();
            writeln!(text, "tls-cert-file {}", certificate.display()).unwrap();
            writeln!(text, "tls-key-file {}", key.display()).unwrap();
            writeln!(text, "tls-ca-cert-file {}", authority.display()).unwrap();
        }
        if let Some(path) = socket {
            writeln!(text, "unixsocket {}\nunixsocketperm 700", path.display()).unwrap();
        }
        if self.guarded {
            writeln!(text, "user {} on >{} ~* &* +@all", ADMIN.0, ADMIN.1).unwrap();
        }
        self.lines.iter().for_each(|line| writeln!(text, "{line}").unwrap());
        text
    }
}
