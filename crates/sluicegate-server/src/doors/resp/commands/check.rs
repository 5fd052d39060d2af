//! `SG.CHECK`: checks a request against the rules.

use std::borrow::Cow;

use sluicegate::rules::Attribute;
use sluicegate::{Request, Tier, Verdict};

use super::number::whole;
use super::take::retry_after_ms;
use crate::app::RequestLimits;
use crate::doors::resp::commands::table::CommandSpec;
use crate::doors::resp::error::{Fault, shown};
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::Replies;
use crate::normalize::{self, NAMESPACE};

/// Arguments of `SG.CHECK`.
#[derive(Debug, Default)]
pub(crate) struct Check<'i> {
    user_id: Option<&'i str>,
    ip: Option<Cow<'i, str>>,
    endpoint: Option<&'i str>,
    method: Option<&'i str>,
    plan: Option<&'i str>,
    cost: Option<u64>,
    attributes: Vec<(&'i str, &'i str)>,
}

impl<'i> Check<'i> {
    /// Reads `SG.CHECK name value [name value ...]`.
    pub(crate) fn read(
        command: &Command<'_, 'i>,
        known: &CommandSpec,
        limits: &RequestLimits,
    ) -> Result<Self, Fault> {
        if command.len().is_multiple_of(2) {
            return Err(Fault::arguments(known));
        }
        let mut check = Self::default();
        for position in (1..command.len()).step_by(2) {
            let (name, value) = (command.argument(position), command.argument(position + 1));
            let is_first = match name {
                b"cost" => check.cost.replace(whole("cost", value)?).is_none(),
                _ => check.set(name, text(name, value, limits)?)?,
            };
            if !is_first {
                return Err(Fault::field(shown(name), "is duplicated"));
            }
            if check.attributes.len() > limits.attributes_max {
                let most = format_args!("there are more than {}", limits.attributes_max);
                return Err(Fault::field("attributes", most));
            }
        }
        Ok(check)
    }

    /// Sets an attribute. Returns `false` if it was already set.
    fn set(&mut self, name: &'i [u8], value: &'i str) -> Result<bool, Fault> {
        let known = match name {
            b"user_id" => &mut self.user_id,
            b"endpoint" => &mut self.endpoint,
            b"method" => &mut self.method,
            b"plan" => &mut self.plan,
            b"ip" => return Ok(self.ip.replace(address(value)?).is_none()),
            // Set by the service only.
            _ if name == NAMESPACE.as_bytes() => return Ok(true),
            _ => {
                let text = str::from_utf8(name).ok().filter(|name| Attribute::is_name(name));
                let Some(name) = text else {
                    return Err(Fault::field(shown(name), "is not a valid attribute name"));
                };
                // Few: their number is bounded by a setting.
                let is_first = !self.attributes.iter().any(|(earlier, _)| *earlier == name);
                self.attributes.push((name, value));
                return Ok(is_first);
            }
        };
        Ok(known.replace(value).is_none())
    }

    /// The request to check, in the namespace of the caller.
    pub(crate) fn request<'b>(&'b self, namespace: Option<&'b str>) -> Request<'b> {
        let mut request = Request::new().cost(self.cost.unwrap_or(1));
        if let Some(user_id) = self.user_id {
            request = request.user_id(user_id);
        }
        if let Some(ip) = &self.ip {
            request = request.ip(ip);
        }
        if let Some(endpoint) = self.endpoint {
            request = request.endpoint(endpoint);
        }
        if let Some(method) = self.method {
            request = request.method(method);
        }
        if let Some(plan) = self.plan {
            request = request.plan(plan);
        }
        for (name, value) in &self.attributes {
            request = request.attribute(name, value);
        }
        if let Some(namespace) = namespace {
            request = request.attribute(NAMESPACE, namespace);
        }
        request
    }
}

/// A value as UTF-8 within its maximum length.
fn text<'i>(name: &[u8], value: &'i [u8], limits: &RequestLimits) -> Result<&'i str, Fault> {
    if value.len() > limits.value_bytes_max {
        let most = format_args!("has more than {} bytes", limits.value_bytes_max);
        return Err(Fault::field(shown(name), most));
    }
    str::from_utf8(value).map_err(|_| Fault::field(shown(name), "is not UTF-8"))
}

/// Normalizes an address.
fn address(text: &str) -> Result<Cow<'_, str>, Fault> {
    normalize::address(text).ok_or_else(|| Fault::field("ip", "is not an address"))
}

/// Writes the reply: allowed, limit, remaining, `retry_after_ms`, `reset_after_ms`, `delay_ms`,
/// degraded, `violated_tier`, `violated_rule`, `rule_id`.
pub(crate) fn answer(verdict: &Verdict, replies: &mut Replies) {
    let (violated, tightest) = (verdict.violated(), verdict.tightest());
    let figure = |replies: &mut Replies, figure: fn(&Tier<'_>) -> u64| match &tightest {
        Some(tier) => replies.unsigned(figure(tier)),
        None => replies.null(),
    };
    let retry_after_ms = match violated {
        Some(tier) => retry_after_ms(tier.decision),
        None if verdict.is_allowed() => 0,
        None => -1,
    };
    let delay_ms = u64::try_from(verdict.delay().as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
    replies.record(10);
    replies.named("allowed").boolean(verdict.is_allowed());
    figure(replies.named("limit"), |tier| tier.decision.limit);
    figure(replies.named("remaining"), |tier| tier.decision.remaining);
    replies.named("retry_after_ms").integer(retry_after_ms);
    figure(replies.named("reset_after_ms"), |tier| tier.decision.reset_after_ms());
    replies.named("delay_ms").unsigned(delay_ms);
    replies.named("degraded").boolean(verdict.is_degraded());
    let text = |replies: &mut Replies, text: Option<&str>| match text {
        Some(text) => replies.bulk(text),
        None => replies.null(),
    };
    text(replies.named("violated_tier"), violated.map(|tier| tier.rule.scope().name()));
    text(replies.named("violated_rule"), violated.map(|tier| tier.rule.key_pattern().as_str()));
    match violated {
        Some(tier) => replies.named("rule_id").unsigned(tier.rule.rule_id()),
        None => replies.named("rule_id").null(),
    }
}
