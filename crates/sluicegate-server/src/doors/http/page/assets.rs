//! Files of the page built from `dashboard/`, and their security headers.

use axum::http::{HeaderName, HeaderValue, header};

/// Path and bytes of every file; empty if the page was not built. Text files are present twice,
/// also compressed with `.gz` appended to the name.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Content type of HTML.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// Path of the page itself.
pub(crate) const INDEX: &str = "/index.html";

/// Path prefix of files whose names contain a hash of their contents.
pub(crate) const ASSETS: &str = "/assets/";

/// Content security policy: the page may run its own scripts and connect to its own server, and
/// nothing else. Scripts cannot turn text into elements, so a key with markup in it stays text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every file.
pub(crate) const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) bytes: &'static [u8],
    /// Compressed with gzip; `None` if that saves nothing.
    pub(crate) gzip: Option<&'static [u8]>,
    pub(crate) content_type: &'static str,
}

/// Returns whether the page is part of this build.
pub(crate) fn is_built() -> bool {
    find(INDEX).is_some()
}

/// File at a path; `None` if there is none.
pub(crate) fn file(path: &str) -> Option<File> {
    let content_type = content_type(path)?;
    let gzip = find(&format!("{path}.gz"));
    Some(File { bytes: find(path)?, gzip, content_type })
}

fn find(path: &str) -> Option<&'static [u8]> {
    let position = FILES.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(FILES[position].1)
}

/// Content type by extension; `None` for files that are not served.
fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "html" => HTML,
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lookup is a binary search.
    #[test]
    fn files_stand_in_the_order_of_their_paths() {
        assert!(FILES.is_sorted_by(|(one, _), (next, _)| one < next));
    }

    #[test]
    fn only_files_of_known_kinds_are_served_and_never_a_compressed_one_by_its_name() {
        for (path, is_known) in [
            ("/index.html", true),
            ("/assets/a.js", true),
            ("/assets/a.js.gz", false),
            ("/assets/a.map", false),
            ("/assets/a", false),
        ] {
            assert_eq!(content_type(path).is_some(), is_known, "{path}");
        }
        assert!(file("/assets/nothing.js").is_none());
        assert!(file("/../Cargo.toml").is_none());
    }

    /// The policy protects operators who view keys that clients chose.
    #[test]
    fn the_policy_allows_no_foreign_content() {
        assert!(POLICY.starts_with("default-src 'none'; script-src 'self';"));
        for lax in ["unsafe", "*", "http:", "https:", "data:"] {
            assert!(!POLICY.contains(lax), "{lax}");
        }
    }
}
