//! `CL.THROTTLE`, `SG.TAKE` and `SG.REFUND`: a bucket without a rule.

use std::str::FromStr;
use std::time::Duration;

use sluicegate::{
    Algorithm, Decision, Outcome, Quota, QuotaError, QuotaField, Rate, Refill, UnknownName,
};

use super::number::whole;
use super::{Refund, Take};
use crate::app::RequestLimits;
use crate::doors::resp::commands::table::CommandSpec;
use crate::doors::resp::error::{Fault, shown};
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::Replies;

/// `retry_after` of `CL.THROTTLE` if granted, or if waiting does not help.
const NO_RETRY: i64 = -1;

/// Last quota used by a connection. Most use only one, and building it takes longer than a
/// decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastQuota {
    max_burst: u64,
    count: u64,
    period: u64,
    quota: Quota,
}

/// Reads `CL.THROTTLE key max_burst count period [quantity]`.
#[inline]
pub(crate) fn read_throttle<'i>(
    command: &Command<'_, 'i>,
    known: &CommandSpec,
    limits: &RequestLimits,
    last: &mut Option<LastQuota>,
) -> Result<Take<'i>, Fault> {
    if command.len() > 6 {
        return Err(Fault::arguments(known));
    }
    let max_burst = whole("max_burst", command.argument(2))?;
    let count = whole("count_per_period", command.argument(3))?;
    let period = whole("period", command.argument(4))?;
    let cost = if command.len() == 6 { whole("quantity", command.argument(5))? } else { 1 };
    let quota = match last {
        Some(last) if (last.max_burst, last.count, last.period) == (max_burst, count, period) => {
            last.quota
        }
        _ => {
            let quota = throttle_quota(max_burst, count, period, limits)?;
            *last = Some(LastQuota { max_burst, count, period, quota });
            quota
        }
    };
    Ok(Take { key: command.argument(1), quota, cost, is_throttle: true })
}

/// The capacity is one more than `max_burst`, as in redis-cell.
fn throttle_quota(
    max_burst: u64,
    count: u64,
    period: u64,
    limits: &RequestLimits,
) -> Result<Quota, Fault> {
    let names = ["max_burst", "count_per_period", "period"];
    let quota =
        Rate::new(count, Duration::from_secs(period)).map_err(QuotaError::Rate).and_then(|rate| {
            let capacity = Some(max_burst.saturating_add(1));
            Quota::build(rate, Algorithm::TokenBucket, Refill::Continuous, capacity, None)
        });
    checked(quota.map_err(|error| no_quota(error, names))?, limits, names)
}

/// Refuses a quota that takes too long to fill. The names are those of the capacity, the tokens and the period.
#[inline]
fn checked(
    quota: Quota,
    limits: &RequestLimits,
    [capacity, tokens, period]: [&str; 3],
) -> Result<Quota, Fault> {
    match limits.check_take(&quota) {
        Ok(()) => Ok(quota),
        Err(error) => Err(Fault::field(format_args!("{capacity}, {tokens} and {period}"), error)),
    }
}

/// Names the argument that a quota error concerns. The names are those of the capacity, the tokens and the period.
fn no_quota(error: QuotaError, [capacity, tokens, period]: [&str; 3]) -> Fault {
    let name = match error.field() {
        QuotaField::Capacity => capacity,
        QuotaField::Tokens => tokens,
        QuotaField::Period => period,
        QuotaField::Refill => "refill",
        QuotaField::MaxWait => "max_wait",
        // Each argument is valid by itself.
        QuotaField::Rate | QuotaField::TimeToFull => {
            return Fault::field(format_args!("{capacity}, {tokens} and {period}"), error);
        }
    };
    Fault::field(name, error)
}

/// Writes the reply: limited, limit, remaining, `retry_after`, `reset_after`.
#[inline]
pub(super) fn answer_throttle(decision: &Decision, replies: &mut Replies) {
    let (limited, retry_after) = match decision.outcome {
        Outcome::Granted { .. } => (0, NO_RETRY),
        Outcome::Denied { retry_after } => (1, seconds(retry_after)),
        Outcome::Never => (1, NO_RETRY),
    };
    replies.array(5);
    replies.integer(limited);
    replies.unsigned(decision.limit);
    replies.unsigned(decision.remaining);
    replies.integer(retry_after);
    replies.integer(seconds(decision.reset_after));
}

/// Whole seconds, rounded up.
#[inline]
fn seconds(micros: u64) -> i64 {
    i64::try_from(micros.div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Reads `SG.TAKE key capacity tokens period_ms [cost] [ALGORITHM name] [REFILL name] [MAX_WAIT ms]`.
pub(crate) fn read_take<'i>(
    command: &Command<'_, 'i>,
    known: &CommandSpec,
    limits: &RequestLimits,
) -> Result<Take<'i>, Fault> {
    let numbers = read_numbers(command, 2)?;
    let mut cost = 1;
    let mut options = 5;
    if command.argument(options).first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
        cost = whole("cost", command.argument(options))?;
        options += 1;
    }
    let quota = read_quota(command, known, limits, numbers, options)?;
    Ok(Take { key: command.argument(1), quota, cost, is_throttle: false })
}

