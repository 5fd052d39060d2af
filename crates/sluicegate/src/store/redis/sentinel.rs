//! Finding the master through sentinels.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::timeout;

use super::connect::{Connected, Role, Wire, connect, open, within};
use super::settings::{SENTINEL_TIMEOUT, SENTINELS_TIMEOUT, Settings};
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// Index at which the next search begins. Shared by all stores: it only has to differ from search to search,
/// so that a sentinel that is outdated or silent is not asked first every time.
static START: AtomicUsize = AtomicUsize::new(0);

/// Finds the master of this name, connects to it, and checks that its role is master.
///
/// # Errors
///
/// Those of [`find_master`] and [`connect`], and `ReadOnly` if the server is a replica: a failover is in
/// progress, or the sentinel is outdated. A retry asks another sentinel first.
pub(super) async fn connect_master(
    settings: &Settings,
    sentinels: &[Address],
    master: &str,
) -> Result<(Address, Connected), Trouble> {
    let address = find_master(settings, sentinels, master).await?;
    let connected = connect_as_master(settings, &address, master).await?;
    Ok((address, connected))
}

/// Connects to a server that sentinels name as the master.
///
/// # Errors
///
/// As [`connect_master`].
pub(super) async fn connect_as_master(
    settings: &Settings,
    address: &Address,
    master: &str,
) -> Result<Connected, Trouble> {
    let connected = connect(settings, address).await?;
    match connected.server.role {
        Role::Master => Ok(connected),
        Role::Replica => Err(Trouble::new(
            TroubleKind::ReadOnly,
            format!("{address} is not a master (yet), though a sentinel names it for {master:?}"),
        )),
    }
}

/// Asks the sentinels in turn for the master of this name, until one knows it.
///
/// # Time
///
/// At most [`SENTINEL_TIMEOUT`] for each of them, and [`SENTINELS_TIMEOUT`] for all.
///
/// # Cancel safety
///
/// Dropping the future closes the current connection.
///
/// # Errors
///
/// If none of them knows it, the most specific error: that a sentinel has no such master, before wrong
/// credentials, before a failed connection.
pub(super) async fn find_master(
    settings: &Settings,
    sentinels: &[Address],
    master: &str,
) -> Result<Address, Trouble> {
    let mut worst = Trouble::new(TroubleKind::Connection, "no sentinel replied in time");
    let search = async {
        for sentinel in in_turn(sentinels) {
            match master_of(settings, sentinel, master).await {
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

/// Rank of an error by how specific it is.
fn weight(trouble: &Trouble) -> u8 {
    match trouble.kind() {
        TroubleKind::Connection | TroubleKind::Loading => 0,
        TroubleKind::Auth | TroubleKind::Tls => 1,
        _ => 2,
    }
}

/// Votes of sentinels for or against the connected master.
#[derive(Debug, Default)]
struct Votes {
    /// Another master, and the number of its votes.
    other: Option<(Address, usize)>,
    /// Votes for the connected one, or a third one.
    against: usize,
}

impl Votes {
    /// Counts the vote of a sentinel. True if the poll is over: the first reply that nothing has changed is
    /// enough.
    fn count(&mut self, named: Address, current: &Address) -> bool {
        match &mut self.other {
            None if named == *current => return true,
            None => self.other = Some((named, 1)),
            Some((other, votes)) if *other == named => *votes += 1,
            Some(_) => self.against += 1,
        }
        false
    }

    /// The other master, if it has a majority.
    fn winner(self) -> Option<Address> {
        self.other.filter(|(_, votes)| *votes > self.against).map(|(address, _)| address)
    }
}

/// Asks whether another server than `current` is the master of this name. One sentinel is enough for no; for
/// yes, a majority of those that reply in time is needed: one may be outdated, or partitioned from the
/// others.
///
/// # Time, cancel safety
///
/// Those of [`find_master`].
pub(super) async fn find_successor(
    settings: &Settings,
    sentinels: &[Address],
    master: &str,
    current: &Address,
) -> Option<Address> {
    let mut votes = Votes::default();
    let poll = async {
        for sentinel in in_turn(sentinels) {
            if let Ok(named) = master_of(settings, sentinel, master).await
                && votes.count(named, current)
            {
                break;
            }
        }
    };
    // Sentinels that do not reply have no vote.
    let _ = timeout(SENTINELS_TIMEOUT, poll).await;
    votes.winner()
}

/// The sentinels, beginning with another one each time.
fn in_turn(sentinels: &[Address]) -> impl Iterator<Item = &Address> {
    let start = START.fetch_add(1, Ordering::Relaxed) % sentinels.len().max(1);
    let (later, first) = sentinels.split_at(start);
    first.iter().chain(later)
}

/// Asks one sentinel.
async fn master_of(
    settings: &Settings,
    sentinel: &Address,
    master: &str,
) -> Result<Address, Trouble> {
    within(SENTINEL_TIMEOUT, sentinel, ask_master(settings, sentinel, master)).await
}

async fn ask_master(
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
        let text = format!("the sentinel has no master named {master:?}");
        return Err(Trouble::new(TroubleKind::Unexpected, text));
    };
    Address::redirected(&format!("{host}:{port}"), sentinel).ok_or_else(|| {
        Trouble::new(TroubleKind::Unexpected, "the sentinel's address of the master is invalid")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address::Tcp { host: "h".into(), port }
    }

    /// The replacement of the connection to 1 under these votes, and the number of sentinels asked.
    fn poll(ports: &[u16]) -> (Option<Address>, usize) {
        let (mut votes, mut replies) = (Votes::default(), 0);
        for port in ports {
            replies += 1;
            if votes.count(address(*port), &address(1)) {
                break;
            }
        }
        (votes.winner(), replies)
    }

    #[test]
    fn one_sentinel_is_believed_that_nothing_has_changed() {
        assert_eq!(poll(&[1, 2, 2]), (None, 1));
        assert_eq!(poll(&[]), (None, 0));
    }

    #[test]
    fn most_sentinels_must_name_another_master() {
        assert_eq!(poll(&[2, 1, 1]), (None, 3), "one is behind");
        assert_eq!(poll(&[2, 2, 1]), (Some(address(2)), 3));
        assert_eq!(poll(&[2, 1]), (None, 2));
        assert_eq!(poll(&[2, 3, 3]), (None, 3), "they do not agree");
        assert_eq!(poll(&[2, 2, 1, 1, 1]), (None, 5));
        assert_eq!(poll(&[2]), (Some(address(2)), 1), "there is no other to ask");
    }

    #[test]
    fn each_search_begins_with_another_sentinel() {
        let sentinels: Vec<_> = (0..5).map(address).collect();
        // Other tests search concurrently, so only the sum is known: each is asked once, in order.
        let order: Vec<_> = in_turn(&sentinels).collect();
        let start = sentinels.iter().position(|one| one == order[0]).unwrap();
        let expected: Vec<_> = (0..5).map(|i| &sentinels[(start + i) % 5]).collect();
        assert_eq!(order, expected);
        assert_eq!(in_turn(&[]).count(), 0);
    }
}
