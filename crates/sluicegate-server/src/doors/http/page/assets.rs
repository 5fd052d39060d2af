//! The page: the files of `dashboard/`, as they were built, and the headers that keep a browser from doing with
//! them what they are not for.

use axum::http::{HeaderName, HeaderValue, header};

/// The path and the bytes of every file; none where the page was not built. Text comes twice, as it is and with
/// `.gz` after its name.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The type of what browsers show.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// What browsers ask for first.
pub(crate) const INDEX: &str = "/index.html";

/// Where files have names that change with what is in them.
pub(crate) const ASSETS: &str = "/assets/";

/// What a browser may do with the page: run its own scripts and talk to its own server, and nothing else. No script
/// can make elements of text, so a key that is written like one stays a key.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every file.
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

/// One of its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) bytes: &'static [u8],
    /// The same, compressed, where that is worth it.
    pub(crate) gzip: Option<&'static [u8]>,
    pub(crate) content_type: &'static str,
}

/// Whether there is a page.
pub(crate) fn is_built() -> bool {
    find(INDEX).is_some()
}

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<File> {
    let content_type = content_type(path)?;
    let gzip = find(&format!("{path}.gz"));
    Some(File { bytes: find(path)?, gzip, content_type })
}

fn find(path: &str) -> Option<&'static [u8]> {
    let position = FILES.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(FILES[position].1)
}

/// Of the kinds of files there are; others are not served.
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

    /// They are looked for by that.
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

    /// What is asked of the page's own scripts is what protects whoever looks at keys.
    #[test]
    fn the_policy_lets_in_nothing_of_others() {
        assert!(POLICY.starts_with("default-src 'none'; script-src 'self';"));
        for lax in ["unsafe", "*", "http:", "https:", "data:"] {
            assert!(!POLICY.contains(lax), "{lax}");
        }
    }
}
