//! URL of a server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use axum::http::Uri;

use crate::cli::failure::{CliResult, Failure};
use crate::config::UNIX;

/// Parts of a server's URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_https: bool,
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port, as they stand in the URL.
    authority: String,
    /// Prefix of every path, without a `/` at its end.
    prefix: String,
    /// Unix socket to connect to, instead of the host.
    pub(super) socket: Option<PathBuf>,
}

impl Address {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> CliResult<Self> {
        if let Some(path) = url.strip_prefix(UNIX) {
            return Self::of_socket(path);
        }
        // The URL may hold a password by mistake, so the message does not repeat it.
        let wrong = || {
            Failure::usage(
                "--server: must be a URL such as http://127.0.0.1:8080, or a Unix socket such as unix:/run/sluicegate.sock",
            )
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            let message = "--server: must not contain a user or password; put the token into SLUICEGATE_TOKEN or \
                           --token-file";
            return Err(Failure::usage(message));
        }
        if authority.host().is_empty() || uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            is_https,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            socket: None,
        })
    }

    /// The server on a Unix socket, over plain HTTP.
    fn of_socket(path: &str) -> CliResult<Self> {
        if !path.starts_with('/') {
            let message = "--server: the path of a Unix socket must begin with /, as in unix:/run/sluicegate.sock";
            return Err(Failure::usage(message));
        }
        let host = Ipv4Addr::LOCALHOST.to_string();
        Ok(Self {
            is_https: false,
            authority: host.clone(),
            host,
            port: 80,
            prefix: String::new(),
            socket: Some(path.into()),
        })
    }

    /// Base URL of requests.
    pub(super) fn url(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.prefix)
    }

    /// Returns `true` for `localhost`, names below it and loopback addresses.
    pub(super) fn is_loopback(&self) -> bool {
        let name = self.host.trim_end_matches('.').to_ascii_lowercase();
        match name.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            None => f.write_str(&self.url()),
            Some(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port, prefix, is_loopback) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, "", true),
            ("http://[::1]:1/", "::1", 1, "", true),
            ("https://limits.example", "limits.example", 443, "", false),
            ("http://h/gate/", "h", 80, "/gate", false),
            ("http://LocalHost", "LocalHost", 80, "", true),
            ("http://a.localhost.", "a.localhost.", 80, "", true),
            ("http://127.example", "127.example", 80, "", false),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((&*address.host, address.port, &*address.prefix), (host, port, prefix));
            assert_eq!(address.is_loopback(), is_loopback, "{url}");
            assert_eq!(address.to_string(), url.trim_end_matches('/'));
        }
        let socket = Address::parse("unix:/run/s.sock").unwrap();
        assert_eq!(socket.socket.as_deref(), Some(Path::new("/run/s.sock")));
        assert_eq!(socket.to_string(), "unix:/run/s.sock");
        assert_eq!((&*socket.url(), socket.is_loopback()), ("http://127.0.0.1", true));
        assert!(Address::parse("unix:run/s.sock").is_err());
        for wrong in ["", "127.0.0.1:8080", "ftp://h", "http://", "http://h?x", "http://u:canary@h"]
        {
            let failure = Address::parse(wrong).unwrap_err().to_string();
            assert!(failure.contains("--server") && !failure.contains("canary"), "{failure}");
        }
    }
}
