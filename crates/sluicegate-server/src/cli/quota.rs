//! Quotas in short form: `10/s burst 50`.

use serde_json::{Map, Value, json};
use sluicegate::Rate;

/// Parses a rate with an optional burst into columns: `10/s`, `5 per 2min burst 20`.
///
/// # Errors
///
/// The reason, with examples of valid rates.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let (rate, burst) = match text.split_once(" burst ") {
        Some((rate, burst)) => (rate, Some(burst.trim())),
        None => (text, None),
    };
    let rate: Rate = rate.trim().parse().map_err(|error| {
        format!("{error}; valid forms are \"10/s\", \"100/minute burst 500\" or \"5 per 2s\"")
    })?;
    let (tokens, period_us) = rate.tokens_and_period_us();
    let mut columns = Map::new();
    columns.insert("tokens".into(), json!(tokens));
    columns.insert("period".into(), json!(period(period_us)));
    if let Some(burst) = burst {
        let burst: u64 =
            burst.parse().map_err(|_| "the burst must be a whole number: \"10/s burst 50\"")?;
        columns.insert("burst_capacity".into(), json!(burst));
    }
    Ok(columns)
}

/// Microseconds as a period that parses back exactly.
fn period(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    if fraction == 0 {
        return format!("{seconds}s");
    }
    let fraction = format!("{fraction:06}");
    format!("{seconds}.{}s", fraction.trim_end_matches('0'))
}

/// The quota of a JSON object in short form: `10/s burst 50`, `100/min (fixed_window)`, or `unlimited`.
pub(super) fn shown(row: &Value) -> String {
    if row["mode"] == "unlimited" {
        return "unlimited".into();
    }
    let rate = match (row["tokens"].as_u64(), row["period"].as_f64()) {
        (Some(tokens), Some(period)) => rate_text(tokens, period),
        _ => return String::new(),
    };
    let tokens = row["tokens"].as_u64();
    let burst = row["burst_capacity"].as_u64().filter(|burst| Some(*burst) != tokens);
    let burst = burst.map(|burst| format!(" burst {burst}")).unwrap_or_default();
    let algorithm = row["algorithm"].as_str().filter(|name| *name != "token_bucket");
    let interval = row["refill"].as_str().filter(|name| *name == "interval");
    let how = algorithm.or(interval).map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{rate}{burst}{how}")
}

fn rate_text(tokens: u64, period: f64) -> String {
    let period = std::time::Duration::try_from_secs_f64(period).unwrap_or_default();
    // Rounded to the microsecond: JSON has seconds, and periods are whole microseconds.
    let period = std::time::Duration::from_micros(
        u64::try_from((period.as_nanos() + 500) / 1000).unwrap_or(u64::MAX),
    );
    Rate::new(tokens, period).map(|rate| rate.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read() {
        for (text, columns) in [
            ("10/s", json!({"tokens": 10, "period": "1s"})),
            ("10/s burst 50", json!({"tokens": 10, "period": "1s", "burst_capacity": 50})),
            ("5 per 2min burst 7", json!({"tokens": 5, "period": "120s", "burst_capacity": 7})),
            ("0.016/s", json!({"tokens": 1, "period": "62.5s"})),
        ] {
            assert_eq!(Value::Object(parse(text).unwrap()), columns);
        }
        for wrong in ["", "10", "10/fortnight", "x/s", "10/s burst", "10/s burst x", "0/s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quotas_are_shown() {
        for (row, text) in [
            (json!({"tokens": 10, "period": 1, "burst_capacity": 50}), "10/s burst 50"),
            (json!({"tokens": 1, "period": 62.5, "burst_capacity": 1}), "1 per 62.5s"),
            (
                json!({"tokens": 9, "period": 60, "algorithm": "fixed_window"}),
                "9/min (fixed_window)",
            ),
            (json!({"tokens": 9, "period": 60, "refill": "interval"}), "9/min (interval)"),
            (json!({}), ""),
        ] {
            assert_eq!(shown(&row), text);
        }
    }
}
