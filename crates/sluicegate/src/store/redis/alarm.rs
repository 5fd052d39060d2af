//! Tells the log what an operator should know, without repeating it for every check.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::trouble::{Trouble, TroubleKind};

/// The same thing is told again after this long, if it still happens.
const QUIET: Duration = Duration::from_secs(10);

/// When each kind of trouble was last told.
#[derive(Debug)]
pub(super) struct Alarm {
    started: Instant,
    /// Microseconds since the start, plus one; zero is never.
    troubles: [AtomicU64; TroubleKind::ALL.len()],
    repairs: AtomicU64,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            troubles: std::array::from_fn(|_| AtomicU64::new(0)),
            repairs: AtomicU64::new(0),
        }
    }

    /// A check ended in trouble, and is answered by policy. That the breaker is open is told by whoever
    /// opened it.
    pub(super) fn trouble(&self, trouble: &Trouble) {
        let kind = trouble.kind();
        if kind == TroubleKind::Open || !self.is_due(&self.troubles[kind as usize]) {
            return;
        }
        let detail = trouble.detail();
        match kind {
            TroubleKind::OutOfMemory => tracing::error!(
                %kind, detail, "the store has no memory left: rules answer by their on_error"
            ),
            TroubleKind::Auth => tracing::error!(
                %kind, detail, "the store does not permit what is needed: rules answer by their on_error"
            ),
            TroubleKind::Tls => tracing::error!(
                %kind, detail, "the store does not let us in: rules answer by their on_error"
            ),
            _ => tracing::warn!(%kind, detail, "store trouble: rules answer by their on_error"),
        }
    }

    /// Buckets held something else, and were taken for full.
    pub(super) fn repaired(&self, buckets: u32) {
        if buckets > 0 && self.is_due(&self.repairs) {
            tracing::warn!(
                buckets,
                "values in the store were no buckets, and are taken for full ones"
            );
        }
    }

    fn is_due(&self, last: &AtomicU64) -> bool {
        let now = self.started.elapsed().as_micros() as u64 + 1;
        let told = last.load(Ordering::Relaxed);
        let is_over = told == 0 || now.saturating_sub(told) >= QUIET.as_micros() as u64;
        // Of several who see it at once, one tells.
        is_over && last.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// What the log was told about one server's breaker. Its last word is true, or will be within [`QUIET`], and
/// a breaker that flaps does not fill it.
#[derive(Debug, Default)]
pub(super) struct Story(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Why it is open, if that was the last word.
    open: Option<TroubleKind>,
    /// When it was last told that it is open, by the kind of trouble.
    opened: [Option<Instant>; TroubleKind::ALL.len()],
    /// When it was last told that we are not let in.
    locked_out: Option<Instant>,
}

impl Story {
    /// The breaker has opened, or still is open. Whether that was told: it is unless that and why is known,
    /// or was told lately of trouble of the same kind.
    pub(super) fn open(&self, server: &str, trouble: &Trouble) -> bool {
        let kind = trouble.kind();
        {
            let mut told = self.0.lock();
            if told.open == Some(kind) || !is_over(&mut told.opened[kind as usize]) {
                return false;
            }
            told.open = Some(kind);
        }
        tracing::warn!(
            server, %kind, detail = trouble.detail(),
            "the store does not answer: its breaker is open"
        );
        true
    }

    /// The breaker has closed. Whether that was told: it is if it was told that it had opened.
    pub(super) fn closed(&self, server: &str) -> bool {
        if self.0.lock().open.take().is_none() {
            return false;
        }
        tracing::info!(server, "the store answers again");
        true
    }

    /// Credentials or certificates are wrong. Whether that was told: not if it was lately.
    pub(super) fn locked_out(&self, server: &str, trouble: &Trouble) -> bool {
        if !is_over(&mut self.0.lock().locked_out) {
            return false;
        }
        let (kind, detail) = (trouble.kind(), trouble.detail());
        tracing::error!(server, %kind, detail, "the store does not let us in");
        true
    }
}

/// Whether it was not told lately; then it is now.
fn is_over(told: &mut Option<Instant>) -> bool {
    let is_over = told.is_none_or(|told| told.elapsed() >= QUIET);
    if is_over {
        *told = Some(Instant::now());
    }
    is_over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_breaker_that_flaps_is_told_once_in_a_while() {
        let story = Story::default();
        let readonly = Trouble::new(TroubleKind::ReadOnly, "NOREPLICAS");
        let timeout = Trouble::new(TroubleKind::Timeout, "no answer");
        assert!(!story.closed("s"), "it was not told that it had opened");
        assert!(story.open("s", &readonly) && story.closed("s"));
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!story.open("s", &readonly) && !story.closed("s"));
        }
        assert!(story.open("s", &timeout), "that is another kind");
        assert!(!story.open("s", &timeout) && !story.open("s", &readonly));
        assert!(story.closed("s") && !story.closed("s"));
        assert!(!story.open("s", &readonly));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(story.open("s", &readonly), "it still is open, and the last word was otherwise");
        tokio::time::advance(QUIET * 2).await;
        assert!(!story.open("s", &readonly), "that is known");
        assert!(story.open("s", &timeout), "there is another reason now");
    }

    #[tokio::test(start_paused = true)]
    async fn being_locked_out_is_told_once_in_a_while() {
        let (story, trouble) = (Story::default(), Trouble::new(TroubleKind::Auth, "NOAUTH"));
        assert!(story.locked_out("s", &trouble) && !story.locked_out("s", &trouble));
        tokio::time::advance(QUIET).await;
        assert!(story.locked_out("s", &trouble));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_once_in_a_while() {
        let alarm = Alarm::new();
        let (oom, busy) = (&alarm.troubles[0], &alarm.troubles[1]);
        assert!(alarm.is_due(oom) && !alarm.is_due(oom));
        assert!(alarm.is_due(busy));
        tokio::time::advance(QUIET - Duration::from_micros(1)).await;
        assert!(!alarm.is_due(oom));
        tokio::time::advance(Duration::from_micros(1)).await;
        assert!(alarm.is_due(oom) && !alarm.is_due(oom));
    }
}
