//! Bound sockets of listeners: TCP, or a Unix socket with its file.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use sluicegate::client_ip::canonical;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

use crate::config::{Address, UnixAddress};
use crate::doors::socket::Socket;

/// Length of the kernel's queue of connections to be accepted.
const BACKLOG: u32 = 1024;

/// Address of every client of a Unix socket, which has none of its own.
const UNIX_PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Attempts to lock the folder of a socket: other processes that bind one in it take microseconds each.
const LOCK_ATTEMPTS: u32 = 200;

/// Time between two attempts to lock the folder.
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// File in which the groups of this machine are listed.
const GROUPS: &str = "/etc/group";

/// A bound socket.
#[derive(Debug)]
pub(super) enum Bound {
    Tcp(TcpListener),
    /// The file comes first, to be removed while the socket still listens: another process does not take it for stale.
    Unix(SocketFile, UnixListener),
}

/// File of a Unix socket, removed on drop.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode: another process may have replaced the file.
    identity: (u64, u64),
}

impl Bound {
    /// Binds an address and listens.
    pub(super) fn new(address: &Address, keeps_alive: bool) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => tcp(*address, keeps_alive).map(Self::Tcp),
            Address::Unix(address) => {
                let (file, listener) = unix(address)?;
                Ok(Self::Unix(file, listener))
            }
        }
    }

    /// Bound address, with the actual port.
    pub(super) fn address(&self, configured: &Address) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?)),
            Self::Unix(..) => Ok(configured.clone()),
        }
    }

    /// Accepts a connection.
    pub(super) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // A dual-stack listener sees IPv4 addresses as IPv6, and so does one behind a NAT64: they are converted
                // back.
                let peer = SocketAddr::new(canonical(peer.ip()), peer.port());
                Ok((Socket::Tcp(stream), peer))
            }
            Self::Unix(_, listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), UNIX_PEER))
            }
        }
    }

    /// Removes the file of a Unix socket, so that clients see that it is gone. Connections already queued can still be
    /// accepted.
    pub(super) fn retire(&self) {
        if let Self::Unix(file, _) = self {
            file.remove();
        }
    }
}

fn tcp(address: SocketAddr, keeps_alive: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Old connections of an ended process do not block the address.
    socket.set_reuseaddr(true)?;
    // Connections inherit keep-alive from their listener.
    socket.set_keepalive(keeps_alive)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Binds a Unix socket. Nothing can connect before its file has its mode and group.
fn unix(address: &UnixAddress) -> io::Result<(SocketFile, UnixListener)> {
    let UnixAddress { path, mode, group } = address;
    let group = group.as_deref().map(group_id).transpose()?;
    let _lock = lock_folder(path);
    remove_stale(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let found = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.clone(), identity: (found.dev(), found.ino()) };
    if group.is_some() {
        chown(path, None, group)?;
    }
    fs::set_permissions(path, Permissions::from_mode(*mode))?;
    Ok((file, socket.listen(BACKLOG)?))
}

/// Locks the folder of a socket until the result is dropped: a socket that another process has bound, and on which it
/// does not listen yet, would be taken for stale. `None` if the folder cannot be locked: the start does not depend on
/// it, because every user who can read the folder can hold the lock.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = File::open(path.parent()?).ok()?;
    for _ in 0..LOCK_ATTEMPTS {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) => wait_for_lock(),
            Err(_) => return None,
        }
    }
    None
}

#[expect(clippy::disallowed_methods, reason = "at the start, before anything is served")]
fn wait_for_lock() {
    thread::sleep(LOCK_RETRY);
}

/// Removes the socket that an ended process left.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        let message = "there is a file of another kind, which is not replaced";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Err(Errno::ACCESS | Errno::PERM) => Err(io::ErrorKind::PermissionDenied.into()),
        // Connected, or the queue of the listener is full.
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Number of a group by its name or number.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string(GROUPS)?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(group);
        is_it.then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    let unknown = || {
        let message =
            format!("{GROUPS} has no group `{group}`: name another one, or give its number");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    found.ok_or_else(unknown)
}

impl SocketFile {
    fn remove(&self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            // A file that cannot be removed is stale for the next process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net;
    use std::sync::Barrier;

    use super::*;

    /// Number of starts at once.
    const STARTS: usize = 8;

    #[test]
    fn of_several_starts_at_once_one_gets_the_socket() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let address = UnixAddress { path: path.clone(), mode: 0o600, group: None };
        for round in 0..50 {
            // An ended process has left its file.
            drop(net::UnixListener::bind(&path).unwrap());
            let barrier = Barrier::new(STARTS);
            let start = || {
                let _context = runtime.enter();
                barrier.wait();
                unix(&address)
            };
            let bound: Vec<_> = thread::scope(|scope| {
                let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            });
            let (started, refused): (Vec<_>, Vec<_>) = bound.into_iter().partition(Result::is_ok);
            assert_eq!(started.len(), 1, "round {round}");
            for error in refused.into_iter().filter_map(Result::err) {
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            }
            net::UnixStream::connect(&path).unwrap();
            drop(started);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_folder_that_another_process_has_locked_stops_no_start() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _context = runtime.enter();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let _lock = lock_folder(&path).unwrap();
        let bound = unix(&UnixAddress { path: path.clone(), mode: 0o600, group: None });
        net::UnixStream::connect(&path).unwrap();
        drop(bound);
    }
}
