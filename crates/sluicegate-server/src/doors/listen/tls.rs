//! TLS for listeners, with certificates that are renewed while they serve.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use sluicegate::{TlsFiles, TlsFilesError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

use crate::observe::ready::{Check, Readiness};

/// What a client that speaks HTTP/2 asks for.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
/// And one that speaks HTTP/1.
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What listeners show to whoever connects, and ask of them. Clones are the same.
#[derive(Clone)]
pub(crate) struct Tls {
    current: Arc<ArcSwap<ServerConfig>>,
    /// The files as they were just before they were first read.
    opened: Stamps,
}

/// Keeps what listeners show up to date with its files.
pub(crate) struct Renewal {
    tls: Tls,
    files: TlsFiles,
    /// The files as they were when they were last read.
    read: Stamps,
    /// As they were when they were last looked at.
    seen: Stamps,
    hangup: Signal,
    ready: Readiness,
}

/// What tells that a file is another one, or has been written: none for one that is not there.
type Stamps = [Option<Stamp>; 3];

/// Its device, number, size, and the time of its last change.
type Stamp = (u64, u64, u64, i64, i64);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with which of them.
    pub(crate) fn open(files: &TlsFiles) -> Result<Self, TlsFilesError> {
        let opened = stamps(files);
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(read(files)?)), opened })
    }

    /// What makes a connection one over TLS.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.load_full().into()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Renewal {
    /// Looks for other files from here on.
    ///
    /// # Errors
    ///
    /// If the signal that asks for them cannot be caught.
    pub(crate) fn new(tls: Tls, files: TlsFiles, ready: Readiness) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        let (read, seen) = (tls.opened, tls.opened);
        Ok(Self { tls, files, read, seen, hangup, ready })
    }

    /// Puts new files in force whenever there are some. Ends never.
    pub(crate) async fn run(mut self) {
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked_for = tokio::select! {
                _ = self.hangup.recv() => true,
                _ = look.tick() => false,
            };
            let files = self.files.clone();
            let Ok(found) = spawn_blocking(move || stamps(&files)).await else { continue };
            // A certificate is written before its key, or after: they are read when both have come to rest.
            let is_at_rest = found == self.seen;
            self.seen = found;
            if is_asked_for || (is_at_rest && found != self.read) {
                self.read = found;
                self.renew().await;
            }
        }
    }

    async fn renew(&self) {
        let files = self.files.clone();
        let Ok(read) = spawn_blocking(move || read(&files)).await else { return };
        match read {
            Ok(config) => {
                self.tls.current.store(Arc::new(config));
                self.ready.note(Check::Listeners, None);
                self.ready.trouble(Check::Listeners, false);
                info!("certificate read again");
            }
            Err(wrong) => {
                let note =
                    format!("the last good certificate stays, for the new one is wrong: {wrong}");
                self.ready.note(Check::Listeners, Some(note));
                self.ready.trouble(Check::Listeners, true);
                error!(report = %wrong, "certificate not renewed: the last good one stays");
            }
        }
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsFilesError> {
    let mut config = files.server_config()?;
    config.alpn_protocols = vec![ALPN_HTTP2.into(), ALPN_HTTP1.into()];
    Ok(config)
}

fn stamps(files: &TlsFiles) -> Stamps {
    let stamp = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
    };
    [&files.certificate, &files.key, &files.ca].map(|path| path.as_deref().and_then(stamp))
}
