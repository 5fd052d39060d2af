//! Normalization of text from clients: every address and path has one spelling, so that `//login`,
//! `/./login` or `/%6cogin` cannot bypass a rule.

use std::borrow::Cow;
use std::net::IpAddr;

use sluicegate::Request;
use sluicegate::client_ip::canonical;
use sluicegate::rules::fold;

/// Attribute that the service sets for callers with a namespace. A client cannot: its own value is dropped.
pub(crate) const NAMESPACE: &str = "namespace";

/// Upper case, as RFC 3986 recommends.
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Decodes a value as UTF-8, or else as Latin-1, so that different bytes stay different texts.
pub(crate) fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().copied().map(char::from).collect(),
    }
}

/// Normalizes an address: IPv4 inside IPv6 becomes IPv4. `None` if it is not an address.
pub(crate) fn address(text: &str) -> Option<Cow<'_, str>> {
    Some(match text.parse().ok()? {
        // IPv4 has only one spelling that parses.
        IpAddr::V4(_) => text.into(),
        ip @ IpAddr::V6(_) => canonical(ip).to_string().into(),
    })
}

/// The path of a URI: ASCII, with a leading slash unless it is `*`.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The complete path, percent-encoded in one way, without scheme, host, query and fragment.
    written: String,
    /// Normalized, and truncated to `bytes_max`.
    normalized: String,
    bytes_max: usize,
}

impl Endpoint {
    /// Normalizes the path of a URI and truncates it to `bytes_max` bytes.
    ///
    /// - An absolute URI loses its scheme and host.
    /// - Letters, digits, `-`, `.`, `_` and `~` are decoded: `%6C` is `l`. Every other
    ///   percent-encoding stays, in upper case: `%2f` is `%2F`, not a slash. Bytes outside visible
    ///   ASCII are percent-encoded.
    /// - Repeated slashes become one, and segments of one or two dots are resolved.
    ///
    /// Case, a trailing slash and path parameters stay: whether `/login/` equals `/login` depends on
    /// the application, and on the rules.
    pub(crate) fn of_uri(uri: &[u8], bytes_max: usize) -> Self {
        let path = without_origin(uri);
        let end = path.iter().position(|byte| b"?#".contains(byte)).unwrap_or(path.len());
        let written = one_spelling(&path[..end]);
        // A target without a leading slash: `*`, which `OPTIONS` may use.
        let mut normalized = if written == "*" { "*".to_owned() } else { without_dots(&written) };
        // ASCII can be cut at any byte.
        normalized.truncate(bytes_max);
        Self { written, normalized, bytes_max }
    }

    /// The request for this endpoint. Rules for folded paths fold the complete path.
    pub(crate) fn add_to<'a>(&'a self, request: Request<'a>) -> Request<'a> {
        request.normalized_endpoint(&self.normalized, &self.written, self.bytes_max)
    }
}

/// Paths are equal if they are to every rule, whatever form of paths it compares.
impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        let is_same_folded = || fold(&self.written) == fold(&other.written);
        self.normalized == other.normalized && (self.written == other.written || is_same_folded())
    }
}

/// Part after the host of an absolute URI; any other text unchanged.
fn without_origin(uri: &[u8]) -> &[u8] {
    let is_scheme = |scheme: &[u8]| {
        scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    };
    let Some(colon) = uri.windows(3).position(|three| three == b"://") else { return uri };
    if !is_scheme(&uri[..colon]) {
        return uri;
    }
    let rest = &uri[colon + 3..];
    let host_end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    &rest[host_end..]
}

/// A path with a leading slash, unless it is `*`, and with one way of percent-encoding.
fn one_spelling(path: &[u8]) -> String {
    let mut written = String::with_capacity(path.len() + 1);
    if path != b"*" && path.first() != Some(&b'/') {
        written.push('/');
    }
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let escaped = match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let value = hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low);
                value.inspect(|_| rest = after)
            }
            _ => None,
        };
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        match escaped {
            Some(value) if is_unreserved(value) => written.push(value.into()),
            Some(value) => push_escaped(&mut written, value),
            None if byte.is_ascii_graphic() => written.push(byte.into()),
            None => push_escaped(&mut written, byte),
        }
    }
    written
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| value.try_into().ok())
}

fn push_escaped(to: &mut String, byte: u8) {
    let digit = |value: u8| char::from(HEX[usize::from(value & 0xf)]);
    to.extend(['%', digit(byte >> 4), digit(byte)]);
}

