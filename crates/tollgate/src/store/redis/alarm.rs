//! Tells the log what an operator should know, without repeating it for every check.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
            TroubleKind::Auth | TroubleKind::Tls => tracing::error!(
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

#[cfg(test)]
mod tests {
    use super::*;

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
