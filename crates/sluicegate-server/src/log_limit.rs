//! Limit on log lines that clients can cause.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of lines of one cause in a [`WINDOW`].
pub(crate) const LINES_MAX: u32 = 5;

/// Length of the interval that [`LINES_MAX`] applies to.
const WINDOW: Duration = Duration::from_secs(60);

/// Limit on the log lines of one cause: the first [`LINES_MAX`] of a minute are written, further ones are counted. The
/// next line that is written has their number in its field `suppressed`.
#[derive(Debug)]
pub(crate) struct LogLimit(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Start of the current window; `None` before the first line.
    started: Option<Instant>,
    /// Lines written in the window.
    lines: u32,
    /// Lines left out since the last one that was written.
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { started: None, lines: 0, suppressed: 0 }))
    }

    /// Number of lines left out since the last one, if a line may be written now; `None` if it must be left out.
    pub(crate) fn admit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.0.lock();
        if state.started.is_none_or(|started| now - started >= WINDOW) {
            (state.started, state.lines) = (Some(now), 0);
        }
        if state.lines == LINES_MAX {
            state.suppressed += 1;
            return None;
        }
        state.lines += 1;
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_few_lines_and_the_next_one_counts_the_rest() {
        let limit = LogLimit::new();
        for _ in 0..LINES_MAX {
            assert_eq!(limit.admit(), Some(0));
        }
        for _ in 0..3_000 {
            assert_eq!(limit.admit(), None);
        }
        tokio::time::advance(WINDOW).await;
        assert_eq!(limit.admit(), Some(3_000));
        assert_eq!(limit.admit(), Some(0));
    }
}
