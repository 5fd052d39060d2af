//! Reads the descriptors of a call.
//!
//! The entries of a descriptor are attributes of a request, under [our names](crate::envoy_names);
//! entries that cannot be attributes only appear in `descriptor`, which lists all keys. A
//! descriptor with its own limit charges a bucket without a rule instead.
//!
//! Domains, keys and limits come from the operator and are rejected if invalid. Values come from
//! clients and are always accepted, as by `/v1/authorize`: Envoy lets a request pass if its call
//! fails, so rejecting a value would let it bypass the limit.

use std::borrow::Cow;
use std::time::Duration;

use sluicegate::{
    ASKS_MAX, Algorithm, Ask, Decision, Outcome, Quota, QuotaError, Rate, Refill, Request,
};

use super::CallError;
use super::rls::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use super::rls::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use super::rls::envoy::service::ratelimit::v3::RateLimitRequest;
use super::rls::envoy::r#type::v3::RateLimitUnit;
use crate::app::{RequestLimits, TAKE_ON_ERROR};
use crate::envoy_names::{self, BETWEEN_KEYS, DESCRIPTOR, DOMAIN, unit_seconds};
use crate::normalize::{Endpoint, NAMESPACE, address, text};

/// Maximum number of descriptors in a call: as many as can be decided in one step.
pub(super) const DESCRIPTORS_MAX: usize = ASKS_MAX;

/// Cost of a call without `hits_addend`.
const HITS_DEFAULT: u64 = 1;

/// Decision of a limit of zero requests.
const ZERO_LIMIT: Decision =
    Decision { outcome: Outcome::Never, limit: 0, remaining: 0, reset_after: 0 };

/// A valid descriptor and its derived values.
#[derive(Debug)]
pub(crate) struct Descriptor<'a> {
    domain: &'a str,
    entries: Vec<KeyValue<'a>>,
    /// Its keys in order, separated by commas.
    pub(super) keys: Cow<'a, str>,
    own_limit: Option<OwnLimit>,
    hits: Hits,
}

/// An entry with its value as text, truncated to the maximum length.
#[derive(Debug)]
struct KeyValue<'a> {
    key: &'a str,
    value: Cow<'a, str>,
    /// Attribute of this entry; `None` if it cannot be one.
    name: Option<&'a str>,
    normalized: Normalized<'a>,
}

/// Value of an attribute.
#[derive(Debug)]
enum Normalized<'a> {
    /// The entry's value.
    Same,
    Address(String),
    Path(Endpoint),
    /// An endpoint that is not a path, complete, and the most bytes of its folded form.
    Name(Cow<'a, str>, usize),
}

/// Limit sent with a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnLimit {
    /// As sent; zero denies everything.
    pub(super) requests_per_unit: u32,
    pub(super) unit: RateLimitUnit,
    /// Quota of its bucket.
    pub(super) quota: Quota,
}

/// Operation on the buckets of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hits {
    Charge(u64),
    /// Reads whether a token is left.
    Probe,
    Refund(u64),
}

/// Operation of a descriptor on its buckets.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) descriptor: &'a Descriptor<'a>,
    pub(super) buckets: Buckets<'a>,
}

/// Buckets of a descriptor.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are requests, and live for one call")]
pub(super) enum Buckets<'a> {
    /// Those of the matching rules.
    Rules(Request<'a>),
    /// That of its own limit.
    OwnLimit { key: String, namespace: Option<&'a str>, limit: &'a OwnLimit },
}

/// Reads and validates the descriptors of a call.
pub(crate) fn read<'a>(
    call: &'a RateLimitRequest,
    limits: &RequestLimits,
) -> Result<Vec<Descriptor<'a>>, CallError> {
    if call.domain.is_empty() {
        return Err(CallError::field("domain", "is empty"));
    }
    check_length(limits, &call.domain, || "domain".into())?;
    if call.descriptors.is_empty() {
        return Err(CallError::field("descriptors", "is empty"));
    }
    if call.descriptors.len() > DESCRIPTORS_MAX {
        let most = format!("has more than {DESCRIPTORS_MAX} members");
        return Err(CallError::field("descriptors", most));
    }
    let read = |(position, descriptor)| Descriptor::read(call, descriptor, position, limits);
    call.descriptors.iter().enumerate().map(read).collect()
}

