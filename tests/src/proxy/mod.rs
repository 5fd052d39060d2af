//! A TCP proxy that injects faults, and counts them.
//!
//! ```no_run
//! use std::time::Duration;
//! use sluicegate_tests::proxy::{Direction, FaultProxy, Faults};
//!
//! let proxy = FaultProxy::start(6379);
//! // A client connects to proxy.port() ...
//! proxy.set(Direction::Down, Faults { latency: Duration::from_millis(50), ..Faults::NONE });
//! // ... sends a request, and then:
//! assert!(proxy.counts().down.delayed_bytes > 0, "the fault never acted");
//! proxy.heal();
//! ```
//!
//! It runs on a thread of its own, so that tests with and without a runtime can use it. Its buffers
//! are bounded: a mebibyte for each direction of a connection, and then it stops reading.

mod connection;
mod counts;
mod faults;
mod lane;
mod listener;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::seed::Seed;
use crate::wait;
use counts::Counters;
pub use counts::{ConnectionCounts, Counts, LaneCounts};
pub use faults::{Direction, Faults};

/// A proxy on a port of its own. Its connections break on drop.
///
/// All methods may be called from several threads concurrently, and take effect at once on open connections.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
    task: AbortHandle,
    resetter: Mutex<Option<AbortHandle>>,
}

/// State shared by the proxy's handle and its connections.
#[derive(Debug)]
pub(crate) struct Shared {
    target: Mutex<SocketAddr>,
    up: Switches,
    down: Switches,
    /// Incremented to reset all connections.
    resets: watch::Sender<u64>,
    /// Requested and actual state of refusing new connections.
    refuse: watch::Sender<bool>,
    refusing: watch::Sender<bool>,
    reset_new: AtomicBool,
    random: Mutex<Seed>,
    counters: Counters,
}

/// Switches of one direction.
#[derive(Debug)]
struct Switches {
    faults: watch::Sender<Faults>,
    /// Incremented to close this direction.
    half_closes: watch::Sender<u64>,
}

impl FaultProxy {
    /// A proxy to `target` on 127.0.0.1, without faults.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn start(target: u16) -> Self {
        Self::seeded(target, &Seed::new(0))
    }

    /// The same, whose jitter and slices are drawn from `seed`.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn seeded(target: u16, seed: &Seed) -> Self {
        let shared = Arc::new(Shared::new(target, seed.clone()));
        let (port, listener) = listener::bind_free();
        let task =
            runtime().spawn(listener::run(port, listener, Arc::clone(&shared))).abort_handle();
        Self { port, shared, task, resetter: Mutex::new(None) }
    }

    /// Port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// URL, `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends new connections to another port. Open ones stay.
    pub fn retarget(&self, target: u16) {
        *self.shared.target.lock() = loopback(target);
    }

    /// Replaces the faults of one direction.
    pub fn set(&self, direction: Direction, faults: Faults) {
        self.shared.switches(direction).faults.send_replace(faults);
    }

    /// Replaces the faults of both directions.
    pub fn set_both(&self, faults: Faults) {
        self.set(Direction::Up, faults);
        self.set(Direction::Down, faults);
    }

    /// Ends all faults and resets, and accepts new connections.
    ///
    /// Connections that lost bytes in a black hole are reset: TCP never loses some and continues.
    pub fn heal(&self) {
        self.set_both(Faults::NONE);
        self.reset_every(None);
        self.reset_new(false);
        self.refuse(false);
    }

    /// Resets all open connections, with a RST to both ends, and waits until that is done.
    ///
    /// # Panics
    ///
    /// After five seconds.
    pub fn reset_all(&self) {
        let accepted = self.counts().connections.accepted;
        self.shared.resets.send_modify(|epoch| *epoch += 1);
        // New connections need not be waited for.
        wait::until("connections to be reset", Duration::from_secs(5), || {
            self.shared.counters.ended_among_first(accepted)
        });
    }

    /// Resets all open connections once per interval; never, with `None`.
    pub fn reset_every(&self, interval: Option<Duration>) {
        let task = interval.map(|interval| {
            let shared = Arc::clone(&self.shared);
            let forever = async move {
                loop {
                    tokio::time::sleep(interval).await;
                    shared.resets.send_modify(|epoch| *epoch += 1);
                }
            };
            runtime().spawn(forever).abort_handle()
        });
        if let Some(former) = std::mem::replace(&mut *self.resetter.lock(), task) {
            former.abort();
        }
    }

    /// Closes one direction of all open connections: the receiver sees the end of the stream, further bytes
    /// of the sender are lost, and the other direction stays open.
    pub fn half_close(&self, direction: Direction) {
        self.shared.switches(direction).half_closes.send_modify(|epoch| *epoch += 1);
    }

    /// Refuses new connections, as a port without a listener does; or accepts them again. Returns when that
    /// is in effect. Open connections stay.
    ///
    /// The kernel refuses them, so they are not counted here: the client sees the error.
    ///
    /// # Panics
    ///
    /// If another process took the port meanwhile.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refuse.send_replace(refuse);
        let done = || *self.shared.refusing.borrow() == refuse;
        wait::until("the listener to follow", Duration::from_secs(5), done);
    }

    /// Accepts new connections and resets them at once; or stops doing so.
    pub fn reset_new(&self, reset: bool) {
        self.shared.reset_new.store(reset, Ordering::SeqCst);
    }

    /// Counters since the start.
    pub fn counts(&self) -> Counts {
        self.shared.counters.read()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.reset_every(None);
        self.task.abort();
    }
}

// ===== impl Shared =====

impl Shared {
    fn new(target: u16, seed: Seed) -> Self {
        Self {
            target: Mutex::new(loopback(target)),
            up: Switches::new(),
            down: Switches::new(),
            resets: watch::Sender::new(0),
            refuse: watch::Sender::new(false),
            refusing: watch::Sender::new(false),
            reset_new: AtomicBool::new(false),
            random: Mutex::new(seed),
            counters: Counters::default(),
        }
    }

    const fn switches(&self, direction: Direction) -> &Switches {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

impl Switches {
    fn new() -> Self {
        Self { faults: watch::Sender::new(Faults::NONE), half_closes: watch::Sender::new(0) }
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// One thread for all proxies of this process.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fault-proxy")
            .enable_all()
            .build()
            .expect("a runtime")
    })
}
