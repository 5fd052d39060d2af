//! Rate-limited log messages of store errors, for operators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::trouble::{Trouble, TroubleKind};

/// Shortest time between two log messages of the same kind.
const QUIET: Duration = Duration::from_secs(10);

/// Time of the last log message, by kind of error.
#[derive(Debug)]
pub(super) struct Alarm {
    started: Instant,
    /// Microseconds since the start, plus one; zero: never logged.
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

    /// Logs that a check failed and is answered by policy. An open breaker is logged by [`BreakerLog`]
    /// instead.
    pub(super) fn trouble(&self, trouble: &Trouble) {
        let kind = trouble.kind();
        if kind == TroubleKind::Open || !self.is_due(&self.troubles[kind as usize]) {
            return;
        }
        let detail = trouble.detail();
        match kind {
            TroubleKind::OutOfMemory => tracing::error!(
                %kind, detail, "the store is out of memory: rules are answered by their on_error policies"
            ),
            TroubleKind::Auth => tracing::error!(
                %kind, detail, "the store denies a permission: rules are answered by their on_error policies"
            ),
            TroubleKind::Tls => tracing::error!(
                %kind, detail, "the connection to the store was refused: rules are answered by their on_error policies"
            ),
            _ => {
                tracing::warn!(%kind, detail, "store error: rules are answered by their on_error policies");
            }
        }
    }

    /// Logs that keys held values other than buckets, which were treated as full buckets.
    pub(super) fn repaired(&self, buckets: u32) {
        if buckets > 0 && self.is_due(&self.repairs) {
            tracing::warn!(
                buckets,
                "keys in the store hold values that are not buckets, and are treated as full buckets"
            );
        }
    }

    fn is_due(&self, last: &AtomicU64) -> bool {
        let now = self.started.elapsed().as_micros() as u64 + 1;
        let logged = last.load(Ordering::Relaxed);
        let is_over = logged == 0 || now.saturating_sub(logged) >= QUIET.as_micros() as u64;
        // Of several concurrent callers, one logs.
        is_over && last.compare_exchange(logged, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Log of one server's breaker. Its last message is true, or will be within [`QUIET`], and a flapping breaker
/// does not flood the log.
#[derive(Debug, Default)]
pub(super) struct BreakerLog(Mutex<LastMessages>);

#[derive(Debug, Default)]
struct LastMessages {
    /// Kind of error that was logged as the reason, if the last message was that the breaker is open.
    open: Option<TroubleKind>,
    /// Time of the last message that the breaker is open, by kind of error.
    opened: [Option<Instant>; TroubleKind::ALL.len()],
    /// Time of the last message that the server refuses our credentials or certificate.
    locked_out: Option<Instant>,
}

impl BreakerLog {
    /// Logs that the breaker has opened, or still is open. Returns false without logging if that is the last
    /// message, or was logged within [`QUIET`] with the same kind of error.
    pub(super) fn open(&self, server: &str, trouble: &Trouble) -> bool {
        let kind = trouble.kind();
        {
            let mut last = self.0.lock();
            if last.open == Some(kind) || !is_over(&mut last.opened[kind as usize]) {
                return false;
            }
            last.open = Some(kind);
        }
        tracing::warn!(
            server, %kind, detail = trouble.detail(),
            "the store does not reply: its breaker is open"
        );
        true
    }

    /// Logs that the breaker has closed. Returns false without logging unless the last message was that it is
    /// open.
    pub(super) fn closed(&self, server: &str) -> bool {
        if self.0.lock().open.take().is_none() {
            return false;
        }
        tracing::info!(server, "the store replies again: its breaker is closed");
        true
    }

    /// Logs that credentials or certificates are refused. Returns false without logging if that was logged
    /// within [`QUIET`].
    pub(super) fn locked_out(&self, server: &str, trouble: &Trouble) -> bool {
        if !is_over(&mut self.0.lock().locked_out) {
            return false;
        }
        let (kind, detail) = (trouble.kind(), trouble.detail());
        tracing::error!(server, %kind, detail, "the store refuses the credentials or the certificate");
        true
    }
}

/// Is a message due? If so, it counts as logged now.
fn is_over(logged: &mut Option<Instant>) -> bool {
    let is_over = logged.is_none_or(|logged| logged.elapsed() >= QUIET);
    if is_over {
        *logged = Some(Instant::now());
    }
    is_over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flapping_breaker_is_logged_rarely() {
        let breaker_log = BreakerLog::default();
        let readonly = Trouble::new(TroubleKind::ReadOnly, "NOREPLICAS");
        let timeout = Trouble::new(TroubleKind::Timeout, "no answer");
        assert!(!breaker_log.closed("s"), "it was not logged that it had opened");
        assert!(breaker_log.open("s", &readonly) && breaker_log.closed("s"));
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!breaker_log.open("s", &readonly) && !breaker_log.closed("s"));
        }
        assert!(breaker_log.open("s", &timeout), "another kind");
        assert!(!breaker_log.open("s", &timeout) && !breaker_log.open("s", &readonly));
        assert!(breaker_log.closed("s") && !breaker_log.closed("s"));
        assert!(!breaker_log.open("s", &readonly));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(
            breaker_log.open("s", &readonly),
            "it is still open, and the last message was another"
        );
        tokio::time::advance(QUIET * 2).await;
        assert!(!breaker_log.open("s", &readonly), "already logged");
        assert!(breaker_log.open("s", &timeout), "another reason");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_are_logged_rarely() {
        let (breaker_log, trouble) =
            (BreakerLog::default(), Trouble::new(TroubleKind::Auth, "NOAUTH"));
        assert!(breaker_log.locked_out("s", &trouble) && !breaker_log.locked_out("s", &trouble));
        tokio::time::advance(QUIET).await;
        assert!(breaker_log.locked_out("s", &trouble));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_error_is_logged_rarely() {
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
