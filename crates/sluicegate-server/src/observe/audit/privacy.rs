//! What is recorded in place of addresses and ids.
//!
//! Wherever something about a request is kept, these are what is kept of it, so that one setting covers
//! the database, the lists that are made of it and what waits in memory.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use sluicegate::Request;
use sluicegate::rules::{Attribute, Pattern};

use crate::config::{self, Privacy, Secret};

/// What every hash begins with.
const HASH_PREFIX: &str = "h:";
/// So much of a hash is kept: 128 bits.
const HASH_BYTES: usize = 16;
/// The length of a hash as text, without its prefix.
const HASH_TEXT_BYTES: usize = 22;

/// The bytes that HMAC-SHA256 makes of any key.
const KEY_BLOCK_BYTES: usize = 64;

/// The bits of an address that are kept when it is cut.
const V4_PREFIX: u32 = 24;
const V6_PREFIX: u32 = 48;

/// Makes what is recorded of addresses and ids. Clones make the same.
#[derive(Clone)]
pub struct Pseudonyms(How);

#[derive(Clone)]
enum How {
    Raw,
    Truncated,
    Hashed(Arc<Hmac<Sha256>>),
}

/// What a value is, so that an address and an id of the same text have different hashes.
#[derive(Clone, Copy)]
enum Domain {
    Ip = 0,
    Id = 1,
}

impl Pseudonyms {
    /// Those of these settings.
    #[must_use]
    pub fn new(settings: &config::Audit) -> Self {
        Self(match settings.privacy {
            Privacy::Raw => How::Raw,
            Privacy::Truncated => How::Truncated,
            Privacy::Hashed => How::Hashed(Arc::new(keyed(settings.privacy_key.as_ref()))),
        })
    }

    /// What is recorded of an address: itself, its network (`203.0.113.0/24`, `2001:db8:1::/48`), or a hash.
    #[must_use]
    pub fn ip<'a>(&self, ip: &'a str) -> Cow<'a, str> {
        match &self.0 {
            How::Raw => Cow::Borrowed(ip),
            How::Truncated => network(ip),
            How::Hashed(key) => Cow::Owned(hash(key, Domain::Ip, ip)),
        }
    }

    /// What is recorded of an id: itself, or a hash.
    #[must_use]
    pub fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match &self.0 {
            How::Raw | How::Truncated => Cow::Borrowed(id),
            How::Hashed(key) => Cow::Owned(hash(key, Domain::Id, id)),
        }
    }

    /// What is recorded of an attribute. What a request is for, how, and under which plan is nobody's secret;
    /// any attribute that only the caller knows the meaning of is taken for an id.
    #[must_use]
    pub fn attribute<'a>(&self, attribute: &Attribute, value: &'a str) -> Cow<'a, str> {
        match attribute {
            Attribute::Ip => self.ip(value),
            Attribute::Endpoint | Attribute::Method | Attribute::Plan => Cow::Borrowed(value),
            _ => self.id(value),
        }
    }

    /// The readable key of a request's bucket, made of what is recorded of its attributes. `None` if the
    /// request lacks one.
    #[must_use]
    pub fn bucket_key(&self, pattern: &Pattern, request: &Request<'_>) -> Option<String> {
        if let How::Raw = self.0 {
            return pattern.bucket_key(request);
        }
        let recorded = pattern
            .attributes()
            .iter()
            .map(|attribute| {
                Some((attribute.name(), self.attribute(attribute, request.get(attribute)?)))
            })
            .collect::<Option<Vec<_>>>()?;
        let of_pseudonyms = recorded
            .iter()
            .fold(Request::new(), |request, (name, value)| request.attribute(name, value));
        pattern.bucket_key(&of_pseudonyms)
    }

    /// The address to look for when somebody asks for `ip`: what is recorded of it, or `ip` itself if it is
    /// what is recorded of some address. `None` if it is neither.
    #[must_use]
    pub fn find_ip(&self, ip: &str) -> Option<String> {
        if self.is_hash(ip) || self.is_network(ip) {
            return Some(ip.into());
        }
        let address: IpAddr = ip.parse().ok()?;
        Some(self.ip(&address.to_canonical().to_string()).into_owned())
    }

    /// The id to look for when somebody asks for `id`: what is recorded of it, or `id` itself if it is a hash
    /// already.
    #[must_use]
    pub fn find_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.is_hash(id) { Cow::Borrowed(id) } else { self.id(id) }
    }

    fn is_hash(&self, text: &str) -> bool {
        matches!(self.0, How::Hashed(_))
            && text.strip_prefix(HASH_PREFIX).is_some_and(|hash| {
                let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                hash.len() == HASH_TEXT_BYTES && hash.bytes().all(in_alphabet)
            })
    }

    fn is_network(&self, text: &str) -> bool {
        let is_cut = |(ip, _): (&str, &str)| network(ip) == text;
        matches!(self.0, How::Truncated) && text.split_once('/').is_some_and(is_cut)
    }
}

/// The network of an address; of what is no address, nothing.
fn network(ip: &str) -> Cow<'_, str> {
    match ip.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
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

/// What hashes with this key. Without one, which the settings do not let through, hashes are of no use to
/// anybody rather than open to everybody.
fn keyed(key: Option<&Secret>) -> Hmac<Sha256> {
    let mut block = [0; KEY_BLOCK_BYTES];
    match key.map(|key| key.expose().as_bytes()) {
        // As HMAC has it: a short key is filled up, a long one is hashed.
        Some(key) if key.len() <= KEY_BLOCK_BYTES => block[..key.len()].copy_from_slice(key),
        Some(key) => {
            let digest = Sha256::digest(key);
            block[..digest.len()].copy_from_slice(&digest);
        }
        // Where there is no randomness, nothing else of the process works either.
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
            How::Raw => "Raw",
            How::Truncated => "Truncated",
            How::Hashed(_) => "Hashed",
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
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
            ("::1", "::/48"),
            ("nobody", "?"),
        ] {
            assert_eq!(cut.ip(ip), network, "{ip}");
        }
        assert_eq!(cut.id("42"), "42");
        // Somebody who has a network from a list may ask with it.
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
        let key = |privacy| pseudonyms(privacy).bucket_key(&pattern, &request).unwrap();
        assert_eq!(key(Privacy::Raw), "x:/login:203.0.113.9:42:acme");
        assert_eq!(key(Privacy::Truncated), "x:/login:203.0.113.0/24:42:acme");
        let hashed = pseudonyms(Privacy::Hashed);
        let (ip, user, tenant) = (hashed.ip("203.0.113.9"), hashed.id("42"), hashed.id("acme"));
        assert_eq!(key(Privacy::Hashed), format!("x:/login:{ip}:{user}:{tenant}"));
        assert_eq!(hashed.bucket_key(&pattern, &Request::new()), None);
    }
}
