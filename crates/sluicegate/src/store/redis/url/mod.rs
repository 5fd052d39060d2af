//! URLs of Redis: one server, a master behind sentinels, or a cluster.
//!
//! ```text
//! redis://[user[:password]@]host[:port][/db]                        one server (rediss: over TLS)
//! unix:/path.sock[?db=N]
//! redis+unix://[user[:password]@]/path.sock[?db=N]                  one server, by a socket
//! redis+sentinel://[user[:password]@]host[:port],.../master[?db=N]  its master (rediss+sentinel)
//!     [&sentinel_username=U][&sentinel_password=P]
//! redis+cluster://[user[:password]@]host[:port],...                 a cluster (rediss+cluster)
//! ```
//!
//! IPv6 addresses are in brackets. Credentials, paths, names and parameters are percent-decoded, once.
//! Anything unknown is refused: a misread URL would count in the wrong store.

use std::fmt::{self, Write};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Maximum length of a URL.
pub(super) const URL_BYTES_MAX: usize = 4096;

/// Maximum of hosts in one URL.
pub(super) const HOSTS_MAX: usize = 64;

/// Maximum length of a host name, by DNS.
const HOST_BYTES_MAX: usize = 253;

/// Maximum length of a socket's path, on Linux without the final zero.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// Maximum length of a master's name.
const MASTER_BYTES_MAX: usize = 256;

const PORT_DEFAULT: u16 = 6379;
const SENTINEL_PORT_DEFAULT: u16 = 26_379;

/// URL of Redis: addresses, topology and credentials.
///
/// `Debug` and `Display` never show a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    tls: bool,
    credentials: Credentials,
    db: u16,
    topology: Topology,
}

/// Topology of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// One server.
    One(Address),
    /// The master of this name, known to sentinels.
    Sentinel { sentinels: Vec<Address>, master: String, credentials: Credentials },
    /// A cluster, with some of its nodes.
    Cluster { seeds: Vec<Address> },
}

/// Address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// Host name or address, without brackets, and port.
    Tcp { host: String, port: u16 },
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// Credentials for a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// `None`: the server's default user.
    pub(super) username: Option<String>,
    /// `None`: no authentication. A user without a password has an empty one, so that it is never taken for
    /// the default user.
    pub(super) password: Option<Secret>,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

/// Error of a URL. Never repeats any part of it, which may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RedisUrlError {
    /// The URL is too long.
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// The URL has a blank, a control character or a non-ASCII character.
    #[error("the URL has a character that must be percent-encoded")]
    Character,
    /// The scheme is unknown.
    #[error(
        "the URL must begin with redis://, rediss://, unix:/, redis+unix://, redis+sentinel://, \
         rediss+sentinel://, redis+cluster:// or rediss+cluster://"
    )]
    Scheme,
    /// The credentials are ambiguous.
    #[error(
        "in user and password, `@` must be written as %40, `/` as %2F, `?` as %3F, `#` as %23 and `%` as %25"
    )]
    Credentials,
    /// A percent sign without two hexadecimal digits, invalid UTF-8, or a zero byte.
    #[error("a percent-encoded part of the URL is invalid")]
    Encoding,
    /// A host is missing or empty.
    #[error("host {number} of the URL is empty")]
    HostMissing {
        /// Its number, counted from one.
        number: usize,
    },
    /// A host is neither a name nor an address.
    #[error(
        "host {number} of the URL is not a name, an IPv4 address or an IPv6 address in brackets"
    )]
    Host {
        /// Its number, counted from one.
        number: usize,
    },
    /// A port is not a number from 1 to 65535.
    #[error("the port of host {number} of the URL is not a number from 1 to 65535")]
    Port {
        /// The number of its host, counted from one.
        number: usize,
    },
    /// Several hosts where only one is allowed.
    #[error("several hosts need redis+sentinel:// or redis+cluster://")]
    HostsForOne,
    /// Too many hosts.
    #[error("the URL has more than {HOSTS_MAX} hosts")]
    HostsTooMany,
    /// The database is not a number from 0 to 65535.
    #[error("the database in the URL is not a number from 0 to 65535")]
    Database,
    /// A cluster has only database 0.
    #[error("a cluster has database 0 only")]
    DatabaseOfCluster,
    /// The name of the master is missing.
    #[error("the URL needs the name of the master: redis+sentinel://host/name")]
    Master,
    /// The path of the socket is missing, relative or too long.
    #[error("the path of the socket must be absolute and of at most {UNIX_PATH_BYTES_MAX} bytes")]
    SocketPath,
    /// A parameter is unknown here, or duplicated.
    #[error(
        "the URL has a parameter that is unknown or given twice; known are db, where it is not in the path, and \
         sentinel_username and sentinel_password for sentinels"
    )]
    Parameter,
    /// The URL has a fragment.
    #[error("the URL must not have a fragment: in a password, `#` must be written as %23")]
    Fragment,
}

