//! Calling convention of the script: encodes calls and decodes replies. The arguments are documented at the
//! top of `charge.lua`.

use hashbrown::HashMap;
use redis::{Cmd, Value};
use sluicegate_core::{Form, Micros, Quota, State};
use smallvec::SmallVec;

use super::call::{Call, Op, Part, Reply, Seen};
use super::trouble::{Trouble, TroubleKind};
use crate::clock::{Clock, ManualClock};
use crate::rules::Mode;

/// The script, with the header that makes servers from Redis 7 on refuse undeclared keys.
const SOURCE: &str = include_str!("charge.lua");
const HEADER: &str = "#!lua\n";

/// Maximum of buckets of a decision in the script's short form.
const PLAIN_PARTS_MAX: usize = 64;

/// The script for one server.
#[derive(Clone, Debug)]
pub(super) struct Script {
    source: &'static str,
    sha: String,
    /// Clock that replaces the server's: for tests and replay.
    clock: Option<ManualClock>,
}

impl Script {
    /// The script for a server of this major version: before 7 the header is a syntax error.
    pub(super) fn new(major: u64, clock: Option<ManualClock>) -> Self {
        let source = if major < 7 { SOURCE.strip_prefix(HEADER).unwrap_or(SOURCE) } else { SOURCE };
        let sha = redis::Script::new(source).get_hash().to_owned();
        Self { source, sha, clock }
    }

    /// The command that loads the script.
    pub(super) fn load(&self) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(self.source);
        cmd
    }

    /// The command that runs the script by its hash.
    pub(super) fn evalsha(&self, calls: &[Call]) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.sha);
        self.encode(&mut cmd, calls);
        cmd
    }

    /// The command that runs the script by its source, and loads it: for servers that have lost it.
    pub(super) fn eval(&self, calls: &[Call]) -> Cmd {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(self.source);
        self.encode(&mut cmd, calls);
        cmd
    }

    fn encode(&self, cmd: &mut Cmd, calls: &[Call]) {
        let mut numbers = HashMap::new();
        let mut keys = SmallVec::<[&str; 8]>::new();
        for part in calls.iter().flat_map(|call| &call.parts) {
            let key = part.key.as_str();
            numbers.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len()
            });
        }
        cmd.arg(keys.len());
        for key in &keys {
            cmd.arg(*key);
        }
        if let Some(clock) = &self.clock {
            cmd.arg("t").arg(clock.now().get());
        }
        if !calls.is_empty() && calls.iter().all(is_plain) {
            encode_plain(cmd, calls, &numbers);
            return;
        }
        for call in calls {
            let op = match call.op {
                Op::Charge => "c",
                Op::Refund => "r",
                Op::Undo { .. } => "u",
                Op::Reset => "x",
            };
            cmd.arg(op).arg(call.parts.len());
            if let Op::Undo { at } = call.op {
                cmd.arg(at.get());
            }
            for part in &call.parts {
                let number = numbers.get(part.key.as_str()).copied().unwrap_or_default();
                cmd.arg(number);
                if call.op != Op::Reset {
                    encode_part(cmd, part, call.op == Op::Charge);
                }
            }
        }
    }
}

/// Does the script have a short form for this call?
fn is_plain(call: &Call) -> bool {
    let is_plain = |part: &Part| {
        part.mode == Mode::Enforce
            && !part.is_probe
            && matches!(part.quota.form(), Form::Continuous { n: 1, .. })
    };
    call.op == Op::Charge && call.parts.len() <= PLAIN_PARTS_MAX && call.parts.iter().all(is_plain)
}

/// Encodes the short forms. Key numbers are left out if there is one decision, whose buckets are the keys.
fn encode_plain(cmd: &mut Cmd, calls: &[Call], numbers: &HashMap<&str, usize>) {
    cmd.arg(if calls.len() == 1 { "b" } else { "B" });
    for call in calls {
        if calls.len() > 1 {
            cmd.arg(call.parts.len());
        }
        for part in &call.parts {
            if calls.len() > 1 {
                cmd.arg(numbers.get(part.key.as_str()).copied().unwrap_or_default());
            }
            let (cost, cap) = Kind::of(&part.quota).cost_and_capacity(part, true);
            cmd.arg(form_text(&part.quota)).arg(cost).arg(cap);
        }
    }
}

/// Encodes a bucket's arguments: see the top of `charge.lua`.
fn encode_part(cmd: &mut Cmd, part: &Part, is_charge: bool) {
    let kind = Kind::of(&part.quota);
    let letter = match part.mode {
        Mode::Enforce => kind.letter.to_ascii_lowercase(),
        Mode::Shadow | Mode::Unlimited => kind.letter.to_ascii_uppercase(),
    };
    let (cost, cap) = kind.cost_and_capacity(part, is_charge);
    let probe = if part.is_probe { "?" } else { "" };
    cmd.arg(format!("{letter}{probe}")).arg(form_text(&part.quota)).arg(cost).arg(cap);
    for argument in kind.besides {
        cmd.arg(argument);
    }
}

