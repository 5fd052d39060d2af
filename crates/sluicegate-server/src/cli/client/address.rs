//! Where a server is: its URL.

use std::fmt;

use hyper::Uri;
use rustls::pki_types::ServerName;

use crate::cli::failure::{Failure, Outcome};

/// The parts of a server's URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_https: bool,
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port, as they stand in the URL.
    pub(super) authority: String,
    /// What comes in front of every path, without a `/` at its end.
    pub(super) prefix: String,
}

impl Address {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Outcome<Self> {
        // It may hold a password by mistake, and is not repeated.
        let wrong = || Failure::usage("--server: is no URL such as http://127.0.0.1:8080");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            let message =
                "--server: has a user in it; a token goes into SLUICEGATE_TOKEN or --token-file";
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
        })
    }

    /// The name that its certificate must have.
    pub(super) fn server_name(&self) -> Outcome<ServerName<'static>> {
        let wrong = |_| Failure::usage("--server: no certificate can be for such a name");
        ServerName::try_from(self.host.clone()).map_err(wrong)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port, prefix) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, ""),
            ("http://[::1]:1/", "::1", 1, ""),
            ("https://limits.example", "limits.example", 443, ""),
            ("http://h/gate/", "h", 80, "/gate"),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((&*address.host, address.port, &*address.prefix), (host, port, prefix));
            assert_eq!(address.to_string(), url.trim_end_matches('/'));
        }
        for wrong in ["", "127.0.0.1:8080", "ftp://h", "http://", "http://h?x", "http://u:canary@h"]
        {
            let failure = Address::parse(wrong).unwrap_err().to_string();
            assert!(failure.contains("--server") && !failure.contains("canary"), "{failure}");
        }
    }
}
