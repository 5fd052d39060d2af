//! Replies of nodes about their cluster: `CLUSTER SLOTS` and `CLUSTER INFO`.

use std::time::Duration;

use redis::Value;
use tokio::time::timeout;

use super::map::NODES_MAX;
use crate::store::redis::classify::classify;
use crate::store::redis::connect::connect;
use crate::store::redis::key::SLOTS;
use crate::store::redis::settings::Settings;
use crate::store::redis::trouble::{Trouble, TroubleKind};
use crate::store::redis::url::Address;

/// Timeout of a node's replies, once connected.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(250);

/// Reply to `CLUSTER SLOTS`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::store::redis) struct Slots {
    pub(super) ranges: Vec<Range>,
    pub(super) replicas: Vec<Address>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: Address,
}

/// The slots that a node knows, and whether it reports a healthy cluster.
pub(super) async fn fetch_slots(
    settings: &Settings,
    address: &Address,
) -> Result<(Slots, bool), Trouble> {
    let mut connection = connect(settings, address).await?.connection;
    let mut pipeline = redis::Pipeline::with_capacity(2);
    pipeline.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
    let values = timeout(REFRESH_TIMEOUT, connection.send_packed_commands(&pipeline, 0, 2)).await;
    let values = match values {
        Ok(Ok(values)) => values,
        Ok(Err(error)) => return Err(classify(&error).into_trouble()),
        Err(_) => return Err(Trouble::new(TroubleKind::Connection, "no reply to CLUSTER SLOTS")),
    };
    match <[Value; 2]>::try_from(values) {
        Ok([Value::ServerError(error), _]) => Err(classify(&error.into()).into_trouble()),
        Ok([slots, info]) => match parse(&slots, address) {
            Some(slots) => Ok((slots, is_healthy(&info))),
            None => Err(malformed()),
        },
        Err(_) => Err(malformed()),
    }
}

pub(super) fn malformed() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "malformed reply to CLUSTER SLOTS")
}

/// A node that may not run `CLUSTER INFO` counts as healthy.
pub(in crate::store::redis) fn is_healthy(info: &Value) -> bool {
    match info {
        Value::BulkString(text) => !String::from_utf8_lossy(text).contains("cluster_state:fail"),
        Value::VerbatimString { text, .. } => !text.contains("cluster_state:fail"),
        _ => true,
    }
}

/// Parses `CLUSTER SLOTS`: each range has its first and last slot, its master, and its replicas, each as
/// host, port, and fields that are not used here. `None`: the reply is malformed.
pub(in crate::store::redis) fn parse(value: &Value, source: &Address) -> Option<Slots> {
    let Value::Array(ranges) = value else { return None };
    let mut slots = Slots::default();
    for range in ranges {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = range.as_slice() else {
            return None;
        };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        if first > last || last >= SLOTS {
            return None;
        }
        // A master without a known address cannot be asked: its slots have no owner.
        if let Some(master) = parse_node(master, source) {
            slots.ranges.push(Range { first, last, master });
        }
        for replica in replicas.iter().filter_map(|replica| parse_node(replica, source)) {
            if slots.replicas.len() < NODES_MAX && !slots.replicas.contains(&replica) {
                slots.replicas.push(replica);
            }
        }
    }
    Some(slots)
}

/// A host that is unknown to the node is the host of `source`.
pub(super) fn parse_node(value: &Value, source: &Address) -> Option<Address> {
    let Value::Array(node) = value else { return None };
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => "",
        _ => return None,
    };
    Address::redirected(&format!("{host}:{port}"), source)
}
