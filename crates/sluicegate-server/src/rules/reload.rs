//! Putting changed rules in force while requests are served.
//!
//! The file's folder is watched rather than the file: editors write a new file and rename it, and
//! Kubernetes swaps a symbolic link beside it. The file is also looked at every now and then, for
//! folders that cannot be watched (networks, links to elsewhere). What counts is its text: if that has
//! changed, it is put in force whole, or refused whole and the last good rules stay.

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

/// Changes come in bursts: a file is looked at when it has been quiet for so long,
const QUIET: Duration = Duration::from_millis(120);
/// or at the latest so long after the first of them.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(600);
/// How often the file is looked at though nothing was heard.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is in a file: its text, or why there is none.
type Found = Result<String, String>;

/// Keeps the rules in force up to date with their source.
pub(crate) struct Reloader {
    keeper: Keeper,
    source: RulesSource,
    /// What was found last. It is not looked at twice.
    last: Found,
    hangup: Signal,
    changes: mpsc::Receiver<()>,
    /// Watches as long as it is kept; none where nothing can be watched.
    _watcher: Option<RecommendedWatcher>,
}

impl Reloader {
    /// Listens for changes from here on. `text` is what the rules in force were made of.
    pub(crate) fn new(keeper: Keeper, source: RulesSource, text: String) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        // One pending change stands for any number of them.
        let (sender, changes) = mpsc::channel(1);
        let watcher = match &source {
            RulesSource::Starter | RulesSource::Database(_) => None,
            RulesSource::File(path) => watch_folder(path, sender),
        };
        Ok(Self { keeper, source, last: Ok(text), hangup, changes, _watcher: watcher })
    }

    /// Reloads whenever there is something to reload. Ends never.
    pub(crate) async fn run(mut self) {
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked_for = tokio::select! {
                _ = self.hangup.recv() => true,
                // Without a watcher nobody sends, and this branch is off.
                Some(()) = self.changes.recv() => {
                    self.settle().await;
                    false
                }
                _ = look.tick() => false,
            };
            match self.source.clone() {
                RulesSource::Starter if is_asked_for => {
                    info!("the starter rules are in force: there is no file to reload");
                }
                RulesSource::Database(url) if is_asked_for => {
                    self.keeper.refresh().await;
                    info!(source = %url, "rules loaded again");
                }
                RulesSource::Starter | RulesSource::Database(_) => {}
                RulesSource::File(path) => self.reload(path, is_asked_for).await,
            }
        }
    }

    /// Waits until changes have come to rest, but not for ever.
    async fn settle(&mut self) {
        let latest = Instant::now() + QUIET_WAIT_MAX;
        let rest = async { while let Ok(Some(())) = timeout(QUIET, self.changes.recv()).await {} };
        let _ = timeout_at(latest, rest).await;
    }

    async fn reload(&mut self, path: PathBuf, is_asked_for: bool) {
        let seen = self.last.clone();
        // Reading and parsing may take a while, and others want to be answered meanwhile.
        let look = spawn_blocking(move || look_at(&path, &seen, is_asked_for)).await;
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
            "rules not reloaded: the last good ones stay"
        );
    }
}

/// Reads the file, and parses it if it is not what was seen last.
fn look_at(
    path: &Path,
    seen: &Found,
    is_asked_for: bool,
) -> Option<(Found, Result<RuleSet, RulesError>)> {
    let read = source::read(path);
    let found = read.as_ref().map(String::clone).map_err(ToString::to_string);
    if found == *seen && !is_asked_for {
        return None;
    }
    let rules = read.and_then(|text| source::parse(path, &text));
    Some((found, rules))
}

/// Watches the folder of a file. Where that fails, looking now and then must do.
fn watch_folder(path: &Path, sender: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| may_be_a_change(event.kind)) {
            // Full means that a change is pending already.
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
            warn!(folder = %folder.display(), %error, every_ms, "folder not watched: looking at it instead");
        })
        .ok()
}

/// Reading a file is none, or looking at it would be a reason to look again.
fn may_be_a_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