impl RedisUrl {
    /// Are connections encrypted?
    pub(super) fn tls(&self) -> bool {
        self.tls
    }

    /// Credentials for the servers that hold the buckets.
    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Credentials for the sentinels.
    pub(super) fn sentinel_credentials(&self) -> Credentials {
        match &self.topology {
            Topology::Sentinel { credentials, .. } => credentials.clone(),
            Topology::One(_) | Topology::Cluster { .. } => Credentials::default(),
        }
    }

    /// Number of the database.
    pub(super) fn db(&self) -> u16 {
        self.db
    }

    /// Topology and addresses.
    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Secret {
    /// The text, for sending it to the server only.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

// ===== parsing =====

/// Kind of address that a scheme stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Unix,
    Sentinel,
    Cluster,
}

const SCHEMES: [(&str, Kind, bool); 8] = [
    ("redis", Kind::One, false),
    ("rediss", Kind::One, true),
    ("unix", Kind::Unix, false),
    ("redis+unix", Kind::Unix, false),
    ("redis+sentinel", Kind::Sentinel, false),
    ("rediss+sentinel", Kind::Sentinel, true),
    ("redis+cluster", Kind::Cluster, false),
    ("rediss+cluster", Kind::Cluster, true),
];

/// A URL in parts, still percent-encoded.
struct Pieces<'a> {
    userinfo: Option<&'a str>,
    hosts: &'a str,
    /// With its slash, or empty.
    path: &'a str,
    query: Option<&'a str>,
}

/// Parameters of the query.
#[derive(Default)]
struct Parameters {
    db: Option<u16>,
    sentinel: Credentials,
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, RedisUrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(RedisUrlError::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RedisUrlError::Character);
        }
        let (scheme, rest) = text.split_once(':').ok_or(RedisUrlError::Scheme)?;
        let (_, kind, tls) = SCHEMES
            .into_iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(scheme))
            .ok_or(RedisUrlError::Scheme)?;
        let pieces = Pieces::of(rest, scheme.eq_ignore_ascii_case("unix"))?;
        let credentials = pieces.userinfo.map_or(Ok(Credentials::default()), credentials)?;
        let parameters = parameters(pieces.query, kind)?;
        let (db, topology) = place(kind, &pieces, parameters)?;
        Ok(Self { tls, credentials, db, topology })
    }
}

