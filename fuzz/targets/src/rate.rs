//! Any text is parsed or rejected, and a parsed rate is displayed as text that parses to the same rate.

use sluicegate_core::{Decimal, Quota, Rate};

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let _ = text.parse::<Decimal>();
    if let Ok(rate) = text.parse::<Rate>() {
        let _ = (rate.reduced(), rate.per_second());
    }
    if let Ok(quota) = text.parse::<Quota>() {
        assert_eq!(quota.to_string().parse::<Quota>(), Ok(quota));
    }
}
