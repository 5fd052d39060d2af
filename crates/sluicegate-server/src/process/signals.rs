//! Signals that end the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask this process to end.
#[derive(Debug)]
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndSignal {
    pub(crate) name: &'static str,
    /// Exit code that a shell reports of a process ended by this signal.
    pub(crate) exit_code: u8,
}

impl EndSignals {
    /// Installs the handlers: from here on these signals do not end the process by themselves.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
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
