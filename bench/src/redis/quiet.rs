//! Rates of many rounds.

use crate::stats::quantile;

/// The rate of rounds in which the machine did little else: nine in ten are slower.
pub(crate) fn quiet(rates: impl Iterator<Item = f64>) -> f64 {
    quantile(rates, 0.9)
}
