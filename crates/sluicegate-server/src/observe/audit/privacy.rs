//! Pseudonyms of addresses and ids, by the privacy setting.
//!
//! Everything kept about a request goes through here, so that one setting covers the database, the
//! lists made from it and the queue in memory.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use ipnet::IpNet;
use sha2::{Digest, Sha256};
use sluicegate::client_ip::canonical;
use sluicegate::rules::{Attribute, Pattern};
use sluicegate::{Request, Rule};

use crate::config::{self, Privacy, Secret};

/// Prefix of every hash.
const HASH_PREFIX: &str = "h:";
/// Bytes of a hash that are kept: 128 bits.
const HASH_BYTES: usize = 16;
/// Length of a hash as text, without its prefix.
const HASH_TEXT_BYTES: usize = 22;

/// Block size of HMAC-SHA256.
const KEY_BLOCK_BYTES: usize = 64;

/// Bits of an address that are kept when it is truncated.
const V4_PREFIX: u32 = 24;
const V6_PREFIX: u32 = 48;

/// Bytes of a bucket's id: 128 bits.
const BUCKET_ID_BYTES: usize = 16;

/// A bucket in its recorded form.
#[derive(Debug, Default)]
pub(crate) struct RecordedBucket {
    /// Readable key: the pattern with its placeholders filled in. Different values may give the
    /// same text: `a:b` and `c`, `a` and `b:c`.
    pub(crate) key: String,
    /// Hash over the values, each preceded by its length, so that different values have different
    /// ids.
    pub(crate) id: Vec<u8>,
}

/// Maps addresses and ids to their recorded form. Clones map the same way.
#[derive(Clone)]
pub(crate) struct Pseudonyms(Method);

#[derive(Clone)]
enum Method {
    Raw,
    Truncated,
    Hashed(Arc<Hmac<Sha256>>),
}

/// Kind of a value, so that an address and an id of the same text have different hashes.
#[derive(Clone, Copy)]
enum Domain {
    Ip = 0,
    Id = 1,
}

impl Pseudonyms {
    /// Pseudonyms for these settings.
    #[must_use]
    pub(crate) fn new(settings: &config::Audit) -> Self {
        Self(match settings.privacy {
            Privacy::Raw => Method::Raw,
            Privacy::Truncated => Method::Truncated,
            Privacy::Hashed => Method::Hashed(Arc::new(keyed(settings.privacy_key.as_ref()))),
        })
    }

    /// Recorded form of an address: itself, its network (`203.0.113.0/24`, `2001:db8:1::/48`), or a
    /// hash.
    #[must_use]
    pub(crate) fn ip<'a>(&self, ip: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Method::Raw => Cow::Borrowed(ip),
            Method::Truncated => network(ip),
            Method::Hashed(key) => Cow::Owned(hash(key, Domain::Ip, ip)),
        }
    }

    /// Recorded form of an id: itself, or a hash.
    #[must_use]
    pub(crate) fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Method::Raw | Method::Truncated => Cow::Borrowed(id),
            Method::Hashed(key) => Cow::Owned(hash(key, Domain::Id, id)),
        }
    }

    /// Recorded form of an attribute. Endpoint, method and plan are not personal and stay; any
    /// attribute the service does not know is treated as an id.
    #[must_use]
    pub(crate) fn attribute<'a>(&self, attribute: &Attribute, value: &'a str) -> Cow<'a, str> {
        match attribute {
            Attribute::Ip => self.ip(value),
            Attribute::Endpoint | Attribute::Method | Attribute::Plan => Cow::Borrowed(value),
            _ => self.id(value),
        }
    }

    /// Recorded form of a subject. Without a rule (it was deleted, or the bucket has none), text that parses as an
    /// address is treated as one.
    #[must_use]
    pub(crate) fn subject<'a>(&self, rule: Option<&Rule>, subject: &'a str) -> Cow<'a, str> {
        match rule.map(Rule::subject_attribute) {
            Some(Some(attribute)) => self.attribute(attribute, subject),
            // The rule has a single bucket: the subject is its key pattern.
            Some(None) => Cow::Borrowed(subject),
            None if subject.parse::<IpAddr>().is_ok() => self.ip(subject),
            None => self.id(subject),
        }
    }

    /// Recorded form of a network: itself, the larger one that addresses are truncated to, or a hash of its first
    /// address.
    #[must_use]
    pub(crate) fn network(&self, network: IpNet) -> String {
        match &self.0 {
            Method::Raw => network.to_string(),
            Method::Truncated | Method::Hashed(_) => {
                self.ip(&network.network().to_string()).into_owned()
            }
        }
    }

    /// True if everything is recorded as it is.
    #[must_use]
    pub(crate) fn are_raw(&self) -> bool {
        matches!(self.0, Method::Raw)
    }

    /// Recorded form of the bucket that a pattern has for these values. `None` if one of its attributes
    /// has none.
    #[must_use]
    pub(crate) fn bucket<'v>(
        &self,
        pattern: &Pattern,
        value: impl Fn(&Attribute) -> Option<&'v str>,
    ) -> Option<RecordedBucket> {
        let recorded = pattern
            .attributes()
            .iter()
            .map(|attribute| Some((attribute.name(), self.attribute(attribute, value(attribute)?))))
            .collect::<Option<Vec<_>>>()?;
        let of_pseudonyms = recorded
            .iter()
            .fold(Request::new(), |request, (name, value)| request.attribute(name, value));
        let mut hash = Sha256::new();
        for (_, value) in &recorded {
            hash.update((value.len() as u64).to_le_bytes());
            hash.update(value.as_bytes());
        }
        let id = hash.finalize()[..BUCKET_ID_BYTES].to_vec();
        Some(RecordedBucket { key: pattern.bucket_key(&of_pseudonyms)?, id })
    }

    /// Recorded form of a queried `ip`, or `ip` itself if it is already in recorded form. `None` if
    /// it is not an address.
    #[must_use]
    pub(crate) fn find_ip(&self, ip: &str) -> Option<String> {
        if self.is_hash(ip) || self.is_network(ip) {
            return Some(ip.into());
        }
        let address: IpAddr = ip.parse().ok()?;
        Some(self.ip(&canonical(address).to_string()).into_owned())
    }

    /// Recorded form of a queried `id`, or `id` itself if it is already a hash.
    #[must_use]
    pub(crate) fn find_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.is_hash(id) { Cow::Borrowed(id) } else { self.id(id) }
    }

    fn is_hash(&self, text: &str) -> bool {
        matches!(self.0, Method::Hashed(_))
            && text.strip_prefix(HASH_PREFIX).is_some_and(|hash| {
                let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                hash.len() == HASH_TEXT_BYTES && hash.bytes().all(in_alphabet)
            })
    }

    fn is_network(&self, text: &str) -> bool {
        let is_cut = |(ip, _): (&str, &str)| network(ip) == text;
        matches!(self.0, Method::Truncated) && text.split_once('/').is_some_and(is_cut)
    }
}

