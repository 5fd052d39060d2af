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
    let connected = connect_as_master(settings, &address, master).await?;
    Ok((address, connected))
}

/// Connects to a server that sentinels name for a master.
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
    let mut worst = Trouble::new(TroubleKind::Connection, "no sentinel answered in time");
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

/// How much a reason says about what is to be done.
fn weight(trouble: &Trouble) -> u8 {
    match trouble.kind() {
        TroubleKind::Connection | TroubleKind::Loading => 0,
        TroubleKind::Auth | TroubleKind::Tls => 1,
        _ => 2,
    }
}

/// What sentinels say against the master that is connected.
#[derive(Debug, Default)]
struct Votes {
    /// Another master, and how many name it.
    other: Option<(Address, usize)>,
    /// How many name the connected one, or yet another.
    against: usize,
}

impl Votes {
    /// Counts what a sentinel said. Whether that is all there is to know: the first one to answer is
    /// believed that nothing has changed.
    fn count(&mut self, named: Address, current: &Address) -> bool {
        match &mut self.other {
            None if named == *current => return true,
            None => self.other = Some((named, 1)),
            Some((other, votes)) if *other == named => *votes += 1,
            Some(_) => self.against += 1,
        }
        false
    }

    /// Whom more of them name than not.
    fn winner(self) -> Option<Address> {
        self.other.filter(|(_, votes)| *votes > self.against).map(|(address, _)| address)
    }
}

/// Asks whether the master of this name is another one than `current`. One sentinel is enough for no; for yes,
/// most of those must say so who answer in time: one may be behind the others, or cut off from them.
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
    // Those who are silent have no say.
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
        let text = format!("the sentinel knows no master named {master:?}");
        return Err(Trouble::new(TroubleKind::Unexpected, text));
    };
    Address::redirected(&format!("{host}:{port}"), sentinel).ok_or_else(|| {
        Trouble::new(TroubleKind::Unexpected, "the sentinel's address of the master is none")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address::Tcp { host: "h".into(), port }
    }

    /// Whom sentinels that say this have the connection to 1 replaced by, and how many are asked.
    fn poll(said: &[u16]) -> (Option<Address>, usize) {
        let (mut votes, mut asked) = (Votes::default(), 0);
        for port in said {
            asked += 1;
            if votes.count(address(*port), &address(1)) {
                break;
            }
        }
        (votes.winner(), asked)
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
        // Others search meanwhile, so that only the sum is known: each is asked once, in order.
        let order: Vec<_> = in_turn(&sentinels).collect();
        let start = sentinels.iter().position(|one| one == order[0]).unwrap();
        let expected: Vec<_> = (0..5).map(|i| &sentinels[(start + i) % 5]).collect();
        assert_eq!(order, expected);
        assert_eq!(in_turn(&[]).count(), 0);
    }
}
