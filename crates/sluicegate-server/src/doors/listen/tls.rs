//! TLS of listeners, with certificates reloaded while serving.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use sluicegate::{TlsFiles, TlsFilesError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

use crate::observe::ready::{Check, Readiness};

/// ALPN name of HTTP/2.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
/// ALPN name of HTTP/1.
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Polling interval of the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// TLS configuration of listeners that have the same files. Clones share it.
#[derive(Clone)]
pub(crate) struct Tls {
    files: Arc<TlsFiles>,
    current: Arc<ArcSwap<ServerConfig>>,
    /// Stamps of the files just before they were first read.
    opened: Stamps,
}

/// Reloads TLS configurations when their files change.
pub(crate) struct Renewal {
    watched: Vec<Watched>,
    hangup: Signal,
    ready: Readiness,
}

/// A TLS configuration and its files.
struct Watched {
    tls: Tls,
    /// Stamps when the files were last read.
    read: Stamps,
    /// Stamps at the last poll.
    seen: Stamps,
    /// Error of the files that were last read, if they are invalid.
    wrong: Option<String>,
}

/// Identity and version of each file; `None` for one that does not exist.
type Stamps = [Option<Stamp>; 3];

/// Device, inode, size, and time of the last change.
type Stamp = (u64, u64, u64, i64, i64);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// The file that is invalid, and why.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsFilesError> {
        let opened = stamps(&files);
        let current = Arc::new(ArcSwap::from_pointee(read(&files)?));
        Ok(Self { files: Arc::new(files), current, opened })
    }

    /// Acceptor with the current configuration.
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
    /// Watches the files of these configurations from here on.
    ///
    /// # Errors
    ///
    /// The handler of SIGHUP cannot be installed.
    pub(crate) fn new(all: impl IntoIterator<Item = Tls>, ready: Readiness) -> io::Result<Self> {
        let watched = |tls: Tls| Watched { read: tls.opened, seen: tls.opened, wrong: None, tls };
        let watched = all.into_iter().map(watched).collect();
        Ok(Self { watched, hangup: signal(SignalKind::hangup())?, ready })
    }

    /// Reloads files whenever they change. Never returns.
    pub(crate) async fn run(mut self) {
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_requested = tokio::select! {
                _ = self.hangup.recv() => true,
                _ = look.tick() => false,
            };
            let mut is_renewed = false;
            for watched in &mut self.watched {
                is_renewed |= watched.look(is_requested).await;
            }
            if is_renewed {
                self.report();
            }
        }
    }

    /// Tells the readiness which certificates are invalid.
    fn report(&self) {
        let wrong: Vec<_> = self.watched.iter().filter_map(|it| it.wrong.as_deref()).collect();
        let note = format!(
            "the last valid certificate stays, because the new one is invalid: {}",
            wrong.join("; ")
        );
        self.ready.note(Check::Listeners, (!wrong.is_empty()).then_some(note));
        self.ready.trouble(Check::Listeners, !wrong.is_empty());
    }
}

impl Watched {
    /// Reads the files again if they have changed, or if it is requested. Returns whether they were read.
    async fn look(&mut self, is_requested: bool) -> bool {
        let files = Arc::clone(&self.tls.files);
        let Ok(found) = spawn_blocking(move || stamps(&files)).await else { return false };
        // Certificate and key are written one after the other: they are read when both have
        // stopped changing.
        let is_stable = found == self.seen;
        self.seen = found;
        if !is_requested && (!is_stable || found == self.read) {
            return false;
        }
        self.read = found;
        self.renew().await;
        true
    }

    async fn renew(&mut self) {
        let files = Arc::clone(&self.tls.files);
        let Ok(read) = spawn_blocking(move || read(&files)).await else { return };
        let certificate = self.tls.files.certificate.as_deref().unwrap_or(Path::new("")).display();
        self.wrong = match read {
            Ok(config) => {
                self.tls.current.store(Arc::new(config));
                info!(%certificate, "certificate reloaded");
                None
            }
            Err(wrong) => {
                error!(%certificate, report = %wrong, "certificate not renewed: the last valid one stays");
                Some(wrong.to_string())
            }
        };
    }
}

/// Certificate that a client presented and that was verified, if there is one.
pub(super) fn client_certificate(session: &ServerConnection) -> Option<&CertificateDer<'static>> {
    session.peer_certificates()?.first()
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
