//! Rate limit on rows written to the database.

use tokio::time::Instant;

/// Token bucket of rows: `rows_per_second`, with a burst of one second's rows.
#[derive(Debug)]
pub(super) struct Budget {
    rows_per_second: u64,
    /// In millionths of a row, so that rounding loses nothing between two calls.
    left: u64,
    at: Option<Instant>,
}

const MILLION: u64 = 1_000_000;

impl Budget {
    /// Starts full: one second's rows may be written at once.
    pub(super) fn new(rows_per_second: usize) -> Self {
        let rows_per_second = rows_per_second as u64;
        Self { rows_per_second, left: rows_per_second * MILLION, at: None }
    }

    /// Refills for the time since the last call.
    pub(super) fn earn(&mut self, now: Instant) {
        let passed = self.at.map_or(0, |at| now.saturating_duration_since(at).as_micros());
        let passed_us = u64::try_from(passed).unwrap_or(u64::MAX).min(MILLION);
        self.left = (self.left + passed_us * self.rows_per_second).min(self.all());
        self.at = Some(now);
    }

    /// Rows that may be written now.
    pub(super) fn rows(&self) -> usize {
        (self.left / MILLION) as usize
    }

    /// Spends `rows`.
    pub(super) fn spend(&mut self, rows: usize) {
        self.left = self.left.saturating_sub(rows as u64 * MILLION);
    }

    /// Refills completely.
    pub(super) fn fill(&mut self) {
        self.left = self.all();
    }

    fn all(&self) -> u64 {
        self.rows_per_second * MILLION
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_burst_is_one_second_of_rows_and_the_rate_holds_afterwards() {
        let start = Instant::now();
        let mut budget = Budget::new(10);
        budget.earn(start);
        assert_eq!(budget.rows(), 10);
        budget.spend(10);
        let mut written = 0;
        for step in 1..=1000 {
            // Steps shorter than one row takes.
            budget.earn(start + Duration::from_micros(33_333) * step);
            written += budget.rows();
            budget.spend(budget.rows());
        }
        // 33.333 s.
        assert_eq!(written, 333);
        budget.earn(start + Duration::from_secs(3600));
        assert_eq!(budget.rows(), 10);
        // A clock that stands still or steps back refills nothing.
        budget.spend(10);
        budget.earn(start);
        assert_eq!(budget.rows(), 0);
    }
}
