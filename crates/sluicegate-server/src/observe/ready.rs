//! Readiness: named checks behind `/readyz` and the gRPC health service.

use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// A named condition of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// All listeners accept connections.
    Listeners,
    /// Rules are loaded.
    Rules,
    /// The store answers. Never fails: while the store is down its policies answer, and sending
    /// requests to another replica would not help.
    Store,
    /// Rules can be changed and violations recorded. Never fails: checks work without the database.
    Database,
    /// The process is not shutting down.
    Shutdown,
}

const CHECKS: [(Check, &str); 5] = [
    (Check::Listeners, "listeners"),
    (Check::Rules, "rules"),
    (Check::Store, "store"),
    (Check::Database, "database"),
    (Check::Shutdown, "shutdown"),
];

/// Named checks that must all pass. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    states: Arc<Mutex<[State; CHECKS.len()]>>,
    standing: watch::Sender<Standing>,
}

/// Overall state of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All pass.
    Ready,
    /// At least one check fails.
    NotReady,
    /// The process is shutting down.
    Leaving,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Reason of the failure; `None` if the check passes.
    failing: Option<String>,
    /// The check passes because requests are answered, but degraded.
    is_in_trouble: bool,
    /// Details shown to the administration, whether it passes or not.
    note: Option<String>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// State of a process that is starting: not ready.
    #[must_use]
    pub(crate) fn new() -> Self {
        let starting = || State { failing: Some("starting".into()), ..State::default() };
        let passing = State::default;
        let states = [starting(), starting(), passing(), passing(), passing()];
        Self {
            states: Arc::new(Mutex::new(states)),
            standing: watch::Sender::new(Standing::NotReady),
        }
    }

    /// Marks the check as passing.
    pub(crate) fn pass(&self, check: Check) {
        self.set(check, None);
    }

    /// Marks the check as failing.
    pub(crate) fn fail(&self, check: Check, reason: impl Into<String>) {
        self.set(check, Some(reason.into()));
    }

    fn set(&self, check: Check, failing: Option<String>) {
        let mut states = self.states.lock();
        states[check as usize].failing = failing;
        let standing = if states[Check::Shutdown as usize].failing.is_some() {
            Standing::Leaving
        } else if states.iter().all(|state| state.failing.is_none()) {
            Standing::Ready
        } else {
            Standing::NotReady
        };
        // Under the lock, so that receivers see changes in order.
        self.standing.send_if_modified(|before| std::mem::replace(before, standing) != standing);
    }

    /// Subscribes to the overall state.
    pub(crate) fn watch(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Marks the check as degraded or not. Does not affect readiness.
    pub(crate) fn trouble(&self, check: Check, is_in_trouble: bool) {
        self.states.lock()[check as usize].is_in_trouble = is_in_trouble;
    }

    /// Sets the details of a check, whether it passes or not.
    pub(crate) fn note(&self, check: Check, note: Option<String>) {
        self.states.lock()[check as usize].note = note;
    }

    /// Returns whether all checks pass.
    #[must_use]
    pub(crate) fn is_ready(&self) -> bool {
        self.states.lock().iter().all(|state| state.failing.is_none())
    }

    /// Describes every check on its own line, in the format of Kubernetes, with `[~]` for degraded
    /// ones. `with_notes` adds details, which name hosts and quote files.
    #[must_use]
    pub(crate) fn describe(&self, with_notes: bool) -> String {
        let states = self.states.lock().clone();
        let mut text = String::new();
        for ((_, name), state) in CHECKS.iter().zip(&states) {
            // Writing to a string cannot fail.
            let _ = match &state.failing {
                None if state.is_in_trouble => {
                    writeln!(text, "[~]{name} degraded (does not affect readiness)")
                }
                None => writeln!(text, "[+]{name} ok"),
                Some(reason) => writeln!(text, "[-]{name} failed: {reason}"),
            };
            let note = state.note.iter().filter(|_| with_notes);
            for line in note.flat_map(|note| note.lines()) {
                let _ = writeln!(text, "    {line}");
            }
        }
        let is_ready = states.iter().all(|state| state.failing.is_none());
        text.push_str(if is_ready { "ready\n" } else { "not ready\n" });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_checks_must_pass_and_notes_do_not_count() {
        let ready = Readiness::new();
        let mut standing = ready.watch();
        assert!(!ready.is_ready());
        ready.pass(Check::Listeners);
        assert!(!standing.has_changed().unwrap());
        assert!(!ready.is_ready());
        ready.pass(Check::Rules);
        assert!(ready.is_ready());
        assert_eq!(*standing.borrow_and_update(), Standing::Ready);
        ready.note(Check::Rules, Some("the new file was refused\nline 3".into()));
        assert!(ready.is_ready());
        assert_eq!(
            ready.describe(true),
            "[+]listeners ok\n[+]rules ok\n    the new file was refused\n    line 3\n\
             [+]store ok\n[+]database ok\n[+]shutdown ok\nready\n"
        );
        ready.trouble(Check::Rules, true);
        assert!(ready.is_ready());
        let described = ready.describe(false);
        assert!(
            described.contains("]listeners ok\n[~]rules degraded (does not affect readiness)\n[+]")
        );
        ready.trouble(Check::Rules, false);
        ready.clone().fail(Check::Shutdown, "asked to end");
        assert!(!ready.is_ready());
        assert_eq!(*standing.borrow_and_update(), Standing::Leaving);
        assert!(!ready.describe(false).contains("line 3"));
        assert!(ready.describe(true).ends_with("[-]shutdown failed: asked to end\nnot ready\n"));
    }

    #[test]
    fn checks_stand_in_their_order() {
        for (position, (check, _)) in CHECKS.iter().enumerate() {
            assert_eq!(*check as usize, position);
        }
    }
}
