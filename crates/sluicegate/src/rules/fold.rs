//! Folding of paths: the many spellings of a path that servers treat as the same one become one.
//!
//! | written | folded | |
//! |---|---|---|
//! | `/Login` | `/login` | ASCII letters are compared without case |
//! | `/login/`, `//login` | `/login` | empty segments are left out |
//! | `/./login`, `/x/../login` | `/login` | segments of dots are resolved |
//! | `/login;id=7`, `/x/..;/login` | `/login` | parameters of segments are left out, before dots are resolved |
//! | `/%6Cogin`, `/%2e/login` | `/login` | letters, digits, `-`, `.`, `_` and `~` are decoded |
//! | `/login?next=/`, `/login#top` | `/login` | query and fragment are left out |
//! | `/a%2Fb` | `/a%2fb` | every other percent-encoding stays: `%2F` is not a slash |
//!
//! A folded path is never longer than the path, and folding it again changes nothing.

use std::borrow::Cow;

/// Folds a path. Borrowed if it is in folded form already.
#[must_use]
pub fn fold(path: &str) -> Cow<'_, str> {
    if is_folded(path) {
        return Cow::Borrowed(path);
    }
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let plain = decoded(&path[..end]);
    let mut folded = String::with_capacity(plain.len());
    let is_absolute = plain.starts_with('/');
    if is_absolute {
        folded.push('/');
    }
    let root = folded.len();
    for segment in plain.split('/').map(without_parameters) {
        match segment {
            "" | "." => {}
            ".." => {
                let parent = folded.rfind('/').map_or(root, |slash| slash.max(root));
                folded.truncate(parent);
            }
            segment => {
                if folded.len() > root {
                    folded.push('/');
                }
                folded.push_str(segment);
            }
        }
    }
    Cow::Owned(folded)
}

/// Returns whether folding would change nothing.
fn is_folded(path: &str) -> bool {
    let bytes = path.as_bytes();
    let is_plain = |(at, byte): (usize, &u8)| match byte {
        b'A'..=b'Z' | b';' | b'?' | b'#' => false,
        b'%' => escaped_unreserved(&bytes[at..]).is_none(),
        _ => true,
    };
    let segments = path.strip_prefix('/').unwrap_or(path);
    let is_kept = |segment: &str| !matches!(segment, "" | "." | "..");
    bytes.iter().enumerate().all(is_plain)
        && (segments.is_empty() || segments.split('/').all(is_kept))
}

/// The text in lower case, with unreserved characters decoded. A decoded character may complete another escape:
/// `%6%31` is `%61`, which is `a`.
fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    for char in text.chars() {
        decoded.push(char.to_ascii_lowercase());
        let start = |decoded: &str| decoded.len().checked_sub(3);
        while let Some(start) = start(&decoded) {
            let Some(byte) = escaped_unreserved(&decoded.as_bytes()[start..]) else { break };
            decoded.truncate(start);
            decoded.push(byte.to_ascii_lowercase().into());
        }
    }
    decoded
}

/// The unreserved character that these bytes begin with, percent-encoded.
fn escaped_unreserved(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)).then_some(byte)
}

/// A segment without its parameters.
fn without_parameters(segment: &str) -> &str {
    segment.split_once(';').map_or(segment, |(segment, _)| segment)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_a_path_are_folded_into_one() {
        for spelling in [
            "/login",
            "/login/",
            "//login",
            "/LOGIN",
            "/Login//",
            "/login;x",
            "/login;x=1/",
            "/;x/login",
            "/./login",
            "/login/.",
            "/x/../login",
            "/x/..;y/login",
            "/../login",
            "/%6cogin",
            "/%4Cogin",
            "/x/%2e%2E/login",
            "/%6%63ogin",
            "/login?next=/a",
            "/login#a",
            "/login/?a#b",
            "/a/b/../../login",
        ] {
            assert_eq!(fold(spelling), "/login", "{spelling}");
        }
    }

    #[test]
    fn other_paths_stay_apart() {
        for (path, folded) in [
            ("", ""),
            ("/", "/"),
            ("//", "/"),
            ("/..", "/"),
            ("/;x", "/"),
            ("login/", "login"),
            ("../a/./b", "a/b"),
            ("..", ""),
            ("*", "*"),
            ("/a%2Fb", "/a%2fb"),
            ("/a%2f..%2Fb", "/a%2f..%2fb"),
            ("/%252e%252e/a", "/%252e%252e/a"),
            ("/a%3Bx", "/a%3bx"),
            ("/...", "/..."),
            ("/.well-known/a", "/.well-known/a"),
            ("/É/%C3%89", "/É/%c3%89"),
            ("/100%", "/100%"),
            ("/%zz", "/%zz"),
            ("/a\\b", "/a\\b"),
        ] {
            assert_eq!(fold(path), folded, "{path}");
        }
    }

    #[test]
    fn a_folded_path_is_borrowed() {
        for path in ["", "/", "/login", "/a/b.c/~d", "login", "/a%2fb", "/é", "/users/{id}", "/%"]
        {
            assert!(matches!(fold(path), Cow::Borrowed(_)), "{path}");
        }
    }

    proptest! {
        #[test]
        fn folding_is_idempotent_and_never_lengthens(path in "[/.;%?#aA25eEfFl*é]{0,24}") {
            let folded = fold(&path).into_owned();
            prop_assert!(folded.len() <= path.len());
            prop_assert!(is_folded(&folded), "{folded}");
            prop_assert_eq!(fold(&folded), folded.as_str());
        }

        /// An encoded slash stays within its segment, however it is surrounded.
        #[test]
        fn an_encoded_slash_is_never_a_slash(before in "[a.;%2]{0,4}", after in "[a.;%2]{0,4}") {
            let folded = fold(&format!("/x{before}%2F{after}x")).into_owned();
            prop_assert_eq!(folded.matches('/').count(), 1, "{}", folded);
        }
    }
}
