//! Rates of many rounds.

use crate::stats::quantile;

/// Rate of quiet rounds: the 90th percentile.
pub(crate) fn quiet(rates: impl Iterator<Item = f64>) -> f64 {
    quantile(rates, 0.9)
}
