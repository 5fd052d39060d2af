//! The table of settings: name, flag, meaning, default and range of each. The file, the environment, the flags, `--help`
//! and `--check-config` all use it.

mod table;

use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::HeaderName;
use ipnet::IpNet;
use sluicegate::UnknownName;
use sluicegate::client_ip::canonical;
use sluicegate::rules::Attribute;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub use self::table::keys;
use super::secret::{SHOWN, Secret};
use super::{Config, FileChoice};
use crate::normalize::NAMESPACE;

/// Maximum length of a secret.
pub(super) const SECRET_BYTES_MAX: usize = 4096;

/// Attributes that `/v1/authorize` reads from headers of proxies, or that have a setting of their own.
const FOUND_OTHERWISE: [&str; 6] = ["user_id", "ip", "endpoint", "method", "plan", "host"];

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// `section.key`, as the file has it.
    pub name: &'static str,
    /// Flag of `sluicegate serve`, without dashes; none for secrets: other users of the machine can read a process's
    /// arguments.
    pub flag: Option<&'static str>,
    /// Placeholder for a value in `--help`.
    pub value: &'static str,
    /// Description for `--help` and the reference.
    pub doc: &'static str,
    /// Type, default and setter.
    pub kind: Kind,
}

/// Type of a setting's values, with the default and a setter.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
pub enum Kind {
    /// Text that the setter parses.
    Text { default: &'static str, set: fn(&mut Config, &str) -> Result<(), String> },
    /// One of a fixed list of words.
    Choice { default: &'static str, choices: &'static [&'static str], set: fn(&mut Config, &str) },
    /// A whole number in a range.
    Number { default: u64, min: u64, max: u64, set: fn(&mut Config, u64) },
    /// Path of a file. In the settings file it is relative to that file's folder.
    Path { default: &'static str, set: fn(&mut Config, Option<PathBuf>) },
    /// Path of a file as above, or `none`; empty by default, for a common setting.
    FileOrNone { set: fn(&mut Config, FileChoice) },
    /// A URL, which may hold a password: messages never repeat it.
    Url {
        default: &'static str,
        /// A valid URL without its password.
        show: fn(&str) -> Option<String>,
        set: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// Texts separated by commas, or a list in the file; empty by default.
    List { set: fn(&mut Config, &[&str]) -> Result<(), String> },
    /// Text that is never shown; empty by default.
    Secret { set: fn(&mut Config, Option<Secret>) },
}

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!("SLUICEGATE_{}", name.replace('.', "_").to_ascii_uppercase())
}

impl Key {
    /// Section, and name within it.
    #[must_use]
    pub fn section_and_name(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// The environment variable that names a file with the value; only for secrets and URLs.
    #[must_use]
    pub fn file_variable(&self) -> Option<String> {
        let has_one = self.is_secret() || self.is_url();
        has_one.then(|| format!("{}_FILE", self.variable()))
    }

    /// Returns `true` for a URL, whose password must not be shown.
    #[must_use]
    pub fn is_url(&self) -> bool {
        matches!(self.kind, Kind::Url { .. })
    }

    /// Returns `true` if the value must not be shown.
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
            Kind::FileOrNone { .. } | Kind::List { .. } | Kind::Secret { .. } => String::new(),
        }
    }

    /// A valid value as it may be shown.
    pub(super) fn shown(&self, text: &str) -> String {
        match self.kind {
            Kind::Secret { .. } if !text.is_empty() => SHOWN.into(),
            Kind::Url { show, .. } => show(text).unwrap_or_else(|| SHOWN.into()),
            _ => text.into(),
        }
    }

    /// Parses and sets a value. The error never repeats a secret.
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
            Kind::FileOrNone { set } => {
                set(config, FileChoice::parse(text));
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

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not from {min} to {max}"))
    }
}

/// A network: `10.0.0.0/8`, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse().ok().map(|ip: IpAddr| IpNet::from(canonical(ip)));
    let network = text.parse().ok().or_else(address);
    network.ok_or_else(|| format!("`{text}` is not a network, such as 10.0.0.0/8 or 2001:db8::/32"))
}

/// The name of a header; none if empty.
fn header_name(text: &str) -> Result<Option<HeaderName>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("`{text}` is not the name of a header"))
}

/// An attribute and the header that it is read from: `tenant=x-tenant-id`.
fn attribute_header(text: &str) -> Result<(String, HeaderName), String> {
    let wrong = || format!("`{text}` is not an attribute and header, such as tenant=x-tenant-id");
    let (attribute, header) = text.split_once('=').ok_or_else(wrong)?;
    if !Attribute::is_name(attribute) {
        return Err(wrong());
    }
    if FOUND_OTHERWISE.contains(&attribute) {
        return Err(format!(
            "`{attribute}` is read from the proxy's own headers or has a setting of its own"
        ));
    }
    if attribute == NAMESPACE {
        return Err(format!("`{NAMESPACE}` is set by the service: give the proxy's caller one"));
    }
    Ok((attribute.into(), header_name(header)?.ok_or_else(wrong)?))
}

/// A level, or levels of modules: `info,sluicegate_server=debug`. A single word that is not a level would be taken for a
/// module, and nothing else would be logged.
fn log_filter(text: &str) -> Result<String, String> {
    let is_word = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_level = |part: &str| part.contains('=') || is_word(part);
    if text.split(',').all(is_level) && EnvFilter::try_new(text).is_ok() {
        Ok(text.into())
    } else {
        Err(format!("`{text}` is not a level: must be one of off, error, warn, info, debug, trace"))
    }
}

/// A token that can be sent in a header; none if empty.
fn secret(text: &str) -> Result<Option<Secret>, String> {
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("must not have more than {SECRET_BYTES_MAX} bytes"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must consist of visible ASCII characters".into());
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
        let http = config.listen.http.address.unwrap();
        assert_eq!(http.to_string(), "127.0.0.1:8080");
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
        for wrong in [
            "tenant",
            "tenant=",
            "=x",
            "ten ant=x",
            "tenant=x y",
            "ip=x-ip",
            "plan=x-plan",
            "namespace=x-namespace",
        ] {
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
