//! `RateLimit-Policy` and `RateLimit` as `draft-ietf-httpapi-ratelimit-headers-11` has them: lists of strings with
//! parameters, in the syntax of structured fields (RFC 9651).
//!
//! ```text
//!   RateLimit-Policy: "user";q=50;w=5, "ip";q=200;w=2
//!   RateLimit: "user";r=12;t=1, "ip";r=199;t=1
//! ```

use super::policies::{Name, Policies};
use super::policy::{Policy, name_bytes};
use super::text::Text;

/// Largest integer of a structured field.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// Typical length of a member, in bytes.
const MEMBER_BYTES: usize = 40;

/// Value of `RateLimit-Policy`: `q` tokens, and `w` seconds from empty to full.
pub(super) fn policy_list(policies: &Policies<'_>) -> Text {
    list(policies, |policy, to| {
        push_parameter(to, ";q=", policy.limit());
        push_parameter(to, ";w=", policy.window_s());
    })
}

/// Value of `RateLimit`: `r` tokens left, and `t` seconds until more refill; in a denial, until the same request is
/// granted.
///
/// A denial has `t` only for the policies that denied it: that of the others would bring a client back too early or
/// too late.
pub(super) fn limit_list(policies: &Policies<'_>) -> Text {
    let is_violated = policies.is_violated();
    list(policies, |policy, to| {
        push_parameter(to, ";r=", policy.remaining());
        if policy.is_violated() == is_violated
            && let Some(seconds) = policy.more_after_s()
        {
            push_parameter(to, ";t=", seconds);
        }
    })
}

/// A member for each policy: its name, followed by the output of `parameters`.
fn list(policies: &Policies<'_>, parameters: impl Fn(&Policy<'_>, &mut Text)) -> Text {
    let mut list = Text::with_capacity(policies.iter().len() * MEMBER_BYTES);
    for policy in policies.iter() {
        if !list.is_empty() {
            list.push(", ");
        }
        push_string(&mut list, &policies.name_of(policy));
        parameters(policy, &mut list);
    }
    list
}

/// Writes a quoted string, with quotes and backslashes escaped.
fn push_string(to: &mut Text, name: &Name<'_>) {
    to.push_byte(b'"');
    match name {
        Name::Scope(scope, rule_id) => {
            to.push(scope);
            if let Some(rule_id) = rule_id {
                to.push_byte(b'-');
                to.push_integer(*rule_id);
            }
        }
        Name::Given(name) => {
            for byte in name_bytes(name) {
                if matches!(byte, b'"' | b'\\') {
                    to.push_byte(b'\\');
                }
                to.push_byte(byte);
            }
        }
    }
    to.push_byte(b'"');
}

fn push_parameter(to: &mut Text, name: &str, integer: u64) {
    to.push(name);
    to.push_integer(integer.min(INTEGER_MAX));
}
