//! Settings from the environment: `section.key` is `SLUICEGATE_SECTION_KEY`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use sluicegate::closest;

use super::error::{Place, Problem};
use super::files;
use super::keys::{Key, SECRET_BYTES_MAX, keys};
use super::load::{Loader, Origin, read_bounded, reason};

const PREFIX: &str = "SLUICEGATE_";

/// Variables of the other commands, which are not settings: the server and the token.
const OF_COMMANDS: [&str; 3] = ["SLUICEGATE_SERVER", "SLUICEGATE_TOKEN", "SLUICEGATE_TOKEN_FILE"];

/// Reads every variable with the prefix. An unknown one is an error: it would have no effect.
pub(super) fn read(environment: &[(OsString, OsString)], loader: &mut Loader) {
    let mut ours: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| name.to_str().map(|name| (name, value)))
        .filter(|(name, value)| name.starts_with(PREFIX) && !is_kubernetes_link(name, value))
        .filter(|(name, _)| !OF_COMMANDS.contains(name))
        .collect();
    ours.sort();
    for (name, value) in &ours {
        let place = || Place::Variable((*name).to_owned());
        let Some(text) = value.to_str() else {
            loader.problems.push(Problem::new(place(), "is not UTF-8"));
            continue;
        };
        let origin = Origin::Variable((*name).to_owned());
        if let Some(key) = keys().find(|key| key.variable() == *name) {
            loader.give(key, text, origin);
        } else if let Some(key) = keys().find(|key| key.file_variable().as_deref() == Some(*name)) {
            let is_given_too = ours.iter().any(|(other, _)| *other == key.variable());
            match read_secret(key, text, is_given_too) {
                Ok(secret) => {
                    loader.give(key, &secret, origin);
                    if let Some(note) = files::readable(name, Path::new(text)) {
                        loader.note(note);
                    }
                }
                Err(wrong) => loader.problems.push(Problem::new(place(), wrong)),
            }
        } else {
            loader.problems.push(unknown(name));
        }
    }
}

fn read_secret(key: &Key, path: &str, is_given_too: bool) -> Result<String, String> {
    if is_given_too {
        return Err(format!("{} is also set: unset one of them", key.variable()));
    }
    // One byte more than allowed, and a line end: the length is checked with the other rules for secrets.
    let secret = read_bounded(Path::new(path), SECRET_BYTES_MAX as u64 + 2)
        .map_err(|error| format!("cannot read {path}: {}", reason(&error)))?;
    let secret = secret.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(format!("{path}: is empty"));
    }
    Ok(secret.to_owned())
}

fn unknown(name: &str) -> Problem {
    let variables = keys().flat_map(|key| [Some(key.variable()), key.file_variable()]);
    // Compared without the common prefix, which would make all names similar.
    let known: Vec<_> =
        variables.flatten().map(|name| name.trim_start_matches(PREFIX).to_owned()).collect();
    let bare = name.trim_start_matches(PREFIX);
    let message = match closest(bare, known.iter().map(String::as_str)) {
        Some(close) => format!("unknown variable: did you mean {PREFIX}{close}?"),
        None => "unknown variable: `sluicegate serve --help` lists them".into(),
    };
    Problem::new(Place::Variable(name.to_owned()), message)
}

/// Returns `true` for variables that Kubernetes sets: for a service called `sluicegate` (or `sluicegate-...`) every pod of
/// the namespace has `SLUICEGATE_SERVICE_HOST`, `SLUICEGATE_PORT_8080_TCP_ADDR` and so on.
fn is_kubernetes_link(name: &str, value: &OsStr) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = |rest: &str| {
        let mut parts = rest.split('_');
        let number = parts.next().is_some_and(is_number);
        let protocol = parts.next().is_some_and(|part| matches!(part, "TCP" | "UDP" | "SCTP"));
        let last = parts.next().is_none_or(|part| matches!(part, "PROTO" | "PORT" | "ADDR"));
        number && protocol && last && parts.next().is_none()
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && value.to_str().is_some_and(|value| value.contains("://")))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| is_port(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_kubernetes_sets_are_ignored() {
        for name in [
            "SLUICEGATE_SERVICE_HOST",
            "SLUICEGATE_SERVICE_PORT",
            "SLUICEGATE_SERVICE_PORT_HTTP",
            "SLUICEGATE_PORT",
            "SLUICEGATE_PORT_8080_TCP",
            "SLUICEGATE_PORT_8080_TCP_PROTO",
            "SLUICEGATE_EU_PORT_53_UDP_ADDR",
        ] {
            assert!(is_kubernetes_link(name, OsStr::new("tcp://10.0.0.1:8080")), "{name}");
        }
        let value = OsStr::new("9090");
        for name in [
            "SLUICEGATE_LISTEN_HTTP",
            "SLUICEGATE_LISTEN_PORT",
            "SLUICEGATE_PORT_HTTP",
            "SLUICEGATE_PORT_80_HTTP",
        ] {
            assert!(!is_kubernetes_link(name, value), "{name}");
        }
        assert!(keys().all(|key| !is_kubernetes_link(&key.variable(), value)));
    }
}
