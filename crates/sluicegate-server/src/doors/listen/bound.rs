//! Bound sockets of listeners: TCP, or a Unix socket with its file.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

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

/// File in which the groups of this machine are listed.
const GROUPS: &str = "/etc/group";

/// A bound socket.
#[derive(Debug)]
pub(super) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
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
                let (listener, file) = unix(address)?;
                Ok(Self::Unix(listener, file))
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
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), UNIX_PEER))
            }
        }
    }

    /// Removes the file of a Unix socket, so that clients see that it is gone. Connections already queued can still be
    /// accepted.
    pub(super) fn retire(&self) {
        if let Self::Unix(_, file) = self {
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
fn unix(address: &UnixAddress) -> io::Result<(UnixListener, SocketFile)> {
    let UnixAddress { path, mode, group } = address;
    let group = group.as_deref().map(group_id).transpose()?;
    remove_stale(path)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let found = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.clone(), identity: (found.dev(), found.ino()) };
    if group.is_some() {
        chown(path, None, group)?;
    }
    fs::set_permissions(path, Permissions::from_mode(*mode))?;
    Ok((socket.listen(BACKLOG)?, file))
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
        io::Error::new(io::ErrorKind::NotFound, message)
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
