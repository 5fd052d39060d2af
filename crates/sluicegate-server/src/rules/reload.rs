//! Reloads changed rules while serving.
//!
//! The file's folder is watched rather than the file: editors write a new file and rename it, and
//! Kubernetes swaps a symbolic link beside it. The file is also polled, for folders that cannot be
//! watched (network file systems, links to elsewhere). If its text has changed, the rules are put
//! in force as a whole, or rejected as a whole and the last valid rules stay.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use sluicegate::RuleSet;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};
use tracing::{error, info, warn};

use super::snapshot::Keeper;
use super::source::{self, RulesError, RulesSource};

/// Changes come in bursts: a file is read after this long without a change,
const QUIET: Duration = Duration::from_millis(120);
/// or at the latest this long after the first.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(600);
/// Polling interval of the file.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Text of a file, or why it cannot be read.
type Found = Result<String, String>;

/// Keeps the rules in force up to date with their file.
pub(crate) struct Reloader {
    keeper: Keeper,
    source: RulesSource,
    /// Last contents. The same contents are not parsed twice.
    last: Found,
    hangup: Signal,
    changes: mpsc::Receiver<()>,
    /// Watches until dropped; `None` if the folder cannot be watched.
    _watcher: Option<RecommendedWatcher>,
}

impl Reloader {
    /// Watches for changes from here on. `text` is the source of the rules in force.
    pub(crate) fn new(keeper: Keeper, source: RulesSource, text: String) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        // One pending message stands for any number of changes.
        let (sender, changes) = mpsc::channel(1);
        let watcher = match &source {
            RulesSource::Starter | RulesSource::Database(_) => None,
            RulesSource::File(path) => watch_folder(path, sender),
        };
        Ok(Self { keeper, source, last: Ok(text), hangup, changes, _watcher: watcher })
    }

    /// Reloads whenever the source changes. Never returns.
    pub(crate) async fn run(mut self) {
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_requested = tokio::select! {
                _ = self.hangup.recv() => true,
                // Without a watcher the channel is closed, and this branch is disabled.
                Some(()) = self.changes.recv() => {
                    self.settle().await;
                    false
                }
                _ = look.tick() => false,
            };
            match self.source.clone() {
                RulesSource::Starter if is_requested => {
                    info!("the starter rules are in force: there is no file to reload");
                }
                RulesSource::Database(url) if is_requested => {
                    self.keeper.refresh().await;
                    info!(source = %url, "rules reloaded");
                }
                RulesSource::Starter | RulesSource::Database(_) => {}
                RulesSource::File(path) => self.reload(path, is_requested).await,
            }
        }
    }

    /// Waits until changes stop, up to a maximum.
    async fn settle(&mut self) {
        let latest = Instant::now() + QUIET_WAIT_MAX;
        let rest = async { while let Ok(Some(())) = timeout(QUIET, self.changes.recv()).await {} };
        let _ = timeout_at(latest, rest).await;
    }

    async fn reload(&mut self, path: PathBuf, is_requested: bool) {
        let seen = self.last.clone();
        // Reading and parsing would block other answers.
        let tiers_max = self.keeper.tiers_max();
        let look = move || look_at(&path, &seen, is_requested, tiers_max);
        let look = spawn_blocking(look).await;
        let Ok(Some((last, rules))) = look else { return };
        self.last = last;
        match rules {
            Ok(rules) => self.put_in_force(rules).await,
            Err(wrong) => self.refuse(&wrong),
        }
    }

    async fn put_in_force(&self, rules: RuleSet) {
        let count = rules.rules().len();
        let version = self.keeper.put_rules(rules).await;
        info!(source = %self.source, rules = count, version, "rules reloaded");
    }

    fn refuse(&self, wrong: &RulesError) {
        let version = self.keeper.limiter().rules().version();
        self.keeper.refuse_rules(&wrong.to_string());
        error!(
            source = %self.source,
            version,
            report = %wrong,
            "rules not reloaded: the last valid ones stay in force"
        );
    }
}

/// Reads the file, and parses it if its contents changed.
fn look_at(
    path: &Path,
    seen: &Found,
    is_requested: bool,
    tiers_max: usize,
) -> Option<(Found, Result<RuleSet, RulesError>)> {
    let read = source::read(path);
    let found = read.as_ref().map(String::clone).map_err(ToString::to_string);
    if found == *seen && !is_requested {
        return None;
    }
    let rules = read.and_then(|text| source::parse(path, &text, tiers_max));
    Some((found, rules))
}

/// Watches the folder of a file. If that fails, polling remains.
fn watch_folder(path: &Path, sender: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| may_be_a_change(event.kind)) {
            // A full channel means that a change is pending already.
            let _ = sender.try_send(());
        }
    })
    .and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher
        .inspect_err(|error| {
            let every_ms = LOOK_EVERY.as_millis() as u64;
            warn!(folder = %folder.display(), %error, every_ms, "cannot watch the folder: polling it instead");
        })
        .ok()
}

/// False for reads, or reading the file would cause another read.
fn may_be_a_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