/// A quota in the script's encoding.
struct Kind {
    letter: char,
    /// Units per token.
    unit: u64,
    besides: SmallVec<[u64; 2]>,
}

impl Kind {
    fn of(quota: &Quota) -> Self {
        let wait = |n| {
            // An unbounded wait is longer than any bucket.
            let micros = quota.max_wait().map(|wait| wait.as_micros() as u64);
            micros.map_or(sluicegate_core::MICROS_MAX, |micros| micros.saturating_mul(n))
        };
        let (letter, unit, besides) = match quota.form() {
            Form::Continuous { n: 1, p } => ('b', p, SmallVec::new()),
            Form::Continuous { n, p } => ('n', p, SmallVec::from_slice(&[n])),
            Form::LeakyBucket { n: 1, p } => ('q', p, SmallVec::from_slice(&[wait(1)])),
            Form::LeakyBucket { n, p } => ('m', p, SmallVec::from_slice(&[n, wait(n)])),
            Form::Interval { n, p } => ('i', 1, SmallVec::from_slice(&[n, p])),
            Form::FixedWindow { p } => ('f', 1, SmallVec::from_slice(&[p])),
            Form::SlidingCounter { p } => ('c', 1, SmallVec::from_slice(&[p])),
            Form::SlidingWindow { p } => ('w', 1, SmallVec::from_slice(&[p])),
        };
        Self { letter, unit, besides }
    }

    /// Cost of a part and capacity of its bucket, in units.
    fn cost_and_capacity(&self, part: &Part, is_charge: bool) -> (u64, u64) {
        let capacity = part.quota.capacity();
        let cap = capacity * self.unit;
        let cost = match part.cost {
            cost if cost <= capacity => cost * self.unit,
            // A charge beyond the capacity is never granted, however large.
            _ if is_charge => cap + 1,
            // At most the capacity can be missing; a window whose limit was lowered may have admitted more.
            _ if self.unit > 1 => cap,
            amount => amount.min(sluicegate_core::MICROS_MAX),
        };
        (cost, cap)
    }
}

/// The form in a bucket's value.
fn form_text(quota: &Quota) -> String {
    match quota.form() {
        Form::Continuous { n: 1, p } => format!(":{p}"),
        Form::Continuous { n, p } => format!(":{n}/{p}"),
        Form::LeakyBucket { n: 1, p } => format!(":q{p}"),
        Form::LeakyBucket { n, p } => format!(":q{n}/{p}"),
        Form::Interval { n, p } => format!(":i{n}/{p}"),
        Form::FixedWindow { p } => format!(":f{p}"),
        Form::SlidingCounter { p } => format!(":c{p}"),
        Form::SlidingWindow { p } => format!(":w{p}"),
    }
}

/// Decodes the script's reply to these calls.
pub(super) fn decode(calls: &[Call], value: Value) -> Result<Vec<Reply>, Trouble> {
    let Value::Array(values) = value else { return Err(malformed()) };
    let mut values = values.into_iter().map(|value| match value {
        Value::Int(number) => u64::try_from(number).map_err(|_| malformed()),
        _ => Err(malformed()),
    });
    let mut next = || values.next().unwrap_or_else(|| Err(malformed()));
    let now = Micros::new(next()?);
    let mut replies = Vec::with_capacity(calls.len());
    for call in calls {
        let done = next()? == 1;
        let mut seen = SmallVec::new();
        if call.op != Op::Reset {
            for part in &call.parts {
                seen.push(decode_seen(&part.quota, &mut next)?);
            }
        }
        replies.push(Reply { now, done, repaired: 0, seen });
    }
    // Counted once per batch, with the first decision.
    if let (Some(first), Some(repaired)) = (replies.first_mut(), values.next()) {
        first.repaired = u32::try_from(repaired?).unwrap_or(u32::MAX);
    }
    if values.next().is_some() {
        return Err(malformed());
    }
    Ok(replies)
}

/// Decodes one bucket: one number, two, or three for a log.
fn decode_seen(
    quota: &Quota,
    next: &mut impl FnMut() -> Result<u64, Trouble>,
) -> Result<Seen, Trouble> {
    Ok(match quota.form() {
        Form::SlidingWindow { .. } => {
            Seen::Log { used: next()?, newest: next()?, leaving: next()? }
        }
        Form::Continuous { n: 1, .. } | Form::LeakyBucket { n: 1, .. } => {
            Seen::State(State { a: next()?, b: 0 })
        }
        _ => Seen::State(State { a: next()?, b: next()? }),
    })
}

