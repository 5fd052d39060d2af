//! The table of settings: each with its name, flag, meaning, default and range. The file, the
//! environment, the flags, `--help` and `--check-config` all work from it.

mod table;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use axum::http::HeaderName;
use ipnet::IpNet;
use sluicegate::UnknownName;
use sluicegate::rules::Attribute;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub use self::table::keys;
use super::Config;
use super::secret::{SHOWN, Secret};

/// The longest secret that makes sense.
pub(super) const SECRET_BYTES_MAX: usize = 4096;

/// The attributes that `/v1/authorize` finds in headers of proxies, or that have a setting of their own.
const FOUND_OTHERWISE: [&str; 6] = ["user_id", "ip", "endpoint", "method", "plan", "host"];

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// `section.key`, as the file has it.
    pub name: &'static str,
    /// The flag of `sluicegate serve`, without dashes; none for secrets, which everybody on the machine
    /// could read there.
    pub flag: Option<&'static str>,
    /// What a value looks like, in one word.
    pub value: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What values there are.
    pub kind: Kind,
}

/// What values a setting has, which it has by default, and where they go.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are what they are called")]
pub enum Kind {
    /// Text with a form of its own.
    Text { default: &'static str, set: fn(&mut Config, &str) -> Result<(), String> },
    /// One of a few words.
    Choice { default: &'static str, choices: &'static [&'static str], set: fn(&mut Config, &str) },
    /// A whole number in a range.
    Number { default: u64, min: u64, max: u64, set: fn(&mut Config, u64) },
    /// A file's path. In the file it is relative to the file's folder.
    Path { default: &'static str, set: fn(&mut Config, Option<PathBuf>) },
    /// A URL, which may hold a password: what is wrong with one never repeats it.
    Url {
        default: &'static str,
        /// A sound one without its password.
        show: fn(&str) -> Option<String>,
        set: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// A few texts, parted by commas or as a list in the file; none by default.
    List { set: fn(&mut Config, &[&str]) -> Result<(), String> },
    /// Text that is never shown, empty by default.
    Secret { set: fn(&mut Config, Option<Secret>) },
}

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!("SLUICEGATE_{}", name.replace('.', "_").to_ascii_uppercase())
}

impl Key {
    /// Its section and its name there.
    #[must_use]
    pub fn section_and_name(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// The environment variable that names a file with its value: where that is secret, or a part of it.
    #[must_use]
    pub fn file_variable(&self) -> Option<String> {
        let has_one = self.is_secret() || self.is_url();
        has_one.then(|| format!("{}_FILE", self.variable()))
    }

    /// Whether it is a URL, of which a part must not be shown.
    #[must_use]
    pub fn is_url(&self) -> bool {
        matches!(self.kind, Kind::Url { .. })
    }

    /// Whether its value must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret { .. })
    }

    /// Its default, as text.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.kind {
            Kind::Text { default, .. }
            | Kind::Choice { default, .. }
            | Kind::Path { default, .. }
            | Kind::Url { default, .. } => default.into(),
            Kind::Number { default, .. } => default.to_string(),
            Kind::List { .. } | Kind::Secret { .. } => String::new(),
        }
    }

    /// A sound value as people may see it.
    pub(super) fn shown(&self, text: &str) -> String {
        match self.kind {
            Kind::Secret { .. } if !text.is_empty() => SHOWN.into(),
            Kind::Url { show, .. } => show(text).unwrap_or_else(|| SHOWN.into()),
            _ => text.into(),
        }
    }

    /// Sets it to a value given as text, or says what is wrong with that. A secret is never repeated.
    pub(super) fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        match self.kind {
            Kind::Text { set, .. } | Kind::Url { set, .. } => set(config, text),
            Kind::Choice { choices, set, .. } if choices.contains(&text) => {
                set(config, text);
                Ok(())
            }
            Kind::Choice { choices, .. } => Err(format!("`{text}` {}", UnknownName::new(choices))),
            Kind::Number { min, max, set, .. } => {
                set(config, number(text, min, max)?);
                Ok(())
            }
            Kind::Path { set, .. } => {
                set(config, (!text.is_empty()).then(|| PathBuf::from(text)));
                Ok(())
            }
            Kind::List { set } => {
                let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
                set(config, &members.collect::<Vec<_>>())
            }
            Kind::Secret { set } => {
                set(config, secret(text)?);
                Ok(())
            }
        }
    }
}

/// A socket address; none if empty. Names are not looked up: what is listened on should not depend on
/// what somebody answers. `localhost` is the exception that everybody types.
fn address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        return Ok(Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
    }
    let wrong = || format!("`{text}` is no address and port, such as 127.0.0.1:8080 or [::1]:8080");
    text.parse().map(Some).map_err(|_| wrong())
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not from {min} to {max}"))
    }
}

