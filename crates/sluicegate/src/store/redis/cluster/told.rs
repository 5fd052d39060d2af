//! What nodes tell of their cluster: `CLUSTER SLOTS` and `CLUSTER INFO`.

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

/// How long a node may take to say what it knows, once connected.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(250);

/// The answer to `CLUSTER SLOTS`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Slots {
    pub(super) ranges: Vec<Range>,
    pub(super) replicas: Vec<Address>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: Address,
}

/// What a node knows, and whether it finds its cluster in order.
pub(super) async fn ask_slots(
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
        Err(_) => return Err(Trouble::new(TroubleKind::Connection, "no answer to CLUSTER SLOTS")),
    };
    match <[Value; 2]>::try_from(values) {
        Ok([Value::ServerError(error), _]) => Err(classify(&error.into()).into_trouble()),
        Ok([slots, info]) => match parse(&slots, address) {
            Some(slots) => Ok((slots, is_in_order(&info))),
            None => Err(not_understood()),
        },
        Err(_) => Err(not_understood()),
    }
}

pub(super) fn not_understood() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "the answer to CLUSTER SLOTS was not understood")
}

/// A node that may not say is believed.
pub(super) fn is_in_order(info: &Value) -> bool {
    match info {
        Value::BulkString(text) => !String::from_utf8_lossy(text).contains("cluster_state:fail"),
        Value::VerbatimString { text, .. } => !text.contains("cluster_state:fail"),
        _ => true,
    }
}

/// Reads `CLUSTER SLOTS`: of every range its first and last slot, its master, and its replicas, each as
/// host, port, and more that is of no use here. `None`: it is something else.
pub(super) fn parse(value: &Value, asked: &Address) -> Option<Slots> {
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
        // A master whose address the node does not know cannot be asked: its slots stay nobody's.
        if let Some(master) = parse_node(master, asked) {
            slots.ranges.push(Range { first, last, master });
        }
        for replica in replicas.iter().filter_map(|replica| parse_node(replica, asked)) {
            if slots.replicas.len() < NODES_MAX && !slots.replicas.contains(&replica) {
                slots.replicas.push(replica);
            }
        }
    }
    Some(slots)
}

/// A host that is not known to the node itself is the one that was asked.
pub(super) fn parse_node(value: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(node) = value else { return None };
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => "",
        _ => return None,
    };
    Address::redirected(&format!("{host}:{port}"), asked)
}