impl<'a> Pieces<'a> {
    fn of(rest: &'a str, slashes_optional: bool) -> Result<Self, RedisUrlError> {
        if rest.contains('#') {
            return Err(RedisUrlError::Fragment);
        }
        let (before, query) = match rest.split_once('?') {
            Some((before, query)) => (before, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match before.strip_prefix("//") {
            Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
            None if slashes_optional => ("", before),
            None => return Err(RedisUrlError::Scheme),
        };
        let (userinfo, hosts) = match authority.split_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        // A second `@` belongs to a password that is not percent-encoded: its tail must not be taken for a
        // host, and its head must not be lost.
        let signs = rest.bytes().filter(|byte| *byte == b'@').count();
        if !authority.is_empty() && signs != usize::from(userinfo.is_some()) {
            return Err(RedisUrlError::Credentials);
        }
        Ok(Self { userinfo, hosts, path, query })
    }
}

fn credentials(userinfo: &str) -> Result<Credentials, RedisUrlError> {
    let (username, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let username = decode(username)?;
    let password = decode(password)?;
    if username.is_empty() && password.is_empty() {
        return Ok(Credentials::default());
    }
    Ok(Credentials {
        username: (!username.is_empty()).then_some(username),
        password: Some(Secret(password)),
    })
}

fn parameters(query: Option<&str>, kind: Kind) -> Result<Parameters, RedisUrlError> {
    let mut found = Parameters::default();
    for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').ok_or(RedisUrlError::Parameter)?;
        let twice = match (name, kind) {
            ("db", Kind::Unix | Kind::Sentinel) => found.db.replace(database(value)?).is_some(),
            ("sentinel_username", Kind::Sentinel) => {
                found.sentinel.username.replace(decode(value)?).is_some()
            }
            ("sentinel_password", Kind::Sentinel) => {
                found.sentinel.password.replace(Secret(decode(value)?)).is_some()
            }
            _ => true,
        };
        if twice {
            return Err(RedisUrlError::Parameter);
        }
    }
    if found.sentinel.username.is_some() && found.sentinel.password.is_none() {
        found.sentinel.password = Some(Secret(String::new()));
    }
    Ok(found)
}

fn place(
    kind: Kind,
    pieces: &Pieces<'_>,
    parameters: Parameters,
) -> Result<(u16, Topology), RedisUrlError> {
    let segment = pieces.path.strip_prefix('/').unwrap_or(pieces.path);
    let db = parameters.db.unwrap_or(0);
    match kind {
        Kind::One => {
            let db = if segment.is_empty() { 0 } else { database(segment)? };
            let mut hosts = hosts(pieces.hosts, PORT_DEFAULT)?;
            match hosts.pop() {
                Some(host) if hosts.is_empty() => Ok((db, Topology::One(host))),
                _ => Err(RedisUrlError::HostsForOne),
            }
        }
        Kind::Unix => {
            let path = decode(pieces.path)?;
            if !pieces.hosts.is_empty()
                || !path.starts_with('/')
                || path.len() > UNIX_PATH_BYTES_MAX
            {
                return Err(RedisUrlError::SocketPath);
            }
            Ok((db, Topology::One(Address::Unix(path.into()))))
        }
        Kind::Sentinel => {
            let sentinels = hosts(pieces.hosts, SENTINEL_PORT_DEFAULT)?;
            let master = decode(segment)?;
            let named = !segment.contains('/') && !master.is_empty();
            if !named || master.len() > MASTER_BYTES_MAX || master.contains(char::is_control) {
                return Err(RedisUrlError::Master);
            }
            let credentials = parameters.sentinel;
            Ok((db, Topology::Sentinel { sentinels, master, credentials }))
        }
        Kind::Cluster if segment.is_empty() || segment == "0" => {
            Ok((0, Topology::Cluster { seeds: hosts(pieces.hosts, PORT_DEFAULT)? }))
        }
        Kind::Cluster => Err(RedisUrlError::DatabaseOfCluster),
    }
}

fn database(text: &str) -> Result<u16, RedisUrlError> {
    digits(text).ok_or(RedisUrlError::Database)
}

/// Parses a number of digits only: `parse` alone accepts a sign too.
fn digits(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn hosts(text: &str, port_default: u16) -> Result<Vec<Address>, RedisUrlError> {
    if text.split(',').count() > HOSTS_MAX {
        return Err(RedisUrlError::HostsTooMany);
    }
    text.split(',').zip(1..).map(|(text, number)| host(text, number, port_default)).collect()
}

fn host(text: &str, number: usize, port_default: u16) -> Result<Address, RedisUrlError> {
    let (host, port) = if let Some(inner) = text.strip_prefix('[') {
        let (host, port) = inner.split_once(']').ok_or(RedisUrlError::Host { number })?;
        host.parse::<Ipv6Addr>().map_err(|_| RedisUrlError::Host { number })?;
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err(RedisUrlError::Host { number }),
        }
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err(RedisUrlError::HostMissing { number });
        }
        if !is_name(host) {
            return Err(RedisUrlError::Host { number });
        }
        (host, port)
    };
    let port = match port {
        Some(port) => {
            digits(port).filter(|port| *port > 0).ok_or(RedisUrlError::Port { number })?
        }
        None => port_default,
    };
    Ok(Address::Tcp { host: host.into(), port })
}

/// Can a text be a host name or an IPv4 address?
fn is_name(host: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    host.len() <= HOST_BYTES_MAX && host.bytes().all(fits)
}

fn decode(text: &str) -> Result<String, RedisUrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'%', [high, low, after @ ..]) => (hexadecimal(*high, *low)?, after),
            (b'%', _) => return Err(RedisUrlError::Encoding),
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    if bytes.contains(&0) {
        return Err(RedisUrlError::Encoding);
    }
    String::from_utf8(bytes).map_err(|_| RedisUrlError::Encoding)
}

