//! Runs a program in its language.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::common::{Launch, Server, eventually};

/// A program to run, and its folder.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    folder: TempDir,
}

/// A running program. Dropping it kills it.
struct Running(Child);

/// Service with HTTP and the Redis protocol.
pub(crate) fn serve() -> Server {
    Launch::serve(&[]).with_resp().start()
}

/// Folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

// ===== impl Program =====

impl Program {
    /// Program of a source file, whose name tells the language.
    pub(crate) fn new(source: &Path) -> Self {
        assert!(source.exists(), "there is no {}", source.display());
        let folder = tempfile::tempdir().unwrap();
        let command = match source.extension().and_then(|extension| extension.to_str()) {
            Some("py") => run_by(fetched("python/bin/python"), source),
            Some("mjs") => run_by("node".into(), &beside_modules(source, folder.path())),
            Some("go") => Command::new(built_by_go(source, folder.path())),
            Some("java") => run_by("java".into(), source),
            Some("php") => run_by("php".into(), source),
            Some("rb") => run_by("ruby".into(), source),
            Some("rs") => Command::new(built_by_cargo()),
            _ => panic!("no language that is known: {}", source.display()),
        };
        Self { command, folder }
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the addresses of the service in the environment.
    pub(crate) fn ask(self, server: &Server) -> Self {
        self.env("SLUICEGATE_RESP", &server.address_of("resp").to_string())
            .env("SLUICEGATE_URL", &format!("http://{}", server.address))
    }

    /// Runs the program and returns its output. It must succeed and write nothing to standard error.
    pub(crate) fn run(mut self) -> String {
        let stdout = self.folder.path().join("stdout");
        let stderr = self.folder.path().join("stderr");
        self.command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        let Ok(child) = self.command.spawn() else { missing(&format!("{:?}", self.command)) };
        let mut running = Running(child);
        let status = eventually("a program to end", || running.0.try_wait().unwrap());
        let printed = fs::read_to_string(stdout).unwrap();
        let complaint = fs::read_to_string(stderr).unwrap();
        let is_well = status.success() && complaint.is_empty();
        assert!(is_well, "{:?}: {status}\n{printed}{complaint}", self.command);
        printed
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Kills by process id, and only a child that has not been waited for: no other process can have the id.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// ===== languages =====

fn run_by(interpreter: PathBuf, source: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(source);
    command
}

/// Copies a source to a folder with the packages: modules are resolved relative to the file.
fn beside_modules(source: &Path, folder: &Path) -> PathBuf {
    symlink(fetched("node/node_modules"), folder.join("node_modules")).unwrap();
    let copy = folder.join(source.file_name().unwrap());
    fs::copy(source, &copy).unwrap();
    copy
}

/// Builds with Go, with the packages of Debian and a build cache.
fn built_by_go(source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join("program");
    let output = Command::new("go")
        .args(["build", "-o"])
        .args([&program, source])
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "")
        .env("GOPATH", "/usr/share/gocode")
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .output();
    let Ok(output) = output else { missing("go") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Path of an example that Cargo built with the tests.
fn built_by_cargo() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/client");
    let command = "cargo build -p sluicegate-server --example client";
    assert!(program.exists(), "{} is missing: run `{command}`", program.display());
    program
}

/// Path of a file fetched by `make clients`.
fn fetched(path: &str) -> PathBuf {
    let fetched = root().join("target/clients").join(path);
    if !fetched.exists() {
        missing(&fetched.display().to_string());
    }
    fetched
}

fn missing(what: &str) -> ! {
    panic!("{what} is missing: run `make clients`")
}
