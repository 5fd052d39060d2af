//! Addresses of listeners: TCP, or a Unix socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Prefix of the address of a Unix socket.
pub(crate) const UNIX: &str = "unix:";
/// Maximum bytes of the path of a Unix socket: one less than the operating system's buffer, for its final NUL.
const PATH_BYTES_MAX: usize = 107;
/// Mode of a socket's file if none is given: only the user that runs the service may connect.
const MODE_DEFAULT: u32 = 0o600;
const MODE_MAX: u32 = 0o777;

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(UnixAddress),
}

/// A Unix socket: `unix:/path?mode=0660&group=NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAddress {
    /// Absolute path of the socket.
    pub path: PathBuf,
    /// Permissions of its file; 0600 if not given.
    pub mode: u32,
    /// Name or number of the group of its file; the process's own if absent.
    pub group: Option<String>,
}

impl Address {
    /// Parses an address; none if empty. Names are not resolved: the address to listen on must not depend on DNS.
    /// `localhost` is the only exception.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(rest) = text.strip_prefix(UNIX) {
            return UnixAddress::parse(rest).map(Self::Unix).map(Some);
        }
        if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
            return Ok(Some(Self::Tcp(address)));
        }
        let wrong = || {
            format!(
                "`{text}` is not an address and port, such as 127.0.0.1:8080 or [::1]:8080, or a Unix socket, \
                 such as unix:/run/sluicegate.sock"
            )
        };
        text.parse().map(|address| Some(Self::Tcp(address))).map_err(|_| wrong())
    }

    /// Returns `true` if only this machine can reach it: a loopback address or a Unix socket.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl UnixAddress {
    /// Parses the part after `unix:`.
    fn parse(text: &str) -> Result<Self, String> {
        let (path, options) = text.split_once('?').unwrap_or((text, ""));
        if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
            return Err(format!(
                "the path of `{UNIX}{text}` must be that of a file, and begin with /"
            ));
        }
        if path.len() > PATH_BYTES_MAX {
            let bytes = path.len();
            return Err(format!(
                "the path of a Unix socket has {bytes} bytes, more than {PATH_BYTES_MAX}"
            ));
        }
        let mut address = Self { path: path.into(), mode: MODE_DEFAULT, group: None };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("mode", digits)) => address.mode = mode(digits)?,
                Some(("group", group)) if !group.is_empty() => address.group = Some(group.into()),
                _ => {
                    return Err(format!(
                        "`{option}` is not an option of a Unix socket: use mode=0660 and group=NAME"
                    ));
                }
            }
        }
        Ok(address)
    }
}

/// Permissions in octal digits.
fn mode(digits: &str) -> Result<u32, String> {
    let is_octal = digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let mode = is_octal.then(|| u32::from_str_radix(digits, 8).ok()).flatten();
    mode.filter(|mode| *mode <= MODE_MAX)
        .ok_or_else(|| format!("the mode `{digits}` is not from 0000 to 0777 in octal digits"))
}

impl fmt::Display for Address {
    /// The address without options: `127.0.0.1:8080`, `unix:/path`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(unix) => write!(f, "{UNIX}{}", unix.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(text: &str) -> Result<UnixAddress, String> {
        match Address::parse(text)? {
            Some(Address::Unix(unix)) => Ok(unix),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn tcp() {
        let tcp = |text: &str| Ok(Some(Address::Tcp(text.parse().unwrap())));
        assert_eq!(Address::parse(""), Ok(None));
        assert_eq!(Address::parse("localhost:80"), tcp("127.0.0.1:80"));
        assert_eq!(Address::parse("[::1]:0"), tcp("[::1]:0"));
        for wrong in [":8080", "8080", "example.com:80", "127.0.0.1", "localhost", "localhost:x"] {
            assert!(Address::parse(wrong).unwrap_err().contains("127.0.0.1:8080"), "{wrong}");
        }
    }

    #[test]
    fn unix_sockets() {
        let plain = unix("unix:/run/sluicegate.sock").unwrap();
        assert_eq!((plain.mode, plain.group), (0o600, None));
        let open = unix("unix:/s?mode=0660&group=www-data").unwrap();
        assert_eq!((open.mode, open.group.as_deref()), (0o660, Some("www-data")));
        assert_eq!(Address::Unix(open).to_string(), "unix:/s");
        assert_eq!(unix("unix:/s?mode=777").unwrap().mode, 0o777);
        let longest = format!("unix:/{}", "x".repeat(PATH_BYTES_MAX - 1));
        assert!(unix(&longest).is_ok());
        for (wrong, message) in [
            ("unix:", "begin with /"),
            ("unix:run/s", "begin with /"),
            ("unix:/run/", "begin with /"),
            ("unix://", "begin with /"),
            (&format!("{longest}x"), "108 bytes, more than 107"),
            ("unix:/s?mode=0888", "octal"),
            ("unix:/s?mode=1777", "octal"),
            ("unix:/s?mode=", "octal"),
            ("unix:/s?mode=+77", "octal"),
            ("unix:/s?owner=me", "`owner=me` is not an option"),
            ("unix:/s?group=", "`group=` is not an option"),
            ("unix:/s?mode", "`mode` is not an option"),
        ] {
            let error = Address::parse(wrong).unwrap_err();
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }
}
