//! Addresses as proxies write them: with or without a port, in brackets, in quotes, as a named parameter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::canonical;

/// Longest port, in bytes: five digits, or an obfuscated name.
const PORT_BYTES_MAX: usize = 32;

/// Parses `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`. The result is
/// [canonical].
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        let address: Ipv6Addr = address.parse().ok()?;
        return is_port.then(|| canonical(address.into()));
    }
    if let Some((address, port)) = text.split_once(':')
        && let Ok(address) = address.parse::<Ipv4Addr>()
    {
        return is_port(port).then_some(address.into());
    }
    text.parse().ok().map(canonical)
}

/// The address in an entry of `Forwarded`: `for="[2001:db8::1]:4711";proto=https`.
pub(super) fn of_forwarded(entry: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = entry;
    loop {
        let (name, value, after) = pair(rest)?;
        if name.eq_ignore_ascii_case(b"for") {
            // A duplicate is refused: which of the two counts is undefined.
            if found.is_some() {
                return None;
            }
            found = Some(value);
        }
        match after {
            [] => break,
            [b';', after @ ..] => rest = after.trim_ascii_start(),
            _ => return None,
        }
    }
    found.and_then(address)
}

/// Splits a pair of a name and a value from the rest. A quoted value loses its quotes; no address needs a backslash,
/// so a value with one is left as it is and is not an address.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return None;
    }
    let (value, after) = match value {
        [b'"', value @ ..] => {
            let end = closing_quote(value)?;
            (&value[..end], &value[end + 1..])
        }
        // Without quotes neither brackets nor ports are allowed, but proxies write them.
        _ => value.split_at(value.iter().position(|byte| *byte == b';').unwrap_or(value.len())),
    };
    Some((name, value.trim_ascii_end(), after.trim_ascii_start()))
}

/// Position of the closing quote.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Returns whether this byte may be part of a token (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether this is a port: a number, or an obfuscated name that begins with `_`.
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => {
            let is_obfuscated = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && text.len() <= PORT_BYTES_MAX && name.bytes().all(is_obfuscated)
        }
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}
