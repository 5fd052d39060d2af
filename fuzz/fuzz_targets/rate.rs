//! Any text is parsed or rejected, and a parsed rate is displayed as text that parses to the same rate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluicegate_core::{Decimal, Quota, Rate};

fuzz_target!(|text: &str| {
    let _ = text.parse::<Decimal>();
    if let Ok(rate) = text.parse::<Rate>() {
        let _ = (rate.reduced(), rate.per_second());
    }
    if let Ok(quota) = text.parse::<Quota>() {
        assert_eq!(quota.to_string().parse::<Quota>(), Ok(quota));
    }
});