/// Removes empty segments and resolves dots.
fn without_dots(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let is_folder = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    let mut plain = String::with_capacity(path.len() + 1);
    for segment in &segments {
        plain.push('/');
        plain.push_str(segment);
    }
    if is_folder || segments.is_empty() {
        plain.push('/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONG: usize = 1024;

    fn endpoint(uri: &[u8], bytes_max: usize) -> String {
        Endpoint::of_uri(uri, bytes_max).normalized
    }

    fn path(uri: &str) -> String {
        endpoint(uri.as_bytes(), LONG)
    }

    fn folded(uri: &str, bytes_max: usize) -> String {
        let endpoint = Endpoint::of_uri(uri.as_bytes(), bytes_max);
        endpoint.add_to(Request::new()).folded_endpoint().unwrap().to_owned()
    }

    #[test]
    fn the_complete_path_is_folded() {
        let long = "a".repeat(LONG + 1);
        for uri in [
            "/login",
            "login/",
            "http://example.com/LOGIN?next=/",
            "/login/x/y/..;/..",
            "/x/..;v=1/login",
            &format!("/;{long}/login"),
            &format!("/{long}/../login"),
            "/%6%63ogin",
        ] {
            assert_eq!(folded(uri, LONG), "/login", "{uri}");
        }
        assert_eq!(folded("/é", LONG), folded("/%C3%A9", LONG));
        assert_eq!(folded("/login", 4), "/log");
        assert_eq!(folded("*", LONG), "*");
    }

    #[test]
    fn two_paths_are_equal_if_they_are_so_in_every_form() {
        let is_equal = |one: &str, other: &str| {
            Endpoint::of_uri(one.as_bytes(), LONG) == Endpoint::of_uri(other.as_bytes(), LONG)
        };
        assert!(is_equal("/login", "http://example.com//login?x"));
        assert!(!is_equal("/login", "/LOGIN"));
        assert!(!is_equal("/login/x/y/..;/..", "/login/x/y/"));
    }

    #[test]
    fn a_path_has_one_spelling() {
        let same = [
            "/login",
            "//login",
            "///login?next=/a/../b",
            "/./login",
            "/x/../login",
            "/x//../login",
            "/../../login",
            "/%6cogin",
            "/%6Cogin#top",
            "/%2e/login",
            "/x/%2E%2e/login",
            "http://example.com/login",
            "HTTPS://user@example.com:443//login?x",
            "login",
        ];
        for uri in same {
            assert_eq!(path(uri), "/login", "{uri}");
        }
    }

    #[test]
    fn paths_that_may_be_different_resources_stay_different() {
        let kept = [
            ("/login/", "/login/"),
            ("/Login", "/Login"),
            ("/a%2fb", "/a%2Fb"),
            ("/%252e/login", "/%252e/login"),
            ("/a%", "/a%"),
            ("/a%zz%4", "/a%zz%4"),
            ("/a;v=1", "/a;v=1"),
            ("/...", "/..."),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("", "/"),
            ("?x", "/"),
            ("http://example.com", "/"),
            ("http://example.com?x=/y", "/"),
            ("/go?to=http://example.com/login", "/go"),
            ("/http://example.com/login", "/http:/example.com/login"),
            ("*", "*"),
        ];
        for (uri, expected) in kept {
            assert_eq!(path(uri), expected, "{uri}");
        }
    }

    #[test]
    fn bytes_outside_visible_ascii_are_percent_encoded() {
        assert_eq!(endpoint("/café \t".as_bytes(), LONG), "/caf%C3%A9%20%09");
        assert_eq!(endpoint(b"/caf%c3%a9/\xff", LONG), "/caf%C3%A9/%FF");
    }

    #[test]
    fn a_long_path_is_truncated() {
        let long = format!("/api/{}", "é".repeat(5000));
        let cut = endpoint(long.as_bytes(), LONG);
        assert_eq!(cut.len(), LONG);
        assert!(cut.starts_with("/api/%C3%A9%C3"));
    }

    proptest! {
        /// On every path that `/v1/check` accepts too, the rules for folded paths compare the same.
        #[test]
        fn the_folded_path_is_that_of_the_path_as_sent(
            path in "/[/.;%?#aA25eEfFl*]{0,48}", bytes_max in 1..64usize,
        ) {
            let mut expected = fold(&path).into_owned();
            expected.truncate(bytes_max);
            prop_assert_eq!(folded(&path, bytes_max), expected);
        }

        #[test]
        fn normalizing_twice_changes_nothing(uri in proptest::collection::vec(any::<u8>(), 0..200)) {
            let once = endpoint(&uri, LONG);
            prop_assert!(once.is_ascii() && once.len() <= LONG);
            prop_assert!(once == "*" || once.starts_with('/'));
            prop_assert!(!once.contains("//") && !once.contains("/./") && !once.contains("/../"));
            prop_assert_eq!(endpoint(once.as_bytes(), LONG), once);
        }

        #[test]
        fn an_additional_percent_encoding_makes_no_difference(
            uri in "(/[a-z.~_-]{0,5}){1,5}", choices in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let mut escaped = String::new();
            for (byte, is_escaped) in uri.bytes().zip(choices) {
                if is_escaped && byte != b'/' {
                    escaped += &format!("%{byte:02x}");
                } else {
                    escaped.push(byte.into());
                }
            }
            prop_assert_eq!(path(&escaped), path(&uri[..escaped.len().min(uri.len())]));
        }
    }
}
