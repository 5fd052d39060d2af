//! The proxy for a server: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.
//!
//! Chosen by hand: ureq takes the first variable that is set whatever the scheme of the URL, and its `NO_PROXY` knows
//! neither subdomains nor networks.

use std::net::IpAddr;

use ipnet::IpNet;
use ureq::Proxy;

use super::address::Address;
use crate::cli::failure::{CliResult, Failure};

/// A proxy, and the variable that names it.
#[derive(Debug)]
pub(super) struct NamedProxy {
    pub(super) proxy: Proxy,
    pub(super) variable: &'static str,
}

/// Proxy variables for each scheme, in the order in which they are tried. curl reads them in the same order.
const FOR_HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const FOR_HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const BYPASS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The proxy that the environment names for this server. Loopback addresses are reached directly.
///
/// # Errors
///
/// If the value of the variable is not the URL of a proxy. The message does not repeat it: it may hold a password.
pub(super) fn proxy(
    address: &Address,
    variable: impl Fn(&str) -> Option<String>,
) -> CliResult<Option<NamedProxy>> {
    let set = |names: &[&'static str]| {
        let value = |name: &&'static str| Some((*name, variable(name)?));
        names.iter().filter_map(value).find(|(_, value)| !value.is_empty())
    };
    let names = if address.is_https { FOR_HTTPS } else { FOR_HTTP };
    let Some((variable, url)) = set(&names).filter(|_| !address.is_loopback()) else {
        return Ok(None);
    };
    if set(&BYPASS).is_some_and(|(_, list)| is_bypassed(address, &list)) {
        return Ok(None);
    }
    match Proxy::new(&url) {
        Ok(proxy) => Ok(Some(NamedProxy { proxy, variable })),
        Err(_) => {
            let message =
                format!("{variable}: must be the URL of a proxy, such as http://proxy:3128");
            Err(Failure::usage(message))
        }
    }
}

/// Returns `true` if an entry of the list matches: `*`, a name (and names below it), an address or a network in CIDR
/// notation, each with or without a port.
fn is_bypassed(address: &Address, list: &str) -> bool {
    let host = address.host.trim_end_matches('.').to_ascii_lowercase();
    let ip: Option<IpAddr> = host.parse().ok();
    let is_match = |entry: &str| {
        let entry = entry.to_ascii_lowercase();
        let entry = entry.trim_matches(['[', ']']);
        if let Some(ip) = ip {
            return entry.parse() == Ok(ip)
                || entry.parse::<IpNet>().is_ok_and(|network| network.contains(&ip));
        }
        let name = entry.trim_start_matches('*').trim_start_matches('.');
        let above = host.strip_suffix(name);
        !name.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    let port = format!(":{}", address.port);
    list.split([',', ' ']).filter(|entry| !entry.is_empty()).any(|entry| {
        entry == "*" || is_match(entry) || entry.strip_suffix(&port).is_some_and(is_match)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(url: &str, environment: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        };
        let found = proxy(&Address::parse(url).unwrap(), variable).unwrap();
        found.map(|found| format!("{} {}", found.variable, found.proxy.host()))
    }

    #[test]
    fn a_proxy_is_chosen_by_scheme() {
        let both = [("HTTP_PROXY", "http://a:1"), ("HTTPS_PROXY", "http://b:1")];
        assert_eq!(chosen("http://h", &both).unwrap(), "HTTP_PROXY a");
        assert_eq!(chosen("https://h", &both).unwrap(), "HTTPS_PROXY b");
        assert_eq!(chosen("https://h", &both[..1]), None);
        let all = [("ALL_PROXY", "socks5://c"), ("https_proxy", ""), ("HTTP_PROXY", "a:1")];
        assert_eq!(chosen("https://h", &all).unwrap(), "ALL_PROXY c");
        assert_eq!(chosen("http://h", &all).unwrap(), "HTTP_PROXY a");
        assert_eq!(chosen("http://h", &[]), None);
    }

    #[test]
    fn loopback_and_no_proxy_are_reached_directly() {
        let set = |list| [("HTTP_PROXY", "http://a:1"), ("NO_PROXY", list)];
        for url in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080"] {
            assert_eq!(chosen(url, &set("")), None, "{url}");
        }
        for (list, url, is_direct) in [
            ("gate.example", "http://gate.example:8080", true),
            ("GATE.example", "http://Gate.Example.", true),
            ("example", "http://gate.example", true),
            ("xample", "http://gate.example", false),
            (".example, other", "http://gate.example", true),
            ("*.example", "http://gate.example", true),
            ("*", "http://gate.example", true),
            ("gate.example:8080", "http://gate.example:8080", true),
            ("gate.example:8080", "http://gate.example:8081", false),
            ("10.0.0.0/8", "http://10.1.2.3", true),
            ("10.0.0.0/8", "http://11.1.2.3", false),
            ("10.1.2.3", "http://10.1.2.3:9", true),
            ("2001:db8::/32", "http://[2001:db8::1]", true),
            ("other", "http://gate.example", false),
            ("", "http://gate.example", false),
        ] {
            assert_eq!(chosen(url, &set(list)).is_none(), is_direct, "{list} {url}");
        }
    }

    #[test]
    fn a_wrong_proxy_is_refused_without_its_password() {
        let address = Address::parse("http://h").unwrap();
        for wrong in ["canary://a", "http://u:canary@", "::"] {
            let failure = proxy(&address, |_| Some(wrong.into())).unwrap_err().to_string();
            assert!(failure.contains("http_proxy") && !failure.contains("canary"), "{failure}");
        }
    }
}