fn malformed() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "malformed reply of the script")
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;
    use crate::store::Space;
    use crate::store::redis::key::RedisKey;

    fn part(name: &str, quota: &str, cost: u64) -> Part {
        let key = RedisKey::new("sg", Space::Rule(1), &[name.as_bytes()]);
        Part { key, quota: quota.parse().unwrap(), cost, mode: Mode::Enforce, is_probe: false }
    }

    fn charge(parts: &[Part]) -> Call {
        Call { op: Op::Charge, parts: parts.iter().cloned().collect() }
    }

    /// The arguments after the name of the command and the script's hash.
    fn arguments(script: &Script, calls: &[Call]) -> Vec<String> {
        let cmd = script.evalsha(calls);
        let text = |arg: Arg<&[u8]>| match arg {
            Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => panic!("a cursor"),
        };
        cmd.args_iter().skip(2).map(text).collect()
    }

    #[test]
    fn servers_before_7_get_no_header() {
        let (old, new) = (Script::new(6, None), Script::new(7, None));
        assert!(new.source.starts_with("#!lua\n") && !old.source.starts_with('#'));
        assert_ne!(old.sha, new.sha);
    }

    #[test]
    fn nothing_to_decide_is_no_arguments() {
        assert_eq!(arguments(&Script::new(7, None), &[]), ["0"]);
    }

    #[test]
    fn one_plain_decision_is_short() {
        let script = Script::new(7, None);
        let call = charge(&[part("a", "10/s burst 50", 1), part("b", "1/s", 5)]);
        let keys: Vec<_> = call.parts.iter().map(|part| part.key.as_str().to_owned()).collect();
        let expected = [
            "2", &keys[0], &keys[1], "b", ":100000", "100000", "5000000", ":1000000", "1000001",
            "1000000",
        ];
        assert_eq!(arguments(&script, &[call]), expected);
    }

    #[test]
    fn several_plain_decisions_are_short_too() {
        let script = Script::new(7, None);
        let (one, other) = (part("a", "10/s", 1), part("b", "1/s", 0));
        let calls = [charge(std::slice::from_ref(&one)), charge(&[other.clone(), one.clone()])];
        let expected = [
            "2",
            one.key.as_str(),
            other.key.as_str(),
            "B",
            "1",
            "1",
            ":100000",
            "100000",
            "1000000",
            "2",
            "2",
            ":1000000",
            "0",
            "1000000",
            "1",
            ":100000",
            "100000",
            "1000000",
        ];
        assert_eq!(arguments(&script, &calls), expected);
    }

    #[test]
    fn decisions_of_a_batch_name_each_bucket_once() {
        let clock = ManualClock::new(Micros::new(5));
        let script = Script::new(7, Some(clock));
        let shadow = Part { mode: Mode::Shadow, ..part("a", "999/s burst 2", 1) };
        let undo = Call {
            op: Op::Undo { at: Micros::new(4) },
            parts: charge(&[part("a", "1/s", 1)]).parts,
        };
        let key = undo.parts[0].key.as_str().to_owned();
        let expected = [
            "1",
            &key,
            "t",
            "5",
            "c",
            "1",
            "1",
            "N",
            ":999/1000000",
            "1000000",
            "2000000",
            "999",
            "u",
            "1",
            "4",
            "1",
            "b",
            ":1000000",
            "1000000",
            "1000000",
        ];
        assert_eq!(arguments(&script, &[charge(&[shadow]), undo]), expected);
    }

    #[test]
    fn probes_are_marked_and_name_their_bucket_as_others_do() {
        let script = Script::new(7, None);
        let probe = Part { is_probe: true, ..part("a", "1/s burst 5", 6) };
        let shadow = Part { mode: Mode::Shadow, cost: 2, ..probe.clone() };
        let call = charge(&[part("a", "1/s burst 5", 1), probe, shadow]);
        let key = call.parts[0].key.as_str().to_owned();
        let of_part = |kind, cost| ["1", kind, ":1000000", cost, "5000000"];
        let mut expected = vec!["1", &key, "c", "3"];
        expected.extend(of_part("b", "1000000"));
        expected.extend(of_part("b?", "5000001"));
        expected.extend(of_part("B?", "2000000"));
        assert_eq!(arguments(&script, &[call]), expected);
    }

    #[test]
    fn answers_of_the_wrong_shape_are_trouble() {
        let calls = [charge(&[part("a", "1/s", 1)])];
        let ints =
            |numbers: &[i64]| Value::Array(numbers.iter().copied().map(Value::Int).collect());
        let replies = decode(&calls, ints(&[7, 1, 9])).unwrap();
        assert_eq!(replies[0].seen[0], Seen::State(State { a: 9, b: 0 }));
        assert_eq!((replies[0].now, replies[0].repaired), (Micros::new(7), 0));
        assert_eq!(decode(&calls, ints(&[7, 1, 9, 3])).unwrap()[0].repaired, 3);
        for wrong in [&[][..], &[7], &[7, 1], &[7, 1, -9], &[7, 1, 9, 3, 4], &[-7, 1, 9]] {
            assert!(decode(&calls, ints(wrong)).is_err(), "{wrong:?}");
        }
        for wrong in [Value::Nil, Value::Okay, Value::Int(1), Value::Array(vec![Value::Nil])] {
            assert!(decode(&calls, wrong).is_err());
        }
    }
}