fn hexadecimal(high: u8, low: u8) -> Result<u8, RedisUrlError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match (digit(high), digit(low)) {
        (Some(high), Some(low)) => Ok(high << 4 | low),
        _ => Err(RedisUrlError::Encoding),
    }
}

impl Address {
    /// Parses the address of a redirection: `host:port`, IPv6 without brackets. Without a host it means the
    /// host of `source`. `None` if it is invalid, or unknown to the server (`?`).
    pub(super) fn redirected(text: &str, source: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = digits(port).filter(|port| *port > 0)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match (host, source) {
            ("", Self::Tcp { host, .. }) => Some(Self::Tcp { host: host.clone(), port }),
            ("", Self::Unix(_)) => None,
            (host, _) if is_name(host) || host.parse::<Ipv6Addr>().is_ok() => {
                Some(Self::Tcp { host: host.into(), port })
            }
            _ => None,
        }
    }
}

// ===== display =====

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.tls { "s" } else { "" };
        match &self.topology {
            Topology::One(Address::Unix(path)) => {
                f.write_str("redis+unix://")?;
                self.credentials.show(f)?;
                write!(f, "{}?db={}", path.display(), self.db)
            }
            Topology::One(address) => {
                write!(f, "redis{secure}://")?;
                self.credentials.show(f)?;
                write!(f, "{address}/{}", self.db)
            }
            Topology::Sentinel { sentinels, master, .. } => {
                write!(f, "redis{secure}+sentinel://")?;
                self.credentials.show(f)?;
                show_list(f, sentinels)?;
                f.write_char('/')?;
                show_encoded(f, master)?;
                write!(f, "?db={}", self.db)
            }
            Topology::Cluster { seeds } => {
                write!(f, "redis{secure}+cluster://")?;
                self.credentials.show(f)?;
                show_list(f, seeds)
            }
        }
    }
}

impl Credentials {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(password) = &self.password else { return Ok(()) };
        show_encoded(f, self.username.as_deref().unwrap_or(""))?;
        f.write_str(if password.0.is_empty() { "@" } else { ":***@" })
    }
}

fn show_list(f: &mut fmt::Formatter<'_>, addresses: &[Address]) -> fmt::Result {
    for (index, address) in addresses.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { "," })?;
        write!(f, "{address}")?;
    }
    Ok(())
}

/// Percent-encodes a text. By hand: six lines do not justify a dependency of the library.
fn show_encoded(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.bytes().try_for_each(|byte| match byte {
        b'-' | b'.' | b'_' | b'~' => f.write_char(char::from(byte)),
        byte if byte.is_ascii_alphanumeric() => f.write_char(char::from(byte)),
        byte => write!(f, "%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests;
