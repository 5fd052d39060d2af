//! How many rows may be written now.

use tokio::time::Instant;

/// Rows that may be written: so many in a second, and at once no more than a second's.
#[derive(Debug)]
pub(super) struct Budget {
    rows_per_second: u64,
    /// In millionths of a row, so that no part of one is lost between two looks.
    left: u64,
    at: Option<Instant>,
}

const MILLION: u64 = 1_000_000;

impl Budget {
    /// All of a second's rows may be written at once.
    pub(super) fn new(rows_per_second: usize) -> Self {
        let rows_per_second = rows_per_second as u64;
        Self { rows_per_second, left: rows_per_second * MILLION, at: None }
    }

    /// Adds what the time since the last call has brought.
    pub(super) fn earn(&mut self, now: Instant) {
        let passed = self.at.map_or(0, |at| now.saturating_duration_since(at).as_micros());
        let passed_us = u64::try_from(passed).unwrap_or(u64::MAX).min(MILLION);
        self.left = (self.left + passed_us * self.rows_per_second).min(self.all());
        self.at = Some(now);
    }

    /// How many rows may be written.
    pub(super) fn rows(&self) -> usize {
        (self.left / MILLION) as usize
    }

    /// So many rows are written.
    pub(super) fn spend(&mut self, rows: usize) {
        self.left = self.left.saturating_sub(rows as u64 * MILLION);
    }

    /// A whole second's rows may be written, whatever was written before.
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
    fn no_more_than_a_second_s_rows_and_then_so_many_in_a_second() {
        let start = Instant::now();
        let mut budget = Budget::new(10);
        budget.earn(start);
        assert_eq!(budget.rows(), 10);
        budget.spend(10);
        let mut written = 0;
        for step in 1..=1000 {
            // Steps that a row does not fit into.
            budget.earn(start + Duration::from_micros(33_333) * step);
            written += budget.rows();
            budget.spend(budget.rows());
        }
        // 33.333 s.
        assert_eq!(written, 333);
        budget.earn(start + Duration::from_secs(3600));
        assert_eq!(budget.rows(), 10);
        // Time that stands still or goes back gives nothing.
        budget.spend(10);
        budget.earn(start);
        assert_eq!(budget.rows(), 0);
    }
}
