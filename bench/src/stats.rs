//! Figures of many rounds.

/// Median of the values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// Quantile of the values; NaN if there are none.
pub(crate) fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}
