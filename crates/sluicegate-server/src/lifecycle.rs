//! Ending: who asks for it, and in which order things stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How far this process is with ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not at all.
    Serving,
    /// Not ready any more. Whoever asks is still answered, and told that the connection will close.
    Leaving,
    /// Nothing new is taken; what is in flight is answered, and quiet connections are closed.
    Draining,
}

/// Tells everybody about the phase.
#[derive(Debug)]
pub(crate) struct Phases {
    sender: watch::Sender<Phase>,
    is_leaving: Arc<AtomicBool>,
}

/// Hears about the phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseWatch {
    receiver: watch::Receiver<Phase>,
    /// The same for whoever asks very often: nobody writes it until the end.
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
    /// Whether connections are to close after their next answer.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Waits for the last phase. Without anybody to tell, it has come.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and called again.
    pub(crate) async fn draining(&mut self) {
        let _ = self.receiver.wait_for(|phase| *phase == Phase::Draining).await;
    }
}

/// The signals that ask this process to end.
#[derive(Debug)]
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndSignal {
    pub(crate) name: &'static str,
    /// What a shell reports of a process that this signal ended.
    pub(crate) exit_code: u8,
}

impl EndSignals {
    /// From here on these signals do not end the process by themselves.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next of them.
    ///
    /// # Cancel safety
    ///
    /// A signal is not lost: the next call returns it.
    pub(crate) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.terminate.recv() => EndSignal { name: "SIGTERM", exit_code: 128 + 15 },
            _ = self.interrupt.recv() => EndSignal { name: "SIGINT", exit_code: 128 + 2 },
        }
    }
}
