//! Raw connections from chosen addresses of loopback, and raw replies of the Redis protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;

use crate::common::{PATIENCE, Server, suite_bearer};

/// Address of the attacker.
pub(crate) const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1));
/// Address of a client in another network.
pub(crate) const NEWCOMER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 2, 1));

/// End of an attack by other threads, which look at the flag: set when this is dropped, also by a failed assertion.
#[derive(Debug)]
pub(crate) struct EndOfAttack<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOfAttack<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reply to a command of the Redis protocol, as it is sent, over a new connection.
pub(crate) fn resp_reply(to: SocketAddr, command: &str) -> String {
    // The reply is complete when that of a second command follows.
    const END: &str = "+PONG\r\n";
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    sign_in(&mut stream);
    write!(stream, "{command}\r\nPING\r\n").unwrap();
    let (mut stream, mut reply) = (BufReader::new(stream), String::new());
    while !reply.ends_with(END) {
        assert_ne!(stream.read_line(&mut reply).unwrap(), 0, "closed after {reply:?}");
    }
    reply.truncate(reply.len() - END.len());
    reply
}

/// `AUTH` of the Redis protocol as the suite's caller, whose reply is `+OK`; empty if the suite has none.
pub(crate) fn suite_auth() -> String {
    let auth = |bearer: String| bearer.replacen("Bearer", "AUTH suite", 1) + "\r\n";
    suite_bearer().map(auth).unwrap_or_default()
}

/// Authenticates a connection of the Redis protocol as the suite's caller, if it has one.
pub(crate) fn sign_in(stream: &mut TcpStream) {
    let auth = suite_auth();
    if !auth.is_empty() {
        let reply = ask(stream, auth.as_bytes(), "\r\n").unwrap();
        assert_eq!(reply, "+OK\r\n");
    }
}

/// Opens an authenticated connection of the Redis protocol from a local address.
pub(crate) fn connect_resp(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connect(from, to)?;
    sign_in(&mut stream);
    Ok(stream)
}

/// Opens a connection from a local address.
pub(crate) fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let mut streams = open(from, to, 1);
    streams.pop().ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}

/// Opens up to this many connections from a local address. Those that are refused are left out.
pub(crate) fn open(from: IpAddr, to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = async || {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(to).await?.into_std()?;
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        io::Result::Ok(stream)
    };
    runtime.block_on(async {
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            streams.extend(connect().await.ok());
        }
        streams
    })
}

/// Sends bytes and reads until the answer contains `end`, or the connection is closed.
pub(crate) fn ask(stream: &mut TcpStream, bytes: &[u8], end: &str) -> io::Result<String> {
    stream.write_all(bytes)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if text.contains(end) {
            return Ok(text);
        }
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        answer.extend_from_slice(&piece[..read]);
    }
}

/// Returns whether a connection is open and has nothing to read, without waiting.
pub(crate) fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    seen.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Raises this process's limit of descriptors; false if that many are not allowed.
pub(crate) fn has_descriptors(count: u64) -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: Some(count), maximum };
    current.is_none_or(|current| current >= count)
        || (maximum.is_none_or(|maximum| maximum >= count)
            && setrlimit(Resource::Nofile, wanted).is_ok())
}

/// Reads until the connection is closed, and returns what was read. A reset counts as closed; an open connection fails
/// the test after [`PATIENCE`].
pub(crate) fn read_to_end(stream: &mut TcpStream) -> String {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) => {
                let is_open =
                    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                assert!(!is_open, "the connection stays open");
                break;
            }
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Value of a metric, which may be given with its labels; without them, the sum over all labels. 0 if it has no value yet.
pub(crate) fn metric(server: &Server, name: &str) -> usize {
    let text = server.get("/metrics").body;
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = rest.starts_with([' ', '{']).then(|| rest.rsplit(' ').next())??;
        Some(value.parse::<usize>().unwrap())
    });
    values.sum()
}

/// Resident memory of a process in KiB.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
