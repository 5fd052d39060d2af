//! Connecting: finds the server, checks that it can be used, and loads the script.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::timeout;

use super::task::as_lost;
use super::{STALL_AFTER, Target};
use crate::store::redis::builder::fitness;
use crate::store::redis::classify::{CallError, classify};
use crate::store::redis::connect::{Connected, Role, connect};
use crate::store::redis::script::Script;
use crate::store::redis::sentinel::{connect_as_master, connect_master, find_successor};
use crate::store::redis::settings::Settings;
use crate::store::redis::trouble::{Trouble, TroubleKind};
use crate::store::redis::url::Address;

/// A connection ready for use: the server was checked, and the script is loaded.
pub(super) struct ReadyConnection {
    pub(super) connected: Connected,
    pub(super) script: Script,
    pub(super) address: Address,
    /// Warnings about the server, for operators.
    pub(super) warnings: Vec<String>,
}

/// One attempt to connect, after a delay.
pub(super) async fn attempt(
    delay: Duration,
    target: Target,
    settings: Arc<Settings>,
) -> Result<ReadyConnection, Trouble> {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let is_member = target.by_slot();
    let (address, connected) = match target {
        Target::Node(address) => {
            let connected = connect(&settings, &address).await?;
            if connected.server.role == Role::Replica {
                let text = format!("{address} is a replica");
                return Err(Trouble::new(TroubleKind::ReadOnly, text));
            }
            (address, connected)
        }
        // A replica of a cluster redirects every call to its master.
        Target::Member(address) => {
            let connected = connect(&settings, &address).await?;
            (address, connected)
        }
        Target::Master { sentinels, name } => connect_master(&settings, &sentinels, &name).await?,
    };
    prepare(connected, address, is_member, &settings).await
}

/// A connection to another master than the current one (its address and run id), if sentinels name one.
/// `None` also for the same process under another address.
pub(super) async fn successor(
    settings: &Settings,
    sentinels: &[Address],
    name: &str,
    (current, run_id): &(Address, String),
) -> Result<Option<ReadyConnection>, Trouble> {
    let Some(address) = find_successor(settings, sentinels, name, current).await else {
        return Ok(None);
    };
    let connected = connect_as_master(settings, &address, name).await?;
    if connected.server.run_id == *run_id && !run_id.is_empty() {
        return Ok(None);
    }
    prepare(connected, address, false, settings).await.map(Some)
}

/// Checks the server and loads the script.
pub(super) async fn prepare(
    mut connected: Connected,
    address: Address,
    is_member: bool,
    settings: &Settings,
) -> Result<ReadyConnection, Trouble> {
    let warnings = fitness(&connected.server, is_member, settings.on_eviction)
        .map_err(|error| Trouble::new(TroubleKind::Unexpected, format!("{address}: {error}")))?;
    let script = Script::new(connected.server.version.major.into(), settings.clock.clone());
    let load = script.load();
    match timeout(STALL_AFTER, connected.connection.send_packed_command(&load)).await {
        Ok(Ok(Value::ServerError(error))) => match classify(&error.into()) {
            // Busy, loading, no permission: the script calls would fail in the same way.
            CallError::Trouble(trouble) => Err(trouble),
            _ => Err(Trouble::new(TroubleKind::Unexpected, "the script cannot be loaded")),
        },
        Ok(Ok(_)) => Ok(ReadyConnection { connected, script, address, warnings }),
        Ok(Err(error)) => Err(as_lost(classify(&error))),
        Err(_) => Err(Trouble::new(TroubleKind::Connection, "the script was not loaded in time")),
    }
}