/// Reads `SG.REFUND key amount capacity tokens period_ms [ALGORITHM name] [REFILL name] [MAX_WAIT ms]`.
pub(crate) fn read_refund<'i>(
    command: &Command<'_, 'i>,
    known: &CommandSpec,
    limits: &RequestLimits,
) -> Result<Refund<'i>, Fault> {
    let amount = whole("amount", command.argument(2))?;
    if amount == 0 {
        return Err(Fault::field("amount", "must be at least 1"));
    }
    let numbers = read_numbers(command, 3)?;
    let quota = read_quota(command, known, limits, numbers, 6)?;
    Ok(Refund { key: command.argument(1), quota, amount })
}

/// Reads `capacity tokens period_ms`, which begin at this argument.
fn read_numbers(command: &Command<'_, '_>, first: usize) -> Result<[u64; 3], Fault> {
    let read = |name, position| whole(name, command.argument(position));
    Ok([read("capacity", first)?, read("tokens", first + 1)?, read("period_ms", first + 2)?])
}

/// Reads a quota of these numbers, whose options begin at this argument.
fn read_quota(
    command: &Command<'_, '_>,
    known: &CommandSpec,
    limits: &RequestLimits,
    [capacity, tokens, period_ms]: [u64; 3],
    options: usize,
) -> Result<Quota, Fault> {
    let (mut algorithm, mut refill, mut max_wait) = (None, None, None);
    for position in (options..command.len()).step_by(2) {
        if position + 1 == command.len() {
            return Err(Fault::arguments(known));
        }
        let (option, value) = (command.argument(position), command.argument(position + 1));
        let is_first = match () {
            () if option.eq_ignore_ascii_case(b"algorithm") => {
                let chosen = choice("algorithm", value)?;
                algorithm.replace(chosen).is_none()
            }
            () if option.eq_ignore_ascii_case(b"refill") => {
                refill.replace(choice("refill", value)?).is_none()
            }
            () if option.eq_ignore_ascii_case(b"max_wait") => {
                let wait = Duration::from_millis(whole("max_wait", value)?);
                max_wait.replace(wait).is_none()
            }
            () => {
                return Err(Fault::field(
                    shown(option),
                    "must be one of ALGORITHM, REFILL, MAX_WAIT",
                ));
            }
        };
        if !is_first {
            return Err(Fault::field(shown(option), "is duplicated"));
        }
    }
    let algorithm: Algorithm = algorithm.unwrap_or_default();
    let refill = refill.unwrap_or_default();
    // A window's capacity is its tokens, whatever is given here.
    let capacity = algorithm.has_capacity().then_some(capacity);
    let names = ["capacity", "tokens", "period_ms"];
    let quota = Rate::new(tokens, Duration::from_millis(period_ms))
        .map_err(QuotaError::Rate)
        .and_then(|rate| Quota::build(rate, algorithm, refill, capacity, max_wait))
        .map_err(|error| no_quota(error, names))?;
    checked(quota, limits, names)
}

/// Value of an enum by its name, in either case.
fn choice<T: FromStr<Err = UnknownName>>(field: &str, text: &[u8]) -> Result<T, Fault> {
    let name = str::from_utf8(text).unwrap_or_default().to_ascii_lowercase();
    name.parse().map_err(|error| Fault::field(field, error))
}

/// Writes the reply: allowed, limit, remaining, `retry_after_ms`, `reset_after_ms`, `delay_ms`,
/// degraded.
pub(super) fn answer_take(
    quota: &Quota,
    decision: &Decision,
    is_degraded: bool,
    replies: &mut Replies,
) {
    let delay_ms = match quota.algorithm() {
        Algorithm::LeakyBucket => decision.delay_ms(),
        _ => 0,
    };
    replies.record(7);
    replies.named("allowed").boolean(decision.is_granted());
    replies.named("limit").unsigned(decision.limit);
    replies.named("remaining").unsigned(decision.remaining);
    replies.named("retry_after_ms").integer(retry_after_ms(decision));
    replies.named("reset_after_ms").unsigned(decision.reset_after_ms());
    replies.named("delay_ms").unsigned(delay_ms);
    replies.named("degraded").boolean(is_degraded);
}

/// Milliseconds to wait, rounded up: 0 when granted, -1 for never.
pub(super) fn retry_after_ms(decision: &Decision) -> i64 {
    decision.retry_after_ms().map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX))
}