/// Network of an address; `?` if the text is not an address.
fn network(ip: &str) -> Cow<'_, str> {
    match ip.parse().map(canonical) {
        Ok(IpAddr::V4(ip)) => {
            let network = Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << (32 - V4_PREFIX)));
            Cow::Owned(format!("{network}/{V4_PREFIX}"))
        }
        Ok(IpAddr::V6(ip)) => {
            let network = Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - V6_PREFIX)));
            Cow::Owned(format!("{network}/{V6_PREFIX}"))
        }
        Err(_) => Cow::Borrowed("?"),
    }
}

/// HMAC with this key. Without a key, which the settings reject, the key is random: useless hashes
/// are better than reversible ones.
fn keyed(key: Option<&Secret>) -> Hmac<Sha256> {
    let mut block = [0; KEY_BLOCK_BYTES];
    match key.map(|key| key.expose().as_bytes()) {
        // As HMAC defines it: a short key is padded, a long one is hashed.
        Some(key) if key.len() <= KEY_BLOCK_BYTES => block[..key.len()].copy_from_slice(key),
        Some(key) => {
            let digest = Sha256::digest(key);
            block[..digest.len()].copy_from_slice(&digest);
        }
        // A system without randomness cannot run this process anyway.
        None => drop(getrandom::fill(&mut block)),
    }
    Hmac::new(&block.into())
}

fn hash(key: &Hmac<Sha256>, domain: Domain, value: &str) -> String {
    let mut mac = key.clone();
    mac.update(&[domain as u8]);
    mac.update(value.as_bytes());
    let mut text = String::with_capacity(HASH_PREFIX.len() + HASH_TEXT_BYTES);
    text.push_str(HASH_PREFIX);
    URL_SAFE_NO_PAD.encode_string(&mac.finalize().into_bytes()[..HASH_BYTES], &mut text);
    text
}

