//! Three server processes on one Redis over HTTP: their combined rate, and that one bucket grants exactly its
//! quota over all of them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use sluicegate_tests::process::Process;
use sluicegate_tests::servers::free_port;
use sluicegate_tests::wait;
use tempfile::TempDir;

use crate::keys::SUBJECTS;
use crate::quiet::quiet;

const PROCESSES: usize = 3;
/// Number of connections to each process, with one request in flight on each.
const CONNECTIONS: usize = 8;
const ROUND: Duration = Duration::from_millis(500);
const START_LIMIT: Duration = Duration::from_secs(10);

/// Tokens of the shared bucket; the next one is refilled after more than five minutes.
const HOT_TOKENS: usize = 4000;
/// Number of checks beyond the capacity.
const HOT_BEYOND: usize = 2000;

/// Program built by `make bench-redis`, unless `SLUICEGATE_BIN` names another.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/dist/sluicegate");

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Processes {
    pub(crate) processes: usize,
    pub(crate) connections: usize,
    /// Rate of all processes together, by the quiet rounds.
    pub(crate) checks_per_sec: f64,
    pub(crate) hot: Hot,
}

/// Result of one bucket that all processes charge concurrently.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Hot {
    pub(crate) quota: usize,
    pub(crate) asked: usize,
    pub(crate) granted: usize,
}

/// Measures, or returns the reason why it cannot.
pub(crate) fn measure(url: &str, rounds: usize) -> Result<Processes, String> {
    let program = std::env::var_os("SLUICEGATE_BIN").map_or_else(|| PROGRAM.into(), PathBuf::from);
    if !program.exists() {
        return Err(format!("{} is missing: make bench-redis builds it", program.display()));
    }
    let mut running = Vec::new();
    for _ in 0..PROCESSES {
        running.push(start(&program, url)?);
    }
    let ports: Vec<_> = running.iter().map(|(_, port, _)| *port).collect();
    let failed = |error: io::Error| format!("over HTTP: {error}");
    let hot = hot(&ports).map_err(failed)?;
    let rates: io::Result<Vec<_>> = (0..rounds).map(|_| round(&ports)).collect();
    Ok(Processes {
        processes: PROCESSES,
        connections: PROCESSES * CONNECTIONS,
        checks_per_sec: quiet(rates.map_err(failed)?.into_iter()),
        hot,
    })
}

/// A process with its port and the folder of its database, which is deleted with it.
type Running = (Process, u16, TempDir);

fn start(program: &Path, url: &str) -> Result<Running, String> {
    let port = free_port();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let process = Process::start(program, |command| {
        // Variables of the benchmark are not for the server.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLUICEGATE_")) {
            command.env_remove(name);
        }
        command
            .arg("serve")
            .env("SLUICEGATE_LISTEN_HTTP", format!("127.0.0.1:{port}"))
            // All processes would use the same default ports.
            .env("SLUICEGATE_LISTEN_GRPC", "")
            .env("SLUICEGATE_LISTEN_RESP", "")
            .env("SLUICEGATE_STORE_URL", url)
            // A busy machine must not count as a failure of the store.
            .env("SLUICEGATE_STORE_BUDGET_MS", "5000")
            .env("SLUICEGATE_LOG_LEVEL", "error")
            .current_dir(folder.path())
            .stdout(Stdio::null());
    });
    let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    if wait::within(START_LIMIT, || process.ended().is_some() || answers()) && answers() {
        Ok((process, port, folder))
    } else {
        Err(format!("{} did not start on Redis", program.display()))
    }
}

/// Runs a round over many keys, and returns the checks per second of all processes.
fn round(ports: &[u16]) -> io::Result<f64> {
    let (done, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let started = Instant::now();
    on_all(ports, |client, random| {
        while !ended.load(Ordering::Relaxed) {
            let body = take(random.usize(..SUBJECTS), 1000);
            client.ask(&body)?;
            done.fetch_add(1, Ordering::Relaxed);
            if started.elapsed() >= ROUND {
                ended.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    Ok(done.into_inner() as f64 / started.elapsed().as_secs_f64())
}

/// Charges one key beyond its capacity.
fn hot(ports: &[u16]) -> io::Result<Hot> {
    let asked = HOT_TOKENS + HOT_BEYOND;
    let (left, granted) = (AtomicUsize::new(asked), AtomicUsize::new(0));
    let body = take(SUBJECTS, HOT_TOKENS);
    on_all(ports, |client, _| {
        let next = |left: usize| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
            granted.fetch_add(usize::from(client.ask(&body)?), Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(Hot { quota: HOT_TOKENS, asked, granted: granted.into_inner() })
}

/// Request for a token of this key, with `tokens` in two weeks.
fn take(subject: usize, tokens: usize) -> Vec<u8> {
    let interval = 14 * 86_400;
    let body = format!(
        r#"{{"key":"bench:{subject}","capacity":{tokens},"refill_rate":{tokens},"refill_interval":{interval}}}"#
    );
    let head = "POST /v1/take HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Runs a function on every connection to every process, each on a separate thread.
fn on_all(
    ports: &[u16],
    work: impl Fn(&mut Client, &mut fastrand::Rng) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for port in ports.iter().flat_map(|port| [*port; CONNECTIONS]) {
            let (work, failed) = (&work, &failed);
            scope.spawn(move || {
                let result = Client::connect(port)
                    .and_then(|mut client| work(&mut client, &mut fastrand::Rng::new()));
                if let Err(error) = result {
                    failed.lock().expect("no thread panics").get_or_insert(error);
                }
            });
        }
    });
    failed.into_inner().expect("no thread panics").map_or(Ok(()), Err)
}

/// A persistent connection.
struct Client {
    stream: BufReader<TcpStream>,
    line: String,
    body: Vec<u8>,
}

impl Client {
    fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), line: String::new(), body: Vec::new() })
    }

    /// Sends a request; true if it was granted. A degraded answer is an error.
    fn ask(&mut self, request: &[u8]) -> io::Result<bool> {
        self.stream.get_mut().write_all(request)?;
        self.line.clear();
        self.stream.read_line(&mut self.line)?;
        let is_ok = self.line.starts_with("HTTP/1.1 200");
        let mut length = 0;
        loop {
            self.line.clear();
            self.stream.read_line(&mut self.line)?;
            let Some((name, value)) = self.line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        let body = String::from_utf8_lossy(&self.body);
        if !is_ok || body.contains("degraded") {
            return Err(io::Error::other(body.into_owned()));
        }
        Ok(body.contains(r#""allowed":true"#))
    }
}
