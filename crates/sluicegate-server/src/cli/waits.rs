//! Durations in readable form.

use serde_json::Value;

/// Text for a wait without end.
const NEVER: &str = "never";

/// Retry hint of a denied request.
pub(super) fn retry(answer: &Value) -> String {
    match answer["retry_after_ms"].as_u64() {
        Some(millis) => format!("retry in {}", text(millis)),
        None => NEVER.into(),
    }
}

/// Wait of a denied request.
pub(super) fn wait(answer: &Value) -> String {
    answer["retry_after_ms"].as_u64().map_or_else(|| NEVER.into(), text)
}

/// A duration in milliseconds; empty for `null`.
pub(super) fn millis(value: &Value) -> String {
    value.as_u64().map(text).unwrap_or_default()
}

fn text(millis: u64) -> String {
    let seconds = millis / 1000;
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 if millis.is_multiple_of(1000) => format!("{seconds} s"),
        1_000..60_000 => {
            let fraction = format!("{:03}", millis % 1000);
            format!("{seconds}.{} s", fraction.trim_end_matches('0'))
        }
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (millis, shown) in [
            (0, "0 ms"),
            (100, "100 ms"),
            (5_000, "5 s"),
            (12_340, "12.34 s"),
            (12_300, "12.3 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
        ] {
            assert_eq!(text(millis), shown);
        }
    }
}
