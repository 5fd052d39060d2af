//! Asking sentinels which server is the master.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::timeout;

use super::connect::{Connected, Role, Wire, connect, open, within};
use super::settings::{SENTINEL_TIMEOUT, SENTINELS_TIMEOUT, Settings};
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// Where the next search begins. Shared by all stores: it only has to differ from search to search, so
/// that one sentinel that is behind the others, or silent, is not asked first every time.
static START: AtomicUsize = AtomicUsize::new(0);

/// Finds the master of this name, connects to it, and makes sure that it takes itself for one.
///
/// # Errors
///
/// Those of [`find_master`] and [`connect`], and `ReadOnly` if the server is a replica: a failover is on
/// its way, or the sentinel is behind. Trying again asks another sentinel first.
pub(super) async fn connect_master(
    settings: &Settings,
    sentinels: &[Address],
    master: &str,
) -> Result<(Address, Connected), Trouble> {
    let address = find_master(settings, sentinels, master).await?;
    let connected = connect(settings, &address).await?;
    match connected.server.role {
        Role::Master => Ok((address, connected)),
        Role::Replica => Err(Trouble::new(
            TroubleKind::ReadOnly,
            format!("{address} is not a master (yet), though a sentinel names it for {master:?}"),
        )),
    }
}

/// Asks the sentinels in turn where the master of this name is, until one knows.
///
/// # Time
///
/// At most [`SENTINEL_TIMEOUT`] for each of them, and [`SENTINELS_TIMEOUT`] for all.
///
/// # Cancel safety
///
/// Dropping the future closes the connection of the moment.
///
/// # Errors
///
/// If none of them knows, the most telling reason: that an answering one has no such master, before wrong
/// credentials, before a connection that failed.
pub(super) async fn find_master(
    settings: &Settings,
    sentinels: &[Address],
    master: &str,
) -> Result<Address, Trouble> {
    let start = START.fetch_add(1, Ordering::Relaxed) % sentinels.len().max(1);
    let (later, first) = sentinels.split_at(start);
    let mut worst = Trouble::new(TroubleKind::Connection, "no sentinel answered in time");
    let search = async {
        for sentinel in first.iter().chain(later) {
            match within(SENTINEL_TIMEOUT, sentinel, master_of(settings, sentinel, master)).await {
                Ok(address) => return Some(address),
                Err(trouble) if weight(&trouble) >= weight(&worst) => worst = trouble,
                Err(_) => {}
            }
        }
        None
    };
    match timeout(SENTINELS_TIMEOUT, search).await {
        Ok(Some(address)) => Ok(address),
        Ok(None) | Err(_) => Err(worst),
    }
}

/// How much a reason says about what is to be done.
fn weight(trouble: &Trouble) -> u8 {
    match trouble.kind() {
        TroubleKind::Connection | TroubleKind::Loading => 0,
        TroubleKind::Auth | TroubleKind::Tls => 1,
        _ => 2,
    }
}

async fn master_of(
    settings: &Settings,
    sentinel: &Address,
    master: &str,
) -> Result<Address, Trouble> {
    let credentials = settings.url.sentinel_credentials();
    let mut question = redis::cmd("SENTINEL");
    question.arg("get-master-addr-by-name").arg(master);
    let (_, answer): (Wire, Option<(String, String)>) =
        open(settings, sentinel, &credentials, 0, &question).await?;
    let Some((host, port)) = answer else {
        let text = format!("the sentinel knows no master named {master:?}");
        return Err(Trouble::new(TroubleKind::Unexpected, text));
    };
    Address::redirected(&format!("{host}:{port}"), sentinel).ok_or_else(|| {
        Trouble::new(TroubleKind::Unexpected, "the sentinel's address of the master is none")
    })
}