fn check_length(
    limits: &RequestLimits,
    text: &str,
    field: impl FnOnce() -> String,
) -> Result<(), CallError> {
    let bytes_max = limits.value_bytes_max;
    if text.len() > bytes_max {
        return Err(CallError::field(field(), format!("has more than {bytes_max} bytes")));
    }
    Ok(())
}

// ===== impl Descriptor =====

impl<'a> Descriptor<'a> {
    fn read(
        call: &'a RateLimitRequest,
        descriptor: &'a RateLimitDescriptor,
        position: usize,
        limits: &RequestLimits,
    ) -> Result<Self, CallError> {
        let field = |rest: &str| format!("descriptors[{position}].{rest}");
        let entries = descriptor.entries.as_slice();
        if entries.is_empty() {
            return Err(CallError::field(field("entries"), "is empty"));
        }
        if entries.len() > limits.attributes_max {
            let most = format!("has more than {} members", limits.attributes_max);
            return Err(CallError::field(field("entries"), most));
        }
        for (place, Entry { key, .. }) in entries.iter().enumerate() {
            if key.is_empty() {
                return Err(CallError::field(field(&format!("entries[{place}].key")), "is empty"));
            }
            check_length(limits, key, || field(&format!("entries[{place}].key")))?;
        }
        let own_limit = descriptor.limit.as_ref().map(|limit| OwnLimit::read(limit, limits));
        Ok(Self {
            domain: &call.domain,
            entries: entries
                .iter()
                .map(|entry| KeyValue::read(entry, limits.value_bytes_max))
                .collect(),
            keys: keys(entries),
            own_limit: own_limit
                .transpose()
                .map_err(|(name, why)| CallError::field(field(name), why))?,
            hits: Hits::of(call, descriptor),
        })
    }

    /// Its operation and buckets, in the namespace of the caller.
    pub(super) fn part(&'a self, namespace: Option<&'a str>) -> Part<'a> {
        let buckets = match &self.own_limit {
            None => Buckets::Rules(self.request(namespace)),
            Some(limit) => Buckets::OwnLimit { key: self.own_key(limit), namespace, limit },
        };
        Part { descriptor: self, buckets }
    }

    /// Request that the rules are matched against, in the namespace of the caller.
    fn request(&'a self, namespace: Option<&'a str>) -> Request<'a> {
        let mut request = Request::new().cost(self.hits.cost());
        for KeyValue { name, value, normalized, .. } in &self.entries {
            let Some(name) = name else { continue };
            request = match normalized {
                Normalized::Same => request.attribute(name, value),
                Normalized::Address(address) => request.attribute(name, address),
                Normalized::Path(endpoint) => endpoint.add_to(request),
                Normalized::Name(written, bytes_max) => {
                    request.normalized_endpoint(value, written, *bytes_max)
                }
            };
        }
        // After the entries, so that entries cannot override these.
        let request = request.attribute(DOMAIN, self.domain).attribute(DESCRIPTOR, &self.keys);
        match namespace {
            Some(namespace) => request.attribute(NAMESPACE, namespace),
            None => request,
        }
    }

    /// Bucket key of its own limit: one per limit, domain and list of entries, because two limits
    /// sharing a bucket would lose each other's tokens. Every text is preceded by its length, so
    /// that no two lists have the same key.
    fn own_key(&self, limit: &OwnLimit) -> String {
        let texts = self.entries.iter().flat_map(|entry| [entry.key, &*entry.value]);
        let OwnLimit { requests_per_unit, unit, .. } = limit;
        let mut own_key = format!("rls:{requests_per_unit}:{}", unit.as_str_name());
        for text in [self.domain].into_iter().chain(texts) {
            own_key.push(':');
            own_key.push_str(&text.len().to_string());
            own_key.push(':');
            own_key.push_str(text);
        }
        own_key
    }
}

/// Keys of a descriptor in order.
fn keys(entries: &[Entry]) -> Cow<'_, str> {
    let [first, rest @ ..] = entries else { return Cow::Borrowed("") };
    let mut keys = Cow::Borrowed(first.key.as_str());
    for entry in rest {
        let keys = keys.to_mut();
        keys.push_str(BETWEEN_KEYS);
        keys.push_str(&entry.key);
    }
    keys
}

// ===== impl KeyValue =====

