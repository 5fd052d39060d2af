//! What is recorded of a request, and what to look for when somebody asks for it: the same, made here.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use sluicegate::rules::Attribute;
use sluicegate::{Request, Rule, Tier};

use super::Pseudonyms;
use crate::data::{ViolationFilter, ViolationRow};
use crate::time::Timestamp;

/// The most bytes of a bucket's key that are recorded. It is indexed, and indexes take no long ones.
pub(crate) const BUCKET_KEY_BYTES_MAX: usize = 512;
/// The most bytes of a user's id.
pub(crate) const USER_ID_BYTES_MAX: usize = 256;
/// The most bytes of an endpoint.
pub(crate) const ENDPOINT_BYTES_MAX: usize = 255;
/// The most bytes of a method.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// So much of a hash tells what was cut from each other: 128 bits.
const REST_BYTES: usize = 16;
/// What stands for the rest of a text: `~`, and the hash of all of it.
const REST_TEXT_BYTES: usize = 23;

/// The row of a tier that denied this request, or would have.
pub(crate) fn row(
    pseudonyms: &Pseudonyms,
    request: &Request<'_>,
    tier: &Tier<'_>,
    at: Timestamp,
) -> ViolationRow {
    let get = |attribute| request.get(&attribute);
    let key = pseudonyms.bucket_key(tier.rule.key_pattern(), request);
    ViolationRow {
        bucket_key: bucket_key(&key.unwrap_or_default()),
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

/// Whom the bucket is about that a rule gives this request.
pub(crate) fn subject(pseudonyms: &Pseudonyms, request: &Request<'_>, rule: &Rule) -> String {
    let subject = rule.subject(request).unwrap_or_default();
    match rule.subject_attribute() {
        Some(attribute) => fit(&pseudonyms.attribute(attribute, subject), USER_ID_BYTES_MAX),
        // The name of the one bucket for all.
        None => subject.into(),
    }
}

/// What to look for when somebody asks for this: what is recorded of it. `None` if the address is none.
pub(crate) fn filter(pseudonyms: &Pseudonyms, asked: ViolationFilter) -> Option<ViolationFilter> {
    let ip_address = match &asked.ip_address {
        Some(ip) => Some(pseudonyms.find_ip(ip)?),
        None => None,
    };
    Some(ViolationFilter {
        user_id: asked.user_id.map(|id| user_id(&pseudonyms.find_id(&id))),
        ip_address,
        endpoint: asked.endpoint.as_deref().map(endpoint),
        bucket_key: asked.bucket_key.as_deref().map(bucket_key),
        ..asked
    })
}

/// A bucket's key as it is recorded.
fn bucket_key(key: &str) -> String {
    fit(key, BUCKET_KEY_BYTES_MAX)
}

/// A user's id, or its pseudonym, as it is recorded.
fn user_id(id: &str) -> String {
    fit(id, USER_ID_BYTES_MAX)
}

/// An endpoint as it is recorded.
fn endpoint(endpoint: &str) -> String {
    fit(endpoint, ENDPOINT_BYTES_MAX)
}

/// The text, if it has no more than `bytes_max`; else its beginning and a hash of all of it, so that two long
/// texts are still two. No database takes a zero in text: it becomes what stands for unreadable characters.
fn fit(text: &str, bytes_max: usize) -> String {
    let text = match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    };
    if text.len() <= bytes_max {
        return text.into_owned();
    }
    let end = text.floor_char_boundary(bytes_max - REST_TEXT_BYTES);
    let hash = Sha256::digest(text.as_bytes());
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
            // One byte less where a character would be cut in two.
            assert!((USER_ID_BYTES_MAX - 1..=USER_ID_BYTES_MAX).contains(&text.len()), "{text}");
            assert!(text.starts_with("éé"), "{text}");
            // Looking for what is recorded finds it.
            assert_eq!(user_id(&text), text);
        }
        let most = "x".repeat(ENDPOINT_BYTES_MAX);
        assert_eq!(endpoint(&most), most);
        assert_eq!(fit(&format!("{most}x"), METHOD_BYTES_MAX).len(), METHOD_BYTES_MAX);
    }

    #[test]
    fn zeros_are_not_recorded() {
        assert_eq!(bucket_key("a\0b\n"), "a\u{fffd}b\n");
        assert_eq!(user_id("\0"), "\u{fffd}");
    }
}
