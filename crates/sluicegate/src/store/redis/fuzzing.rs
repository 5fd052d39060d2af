//! Entrance of the fuzz target for replies of Redis. Not part of the interface.

use std::time::Duration;

use redis::{RedisError, Value, parse_redis_value};
use sluicegate_core::{Algorithm, Micros, Quota, Rate, Refill};

use super::call::{Call, Op};
use super::classify::classify;
use super::cluster::discovery;
use super::connect::ServerInfo;
use super::decide::{decisions, figures};
use super::key::RedisKey;
use super::script::decode;
use super::url::Address;
use crate::store::Space;

/// Parses a reply of a server, as one to each kind of request.
pub fn read_reply(bytes: &[u8]) {
    let Ok(value) = parse_redis_value(bytes) else { return };
    for calls in calls() {
        for (call, reply) in calls.iter().zip(decode(&calls, value.clone()).unwrap_or_default()) {
            let _ = decisions(&call.parts, &reply);
            let _ = figures(&call.parts, &reply);
        }
    }
    let source = Address::Tcp { host: "redis".into(), port: 6379 };
    let _ = (discovery::parse(&value, &source), discovery::is_healthy(&value));
    match value {
        Value::ServerError(error) => drop(classify(&RedisError::from(error))),
        Value::BulkString(text) => drop(ServerInfo::parse(&String::from_utf8_lossy(&text))),
        _ => {}
    }
}

/// Requests to the script: every operation on a bucket of every quota, and all of them together.
fn calls() -> Vec<Vec<Call>> {
    let ops = [Op::Charge, Op::Refund, Op::Undo { at: Micros::new(1) }, Op::Reset];
    // Every kind of reply: one number, two, and three for a log.
    let quota = |algorithm| {
        let rate = Rate::new(7, Duration::from_secs(60)).ok()?;
        Quota::build(rate, algorithm, Refill::Continuous, None, None).ok()
    };
    let quotas = Algorithm::ALL.into_iter().filter_map(quota).chain(Quota::per_second(1));
    let call = |(op, quota)| {
        let key = RedisKey::new("sg", Space::Take, &[b"key"]);
        Call::of_one(op, key, quota, 2)
    };
    let all: Vec<_> = quotas.flat_map(|quota| ops.map(|op| call((op, quota)))).collect();
    all.iter().map(|call| vec![call.clone()]).chain([all.clone()]).collect()
}