/// A network: `10.0.0.0/8`, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse().ok().map(|ip: IpAddr| IpNet::from(ip.to_canonical()));
    let network = text.parse().ok().or_else(address);
    network.ok_or_else(|| format!("`{text}` is no network, such as 10.0.0.0/8 or 2001:db8::/32"))
}

/// The name of a header; none if empty.
fn header_name(text: &str) -> Result<Option<HeaderName>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("`{text}` is no name of a header"))
}

/// An attribute and the header that it is read from: `tenant=x-tenant-id`.
fn attribute_header(text: &str) -> Result<(String, HeaderName), String> {
    let wrong = || format!("`{text}` is no attribute and header, such as tenant=x-tenant-id");
    let (attribute, header) = text.split_once('=').ok_or_else(wrong)?;
    if !Attribute::is_name(attribute) {
        return Err(wrong());
    }
    if FOUND_OTHERWISE.contains(&attribute) {
        return Err(format!("`{attribute}` is found otherwise, and not in a header of choice"));
    }
    Ok((attribute.into(), header_name(header)?.ok_or_else(wrong)?))
}

/// A level, or levels of parts: `info,sluicegate_server=debug`. A word alone that is no level would
/// be taken for a part, and nothing else would be logged.
fn log_filter(text: &str) -> Result<String, String> {
    let is_word = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_level = |part: &str| part.contains('=') || is_word(part);
    if text.split(',').all(is_level) && EnvFilter::try_new(text).is_ok() {
        Ok(text.into())
    } else {
        Err(format!("`{text}` is no level: try off, error, warn, info, debug or trace"))
    }
}

/// A token that can be sent in a header; none if empty.
fn secret(text: &str) -> Result<Option<Secret>, String> {
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("has more than {SECRET_BYTES_MAX} bytes"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a character other than visible ASCII".into());
    }
    Ok((!text.is_empty()).then(|| Secret::new(text)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_default_is_sound() {
        let mut config = Config::default();
        for key in keys() {
            assert_eq!(key.set(&mut config, &key.default_text()), Ok(()), "{}", key.name);
        }
        assert_eq!(config.listen.http, Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(config.limits.body_bytes_max, 16_384);
        assert_eq!(config.limits.batch_max, 100);
        assert!(config.admin.token.is_none() && config.rules.file.is_none());
    }

    #[test]
    fn names_flags_and_variables_are_unique() {
        let distinct = |names: Vec<String>| names.iter().collect::<HashSet<_>>().len();
        assert_eq!(distinct(keys().map(|key| key.name.into()).collect()), keys().count());
        assert_eq!(distinct(keys().map(Key::variable).collect()), keys().count());
        let flags: Vec<_> = keys().filter_map(|key| key.flag.map(String::from)).collect();
        assert_eq!(distinct(flags.clone()), flags.len());
        assert_eq!(keys().next().unwrap().variable(), "SLUICEGATE_LISTEN_HTTP");
    }

    #[test]
    fn addresses() {
        assert_eq!(address(""), Ok(None));
        assert_eq!(address("localhost:80"), Ok(Some("127.0.0.1:80".parse().unwrap())));
        assert_eq!(address("[::1]:0"), Ok(Some("[::1]:0".parse().unwrap())));
        for wrong in [":8080", "8080", "example.com:80", "127.0.0.1", "localhost", "localhost:x"] {
            assert!(address(wrong).unwrap_err().contains("127.0.0.1:8080"), "{wrong}");
        }
    }

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(number("5", 5, 6), Ok(5));
        for wrong in ["4", "7", "-1", "5.0", "", "0x5", "99999999999999999999999"] {
            assert!(number(wrong, 5, 6).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_are_not_taken_for_names() {
        for right in ["info", "WARN", "off", "info,sluicegate_server=debug"] {
            assert_eq!(log_filter(right).as_deref(), Ok(right));
        }
        for wrong in ["verbose", "", "info,verbose", "hyper=loud", "=,="] {
            assert!(log_filter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn attributes_have_headers() {
        let tenant = ("tenant".to_owned(), HeaderName::from_static("x-tenant-id"));
        assert_eq!(attribute_header("tenant=X-Tenant-Id"), Ok(tenant));
        for wrong in
            ["tenant", "tenant=", "=x", "ten ant=x", "tenant=x y", "ip=x-ip", "plan=x-plan"]
        {
            assert!(attribute_header(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_secret_is_not_repeated() {
        for wrong in ["canary secret", "canary\n", "canaryé"] {
            assert!(!secret(wrong).unwrap_err().contains("canary"));
        }
    }
}
