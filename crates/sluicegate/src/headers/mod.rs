//! Header fields about limits, and the body of a denial, for every protocol over HTTP.
//!
//! ```
//! use http::HeaderMap;
//! use sluicegate::headers::{Headers, Policies};
//! use sluicegate::{Clock, Limiter, MemoryStore, Quota, Request, Rule, RuleSet, SystemClock};
//!
//! let rules = RuleSet::new(vec![Rule::new(1, "user:{user_id}", Quota::per_minute(5)?)?])?;
//! let limiter = Limiter::new(MemoryStore::new(), rules);
//! let verdict = limiter.check_now(&Request::new().user_id("42"));
//!
//! let mut fields = HeaderMap::new();
//! Headers::default().write(&Policies::of(&verdict), SystemClock::new().now(), &mut fields);
//! assert_eq!(fields["ratelimit-policy"], r#""user";q=5;w=60"#);
//! assert_eq!(fields["ratelimit"], r#""user";r=4;t=12"#);
//! assert_eq!(fields["x-ratelimit-remaining"], "4");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server makes [`Policies`] of a verdict, [`Headers`] writes them as fields, and for a denial
//! [`Policies::problem_json`] is the body. A request that no rule applied to has no policies, and its answer no
//! fields.

mod ietf11;
mod policies;
mod policy;
mod problem;
mod text;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use sluicegate_core::{Micros, named_values};
use smallvec::SmallVec;

pub use policies::{POLICIES_MAX, Policies};
pub use policy::{NAME_BYTES_MAX, Policy, retry_after_s};
pub use problem::{PROBLEM_JSON, QUOTA_EXCEEDED};

/// Policies of the server: quota and window of each.
pub const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// Tokens left, and seconds until more, for each policy.
pub const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// Most tokens that can be taken at once.
pub const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// Whole tokens left.
pub const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// Time at which the bucket is full again: see [`Reset`].
pub const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Most fields of an answer.
const FIELDS_MAX: usize = 6;

/// Name and value of a header field.
type Field = (HeaderName, HeaderValue);

/// Selects the header fields of answers. `Retry-After` is on every denial except `Never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Fields of the IETF draft.
    pub draft: Draft,
    /// Fields in use before the draft.
    pub legacy: Legacy,
}

/// A revision of `draft-ietf-httpapi-ratelimit-headers`. Its wire format still changes, so the revision is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Draft {
    /// Revision 11, whose fields have the format of revision 8 and later.
    #[default]
    Ietf11,
    /// No fields of the draft.
    Off,
}

/// Fields in use before any draft, about the tightest policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Legacy {
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.
    XRateLimit(Reset),
    /// No such fields.
    Off,
}

/// Unit of `X-RateLimit-Reset`, the time at which the tightest policy's bucket is full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reset {
    /// Seconds from now, rounded up.
    #[default]
    Delta,
    /// Seconds since the Unix epoch, rounded up.
    Epoch,
}

impl Headers {
    /// Writes the fields of an answer at `now`, replacing fields of the same names.
    pub fn write(&self, policies: &Policies<'_>, now: Micros, to: &mut HeaderMap) {
        for (name, value) in self.fields(policies, now) {
            to.insert(name, value);
        }
    }

    /// The fields of an answer at `now`, for protocols that do not carry a [`HeaderMap`]. Values are visible
    /// ASCII.
    pub fn fields(
        &self,
        policies: &Policies<'_>,
        now: Micros,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<> {
        let mut fields = SmallVec::<[Field; FIELDS_MAX]>::new();
        let mut push = |name, value| {
            if let Some(value) = value {
                fields.push((name, value));
            }
        };
        if self.draft == Draft::Ietf11 {
            push(RATELIMIT_POLICY, ietf11::policy_list(policies).into_value());
            push(RATELIMIT, ietf11::limit_list(policies).into_value());
        }
        let tightest = policies.tightest();
        if let (Legacy::XRateLimit(reset), Some(tightest)) = (self.legacy, tightest) {
            push(X_RATELIMIT_LIMIT, text::integer(tightest.limit()));
            push(X_RATELIMIT_REMAINING, text::integer(tightest.remaining()));
            push(X_RATELIMIT_RESET, text::integer(reset.of(tightest, now)));
        }
        push(RETRY_AFTER, policies.retry_after_s().and_then(text::integer));
        fields.into_iter()
    }
}

// ===== impl Draft, Legacy, Reset =====

named_values! {
    Draft:
    Ietf11 = "ietf-draft-11",
    Off = "off",
}

named_values! {
    Reset:
    Delta = "delta",
    Epoch = "epoch",
}

impl Default for Legacy {
    fn default() -> Self {
        Self::XRateLimit(Reset::Delta)
    }
}

impl Reset {
    /// Value of the field for a policy at `now`.
    fn of(self, policy: &Policy<'_>, now: Micros) -> u64 {
        let since = match self {
            Self::Delta => 0,
            Self::Epoch => now.get(),
        };
        policy::seconds_up(since.saturating_add(policy.decision().reset_after))
    }
}
