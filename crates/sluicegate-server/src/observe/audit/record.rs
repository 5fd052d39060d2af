//! Rows of the audit, and queries for them: both map a request's values in the same way.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use sluicegate::rules::Attribute;
use sluicegate::{Request, Rule, Tier};

use super::Pseudonyms;
use crate::data::{ViolationFilter, ViolationRow};
use crate::time::Timestamp;

/// Maximum bytes of a bucket key. It is indexed, and index entries are limited in size.
pub(crate) const BUCKET_KEY_BYTES_MAX: usize = 512;
/// Maximum bytes of a user id.
pub(crate) const USER_ID_BYTES_MAX: usize = 256;
/// Maximum bytes of an endpoint.
pub(crate) const ENDPOINT_BYTES_MAX: usize = 255;
/// Maximum bytes of a method.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// Bytes of the hash that keeps truncated texts distinct: 128 bits.
const REST_BYTES: usize = 16;
/// Length of the suffix of a truncated text: `~` and the hash.
const REST_TEXT_BYTES: usize = 23;

/// Row for a tier that denied this request, or would have in shadow mode.
pub(crate) fn row(
    pseudonyms: &Pseudonyms,
    request: &Request<'_>,
    tier: &Tier<'_>,
    at: Timestamp,
) -> ViolationRow {
    let get = |attribute| request.get(&attribute);
    let value = |attribute: &Attribute| tier.rule.value(request, attribute);
    let bucket = pseudonyms.bucket(tier.rule.key_pattern(), value).unwrap_or_default();
    ViolationRow {
        bucket_key: bucket_key(&bucket.key),
        bucket_id: bucket.id,
        rule_id: tier.rule.rule_id(),
        is_shadow: !tier.is_enforced(),
        user_id: get(Attribute::UserId).map(|id| user_id(&pseudonyms.id(id))),
        ip_address: get(Attribute::Ip).map(|ip| pseudonyms.ip(ip).into_owned()),
        endpoint: get(Attribute::Endpoint).map(endpoint),
        method: get(Attribute::Method).map(|method| fit(method, METHOD_BYTES_MAX)),
        requested_at: at,
        last_at: at,
        tokens_at_time: tier.decision.remaining,
        count: 1,
    }
}

/// Subject of the bucket that a rule charges for this request.
pub(crate) fn subject(pseudonyms: &Pseudonyms, request: &Request<'_>, rule: &Rule) -> String {
    let subject = rule.subject(request).unwrap_or_default();
    match rule.subject_attribute() {
        Some(attribute) => fit(&pseudonyms.attribute(attribute, subject), USER_ID_BYTES_MAX),
        // A rule without placeholders has one bucket, named by its pattern.
        None => subject.into(),
    }
}

/// Maps a filter's values to their recorded form. `None` if its address is not one.
pub(crate) fn filter(pseudonyms: &Pseudonyms, filter: ViolationFilter) -> Option<ViolationFilter> {
    let ip_address = match &filter.ip_address {
        Some(ip) => Some(pseudonyms.find_ip(ip)?),
        None => None,
    };
    Some(ViolationFilter {
        user_id: filter.user_id.map(|id| user_id(&pseudonyms.find_id(&id))),
        ip_address,
        endpoint: filter.endpoint.as_deref().map(endpoint),
        bucket_key: filter.bucket_key.as_deref().map(bucket_key),
        ..filter
    })
}

/// Recorded form of a bucket key.
fn bucket_key(key: &str) -> String {
    fit(key, BUCKET_KEY_BYTES_MAX)
}

/// Recorded form of a user id or its pseudonym.
fn user_id(id: &str) -> String {
    fit(id, USER_ID_BYTES_MAX)
}

/// Recorded form of an endpoint.
fn endpoint(endpoint: &str) -> String {
    fit(endpoint, ENDPOINT_BYTES_MAX)
}

/// Truncates a text to `bytes_max` bytes, and replaces NUL, which databases reject in text, by
/// U+FFFD. A text that was changed ends with a hash of the original, so that two of them stay
/// distinct.
fn fit(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max && !text.contains('\0') {
        return text.into();
    }
    let hash = Sha256::digest(text.as_bytes());
    let text = text.replace('\0', "\u{fffd}");
    let end = text.floor_char_boundary(bytes_max - REST_TEXT_BYTES);
    let mut fitting = String::with_capacity(bytes_max);
    fitting.push_str(&text[..end]);
    fitting.push('~');
    URL_SAFE_NO_PAD.encode_string(&hash[..REST_BYTES], &mut fitting);
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_and_stays_different() {
        let long = |last: char| format!("{}{last}", "é".repeat(200));
        let (one, other) = (user_id(&long('a')), user_id(&long('b')));
        assert_ne!(one, other);
        for text in [one, other] {
            // One byte less where a character would be split.
            assert!((USER_ID_BYTES_MAX - 1..=USER_ID_BYTES_MAX).contains(&text.len()), "{text}");
            assert!(text.starts_with("éé"), "{text}");
            // A query with the recorded form finds it.
            assert_eq!(user_id(&text), text);
        }
        let most = "x".repeat(ENDPOINT_BYTES_MAX);
        assert_eq!(endpoint(&most), most);
        assert_eq!(fit(&format!("{most}x"), METHOD_BYTES_MAX).len(), METHOD_BYTES_MAX);
    }

    #[test]
    fn zeros_are_not_recorded_and_texts_with_them_stay_different() {
        for (zero, like) in [("a\0b\n", "a\u{fffd}b\n"), ("\0", "\u{fffd}")] {
            let recorded = user_id(zero);
            assert!(recorded.starts_with(&format!("{like}~")), "{recorded}");
            assert_eq!(user_id(&recorded), recorded);
            assert_eq!(user_id(like), like);
        }
        assert!(user_id(&"\0".repeat(USER_ID_BYTES_MAX)).len() <= USER_ID_BYTES_MAX);
    }
}
