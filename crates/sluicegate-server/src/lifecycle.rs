//! Phases of the process: serving, leaving, draining.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use std::time::Duration;

use tokio::sync::watch;

/// While draining, idle time after which a connection is closed: what is on its way through this machine arrives in
/// less.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

/// Phase of this process, on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Requests are served.
    Serving,
    /// No longer ready. Requests are answered, with notice that the connection will close.
    Leaving,
    /// No new connections. Requests in flight are answered, and idle connections are closed.
    Draining,
}

/// Sender of the phase.
#[derive(Debug)]
pub(crate) struct Phases {
    sender: watch::Sender<Phase>,
    is_leaving: Arc<AtomicBool>,
}

/// Receiver of the phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseWatch {
    receiver: watch::Receiver<Phase>,
    /// Copy for hot paths, written once at the end.
    is_leaving: Arc<AtomicBool>,
}

impl Phases {
    pub(crate) fn new() -> Self {
        Self { sender: watch::Sender::new(Phase::Serving), is_leaving: Arc::default() }
    }

    pub(crate) fn watch(&self) -> PhaseWatch {
        let is_leaving = Arc::clone(&self.is_leaving);
        PhaseWatch { receiver: self.sender.subscribe(), is_leaving }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.is_leaving.store(phase >= Phase::Leaving, Relaxed);
        self.sender.send_replace(phase);
    }
}

impl PhaseWatch {
    /// True if connections must close after their next answer.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Waits for the last phase; returns at once if the sender is gone.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it can be called again.
    pub(crate) async fn draining(&mut self) {
        let _ = self.receiver.wait_for(|phase| *phase == Phase::Draining).await;
    }
}