impl<'a> KeyValue<'a> {
    /// Truncated, not rejected: rejecting would let an oversized value bypass its limit.
    fn read(Entry { key, value: sent }: &'a Entry, bytes_max: usize) -> Self {
        let mut value = text(sent);
        let end = value.floor_char_boundary(bytes_max);
        match &mut value {
            Cow::Borrowed(value) => *value = &value[..end],
            Cow::Owned(value) => value.truncate(end),
        }
        // The service sets the namespace: an entry cannot.
        let name = envoy_names::attribute(key).filter(|name| *name != NAMESPACE);
        let normalized = match name {
            // Kept only if it differs from the value sent.
            Some("ip") => address(&value)
                .filter(|one| *one != value)
                .map_or(Normalized::Same, |one| Normalized::Address(one.into_owned())),
            Some("endpoint") if sent.starts_with(b"/") => {
                Normalized::Path(Endpoint::of_uri(sent, bytes_max))
            }
            // Without a leading slash it is a name chosen by the operator, not a path.
            Some("endpoint") => Normalized::Name(text(sent), bytes_max),
            _ => Normalized::Same,
        };
        Self { key, value, name, normalized }
    }
}

// ===== impl OwnLimit, Hits =====

impl OwnLimit {
    fn read(
        limit: &RateLimitOverride,
        limits: &RequestLimits,
    ) -> Result<Self, (&'static str, String)> {
        let RateLimitOverride { requests_per_unit, .. } = *limit;
        let unit = limit.unit();
        let Some(seconds) = unit_seconds(unit.as_str_name()) else {
            let why = "must be one of SECOND, MINUTE, HOUR, DAY, MONTH, YEAR";
            return Err(("limit.unit", why.into()));
        };
        let period = Duration::from_secs(seconds);
        let quota = quota(requests_per_unit.max(1), period)
            .map_err(|error| ("limit.requests_per_unit", error.to_string()))?;
        limits.check_take(&quota).map_err(|error| ("limit.unit", error.to_string()))?;
        Ok(Self { requests_per_unit, unit, quota })
    }

    /// Returns whether it denies everything.
    fn is_zero(&self) -> bool {
        self.requests_per_unit == 0
    }

    /// Decision for a decision of its bucket.
    pub(super) fn decision<'a>(&self, of_bucket: &'a Decision) -> &'a Decision {
        if self.is_zero() { &ZERO_LIMIT } else { of_bucket }
    }
}

/// A token bucket, or a fixed window where a token bucket is not exact, such as 1 000 003 a day.
fn quota(requests: u32, period: Duration) -> Result<Quota, QuotaError> {
    let rate = Rate::new(requests.into(), period)?;
    let window = || Quota::build(rate, Algorithm::FixedWindow, Refill::Continuous, None, None);
    Quota::from_rate(rate).or_else(|_| window())
}

impl Hits {
    fn of(call: &RateLimitRequest, descriptor: &RateLimitDescriptor) -> Self {
        let of_call = match call.hits_addend {
            0 => HITS_DEFAULT,
            hits => hits.into(),
        };
        match descriptor.hits_addend {
            hits if descriptor.is_negative_hits => Self::Refund(hits.unwrap_or(of_call)),
            Some(0) => Self::Probe,
            hits => Self::Charge(hits.unwrap_or(of_call)),
        }
    }

    fn cost(self) -> u64 {
        match self {
            Self::Charge(hits) => hits,
            Self::Probe => 1,
            // The amount of a refund is passed separately.
            Self::Refund(_) => 0,
        }
    }
}

// ===== impl Part =====

impl<'a> Part<'a> {
    /// Charge to ask for; `None` for a refund.
    pub(super) fn ask(&self) -> Option<Ask<'_, 'a>> {
        let is_probe = match self.descriptor.hits {
            Hits::Charge(_) => false,
            Hits::Probe => true,
            Hits::Refund(_) => return None,
        };
        Some(match &self.buckets {
            Buckets::Rules(request) => Ask::Request { request, is_probe },
            Buckets::OwnLimit { limit, .. } if limit.is_zero() => Ask::Blocked,
            Buckets::OwnLimit { key, namespace, limit } => {
                let (namespace, quota) = (*namespace, &limit.quota);
                let cost = self.descriptor.hits.cost();
                Ask::Take { key, namespace, quota, cost, on_error: TAKE_ON_ERROR, is_probe }
            }
        })
    }

    /// Tokens to refund; `None` if this is not a refund.
    pub(super) fn refund(&self) -> Option<u64> {
        match self.descriptor.hits {
            Hits::Refund(amount) => Some(amount),
            Hits::Charge(_) | Hits::Probe => None,
        }
    }
}

#[cfg(test)]
mod tests;