impl fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Method::Raw => "Raw",
            Method::Truncated => "Truncated",
            Method::Hashed(_) => "Hashed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms(privacy: Privacy) -> Pseudonyms {
        let privacy_key = Some(Secret::new("a key"));
        Pseudonyms::new(&config::Audit { privacy, privacy_key, ..config::Audit::default() })
    }

    #[test]
    fn raw_is_as_it_was() {
        let raw = pseudonyms(Privacy::Raw);
        assert_eq!((raw.ip("203.0.113.9"), raw.id("42")), ("203.0.113.9".into(), "42".into()));
        assert_eq!(raw.find_ip("::ffff:203.0.113.9").as_deref(), Some("203.0.113.9"));
        for wrong in ["", "203.0.113.0/24", "h:AAAAAAAAAAAAAAAAAAAAAA", "x"] {
            assert_eq!(raw.find_ip(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_are_cut_to_their_network() {
        let cut = pseudonyms(Privacy::Truncated);
        for (ip, network) in [
            ("203.0.113.9", "203.0.113.0/24"),
            ("255.255.255.255", "255.255.255.0/24"),
            ("::ffff:203.0.113.9", "203.0.113.0/24"),
            ("64:ff9b::203.0.113.9", "203.0.113.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
            ("::1", "::/48"),
            ("unknown", "?"),
        ] {
            assert_eq!(cut.ip(ip), network, "{ip}");
        }
        assert_eq!(cut.id("42"), "42");
        // A network from a list is a valid query.
        for known in ["203.0.113.9", "203.0.113.0/24"] {
            assert_eq!(cut.find_ip(known).as_deref(), Some("203.0.113.0/24"), "{known}");
        }
        for wrong in ["203.0.113.9/24", "203.0.113.0/25", "203.0.113.0/", "?", "?/?"] {
            assert_eq!(cut.find_ip(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hashes_go_by_the_key_and_by_what_is_hashed() {
        let hashed = pseudonyms(Privacy::Hashed);
        let id = hashed.id("42");
        // HMAC-SHA256 under `a key` of a one and the text, computed elsewhere.
        assert_eq!(id, "h:WWTpCmNs_h5JlFh-pIxRMw");
        assert_eq!(id, hashed.clone().id("42"));
        assert_ne!(id, hashed.id("43"));
        assert_ne!(id, hashed.ip("42"));
        let privacy_key = Some(Secret::new("another"));
        let settings =
            config::Audit { privacy: Privacy::Hashed, privacy_key, ..config::Audit::default() };
        assert_ne!(id, Pseudonyms::new(&settings).id("42"));
        assert_eq!(hashed.find_id(&id), id);
        assert_eq!(hashed.find_id("42"), id);
        let ip = hashed.ip("203.0.113.9");
        assert_eq!(hashed.find_ip(&ip).as_deref(), Some(&*ip));
        assert_eq!(hashed.find_ip("::ffff:203.0.113.9").as_deref(), Some(&*ip));
        assert_eq!(format!("{hashed:?}"), "Hashed");
    }

    #[test]
    fn keys_longer_than_a_block_are_all_used() {
        let of = |key: &str| {
            let privacy_key = Some(Secret::new(key));
            let privacy = Privacy::Hashed;
            let settings = config::Audit { privacy, privacy_key, ..config::Audit::default() };
            Pseudonyms::new(&settings).id("42").into_owned()
        };
        let long = "k".repeat(100);
        assert_ne!(of(&long), of(&long[..99]));
    }

    #[test]
    fn bucket_keys_are_made_of_what_is_recorded() {
        let pattern = Pattern::parse("x:{endpoint}:{ip}:{user_id}:{tenant}").unwrap();
        let request = Request::new()
            .ip("203.0.113.9")
            .endpoint("/login")
            .user_id("42")
            .attribute("tenant", "acme");
        let key =
            |privacy| pseudonyms(privacy).bucket(&pattern, |name| request.get(name)).unwrap().key;
        assert_eq!(key(Privacy::Raw), "x:/login:203.0.113.9:42:acme");
        assert_eq!(key(Privacy::Truncated), "x:/login:203.0.113.0/24:42:acme");
        let hashed = pseudonyms(Privacy::Hashed);
        let (ip, user, tenant) = (hashed.ip("203.0.113.9"), hashed.id("42"), hashed.id("acme"));
        assert_eq!(key(Privacy::Hashed), format!("x:/login:{ip}:{user}:{tenant}"));
        assert!(hashed.bucket(&pattern, |_| None).is_none());
    }

    #[test]
    fn buckets_with_one_text_and_different_values_have_different_ids() {
        let pattern = Pattern::parse("x:{tenant}:{user_id}").unwrap();
        let bucket = |privacy, tenant: &str, user_id: &str| {
            let request = Request::new().attribute("tenant", tenant).user_id(user_id);
            pseudonyms(privacy).bucket(&pattern, |name| request.get(name)).unwrap()
        };
        let raw = Privacy::Raw;
        let (one, other) = (bucket(raw, "a:b", "c"), bucket(raw, "a", "b:c"));
        assert_eq!(one.key, other.key);
        assert_ne!(one.id, other.id);
        assert_eq!(one.id, bucket(raw, "a:b", "c").id);
        let hashed = Privacy::Hashed;
        assert_ne!(bucket(hashed, "a:b", "c").id, bucket(hashed, "a", "b:c").id);
        // Addresses that are recorded as one network are one bucket.
        let pattern = Pattern::parse("{ip}").unwrap();
        let of = |ip| pseudonyms(Privacy::Truncated).bucket(&pattern, |_| Some(ip));
        assert_eq!(of("203.0.113.9").unwrap().id, of("203.0.113.10").unwrap().id);
    }
}
