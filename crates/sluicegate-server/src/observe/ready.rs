//! Whether requests may be sent here, and why not.

use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// What readiness depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every listener listens.
    Listeners,
    /// Rules are loaded.
    Rules,
    /// Buckets can be charged. Always so: what answers for a store in trouble is ready, too, and sending the
    /// requests elsewhere would not help it.
    Store,
    /// Rules can be changed and violations recorded. Always so: checks go on without.
    Database,
    /// Nobody has asked this process to end.
    Shutdown,
}

const CHECKS: [(Check, &str); 5] = [
    (Check::Listeners, "listeners"),
    (Check::Rules, "rules"),
    (Check::Store, "store"),
    (Check::Database, "database"),
    (Check::Shutdown, "shutdown"),
];

/// Named checks that must all pass. Clones are the same checks.
#[derive(Clone, Debug)]
pub struct Readiness {
    states: Arc<Mutex<[State; CHECKS.len()]>>,
    standing: watch::Sender<Standing>,
}

/// What the checks come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All pass.
    Ready,
    /// Some do not yet, or not now.
    NotReady,
    /// This process has been asked to end.
    Leaving,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Why it does not pass; it does if none.
    failing: Option<String>,
    /// It passes, for requests are answered, but not as they should be.
    is_in_trouble: bool,
    /// What to know about it though it passes.
    note: Option<String>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// Of a process that has only begun: not ready.
    #[must_use]
    pub fn new() -> Self {
        let starting = || State { failing: Some("not yet".into()), ..State::default() };
        let passing = State::default;
        let states = [starting(), starting(), passing(), passing(), passing()];
        Self {
            states: Arc::new(Mutex::new(states)),
            standing: watch::Sender::new(Standing::NotReady),
        }
    }

    /// This check passes from here on.
    pub fn pass(&self, check: Check) {
        self.set(check, None);
    }

    /// This check fails from here on.
    pub fn fail(&self, check: Check, reason: impl Into<String>) {
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
        // Under the lock, so that changes are seen in their order.
        self.standing.send_if_modified(|before| std::mem::replace(before, standing) != standing);
    }

    /// What the checks come to, now and whenever that changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// This check is in trouble, or not, from here on; that does not count.
    pub fn trouble(&self, check: Check, is_in_trouble: bool) {
        self.states.lock()[check as usize].is_in_trouble = is_in_trouble;
    }

    /// Something to know about a check, whether it passes or not.
    pub fn note(&self, check: Check, note: Option<String>) {
        self.states.lock()[check as usize].note = note;
    }

    /// Whether all checks pass.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.states.lock().iter().all(|state| state.failing.is_none())
    }

    /// Every check, line by line, as Kubernetes writes them, with `[~]` for those that pass in trouble; and what to know about each, which names hosts and
    /// quotes files, if `with_notes`.
    #[must_use]
    pub fn describe(&self, with_notes: bool) -> String {
        let states = self.states.lock().clone();
        let mut text = String::new();
        for ((_, name), state) in CHECKS.iter().zip(&states) {
            // Writing to a string cannot fail.
            let _ = match &state.failing {
                None if state.is_in_trouble => {
                    writeln!(text, "[~]{name} in trouble, which does not count")
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
            described.contains("]listeners ok\n[~]rules in trouble, which does not count\n[+]")
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
