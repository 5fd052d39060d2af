//! Text forms of quotas, and the reasons of refusals.

use std::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    Algorithm, Decimal, DecimalError, MICROS_MAX, Micros, Quota, QuotaError, Rate, RateError,
    Refill, parse_duration, sliding_window,
};

use crate::strategies::{any_word, continuous};

const SECOND: Duration = Duration::from_secs(1);

fn quota(text: &str) -> Quota {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

// ===== text =====

/// Text, tokens and microseconds as they are stored, capacity, and the text it is shown as.
const TEXTS: [(&str, u64, u64, u64, &str); 22] = [
    ("10/s", 10, 1_000_000, 10, "10/s burst 10"),
    ("10 / s", 10, 1_000_000, 10, "10/s burst 10"),
    ("10 per second", 10, 1_000_000, 10, "10/s burst 10"),
    ("100/minute", 100, 60_000_000, 100, "100/min burst 100"),
    ("100/m", 100, 60_000_000, 100, "100/min burst 100"),
    ("5 per 2s", 5, 2_000_000, 5, "5 per 2s burst 5"),
    ("5/2s", 5, 2_000_000, 5, "5 per 2s burst 5"),
    ("5 per 2 seconds", 5, 2_000_000, 5, "5 per 2s burst 5"),
    ("1000/h burst 50", 1000, 3_600_000_000, 50, "1000/h burst 50"),
    ("1/day", 1, 86_400_000_000, 1, "1/d burst 1"),
    ("3 per 2 days", 3, 172_800_000_000, 3, "3 per 2d burst 3"),
    ("7/week", 7, 604_800_000_000, 7, "7 per 7d burst 7"),
    ("1 per 1.5h", 1, 5_400_000_000, 1, "1 per 90min burst 1"),
    ("1 per 90s", 1, 90_000_000, 1, "1 per 90s burst 1"),
    ("3/ms", 3, 1_000, 3, "3 per 0.001s burst 3"),
    ("3/µs", 3, 1, 3, "3 per 0.000001s burst 3"),
    ("1 per 62.5s", 1, 62_500_000, 1, "1 per 62.5s burst 1"),
    ("1 per 60.05s", 1, 60_050_000, 1, "1 per 60.05s burst 1"),
    ("0.016/s", 1, 62_500_000, 1, "1 per 62.5s burst 1"),
    ("0.016/s burst 3", 1, 62_500_000, 3, "1 per 62.5s burst 3"),
    ("2.5/s", 1, 400_000, 2, "1 per 0.4s burst 2"),
    ("010.0/s", 10, 1_000_000, 10, "10/s burst 10"),
];

#[test]
fn text_is_read_as_it_is_meant() {
    for (text, tokens, period_us, capacity, shown) in TEXTS {
        let quota = quota(text);
        assert_eq!(quota.rate().tokens_and_period_us(), (tokens, period_us), "{text}");
        assert_eq!(quota.capacity(), capacity, "{text}");
        assert_eq!(quota.to_string(), shown, "{text}");
    }
}

/// Invalid rates with their errors.
const NO_RATES: [(&str, RateError); 25] = [
    ("", RateError::Syntax),
    ("10", RateError::Syntax),
    ("10 s", RateError::Syntax),
    ("10/", RateError::Syntax),
    ("10/5", RateError::Syntax),
    ("10/fortnight", RateError::UnknownUnit),
    ("10/S", RateError::UnknownUnit),
    ("10/s burst", RateError::UnknownUnit),
    ("/s", RateError::Number(DecimalError::NotANumber)),
    ("ten/s", RateError::Number(DecimalError::NotANumber)),
    ("1e3/s", RateError::Number(DecimalError::NotANumber)),
    ("1./s", RateError::Number(DecimalError::NotANumber)),
    (".5/s", RateError::Number(DecimalError::NotANumber)),
    ("NaN/s", RateError::Number(DecimalError::NotANumber)),
    ("inf/s", RateError::Number(DecimalError::Infinite)),
    ("-inf/s", RateError::Number(DecimalError::Infinite)),
    ("-10/s", RateError::Number(DecimalError::Negative)),
    ("-99999999999999999999/s", RateError::Number(DecimalError::Negative)),
    ("10 per -2s", RateError::Number(DecimalError::Negative)),
    ("99999999999999999999/s", RateError::Number(DecimalError::TooManyDigits)),
    ("0/s", RateError::ZeroTokens),
    ("-0/s", RateError::ZeroTokens),
    ("10 per 0s", RateError::ZeroPeriod),
    ("10 per 0.0000001s", RateError::PeriodTooFine),
    ("10 per 52125 d", RateError::PeriodTooLong),
];

const NO_QUOTAS: [(&str, QuotaError); 9] = [
    ("10/s burst ten", QuotaError::Rate(RateError::BadBurst)),
    ("10/s burst 3.5", QuotaError::Rate(RateError::BadBurst)),
    ("10/s burst 99999999999999999999", QuotaError::Rate(RateError::BadBurst)),
    ("10/s burst 0", QuotaError::ZeroCapacity),
    ("1/us burst 4503599627370497", QuotaError::CapacityTooLarge),
    ("18446744073709551615/s", QuotaError::CapacityTooLarge),
    ("1 per 4503599627370496us burst 2", QuotaError::TooSlowToFill),
    ("0.000000000000000001/s", QuotaError::TooSlowToFill),
    ("4294967297 per 1us burst 1", QuotaError::RateTooFine),
];

#[test]
fn text_is_refused_with_its_reason() {
    for (text, error) in NO_RATES {
        assert_eq!(text.parse::<Rate>(), Err(error), "{text}");
        assert_eq!(text.parse::<Quota>(), Err(QuotaError::Rate(error)), "{text}");
    }
    for (text, error) in NO_QUOTAS {
        assert_eq!(text.parse::<Quota>(), Err(error), "{text}");
    }
}

// ===== decimals =====

#[test]
fn floats_are_read_by_their_shortest_decimal() {
    for (float, text) in [
        (0.016, "0.016"),
        (0.1, "0.1"),
        (1.0 / 3.0, "0.3333333333333333"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e15, "1000000000000000"),
        (1e-7, "0.0000001"),
        (-0.0, "0"),
    ] {
        assert_eq!(Decimal::from_f64(float), text.parse(), "{float}");
    }
    let rate = Rate::from_decimal(Decimal::from_f64(0.016).unwrap(), SECOND).unwrap();
    // 2/125 of a token a second.
    assert_eq!(rate.reduced(), (1, 62_500_000));
}

#[test]
fn floats_are_refused_with_their_reason() {
    for (float, error) in [
        (f64::NAN, DecimalError::NotANumber),
        (f64::INFINITY, DecimalError::Infinite),
        (f64::NEG_INFINITY, DecimalError::Infinite),
        (-0.5, DecimalError::Negative),
        (-1e300, DecimalError::Negative),
        (-5e-324, DecimalError::Negative),
        (f64::MAX, DecimalError::TooManyDigits),
        (1e20, DecimalError::TooManyDigits),
        (5e-324, DecimalError::TooManyDigits),
        (1e-21, DecimalError::TooManyDigits),
    ] {
        assert_eq!(Decimal::from_f64(float), Err(error), "{float}");
    }
}

#[test]
fn decimals_are_durations_in_seconds() {
    for (text, period) in [
        ("1", Ok(SECOND)),
        ("62.5", Ok(Duration::from_millis(62_500))),
        ("0.000001", Ok(Duration::from_micros(1))),
        ("0", Ok(Duration::ZERO)),
        ("0.0000005", Err(RateError::PeriodTooFine)),
        ("4503599628", Err(RateError::PeriodTooLong)),
    ] {
        assert_eq!(text.parse::<Decimal>().unwrap().seconds(), period, "{text}");
    }
}

#[test]
fn durations_are_read_alone() {
    for (text, period) in [
        ("2s", Ok(Duration::from_secs(2))),
        (" 62.5 s ", Ok(Duration::from_millis(62_500))),
        ("minute", Ok(Duration::from_secs(60))),
        ("1 day", Ok(Duration::from_secs(86_400))),
        ("", Err(RateError::Syntax)),
        ("5", Err(RateError::Syntax)),
        ("0s", Ok(Duration::ZERO)),
        ("-1s", Err(RateError::Number(DecimalError::Negative))),
        ("1.2.3s", Err(RateError::Number(DecimalError::NotANumber))),
        ("1 moon", Err(RateError::UnknownUnit)),
    ] {
        assert_eq!(parse_duration(text), period, "{text}");
    }
}

// ===== the domain =====

/// The last quota on this side of each edge, and the reason on the other.
#[test]
fn the_domain_ends_where_it_is_said_to() {
    let per = |tokens, period_us| Quota::new(tokens, Duration::from_micros(period_us));
    let most = 1 << 52;
    assert!(per(1, most).is_ok());
    assert_eq!(per(1, most + 1), Err(QuotaError::Rate(RateError::PeriodTooLong)));
    assert!(per(1 << 32, 1).is_ok());
    assert_eq!(per((1 << 32) + 1, 1), Err(QuotaError::RateTooFine));
    assert!(per(1, 1).unwrap().with_capacity(most).is_ok());
    assert_eq!(per(1, 1).unwrap().with_capacity(most + 1), Err(QuotaError::CapacityTooLarge));
    assert!(per(1, 2).unwrap().with_capacity(most / 2).is_ok());
    assert_eq!(per(1, 2).unwrap().with_capacity(most / 2 + 1), Err(QuotaError::TooSlowToFill));
    // Interval refill counts periods, not units.
    let interval = per(3, 1 << 50).unwrap().with_refill(Refill::Interval).unwrap();
    assert!(interval.with_capacity(12).is_ok());
    assert_eq!(interval.with_capacity(13), Err(QuotaError::TooSlowToFill));
    let nanos = Duration::from_nanos(1500);
    assert_eq!(Quota::new(1, nanos), Err(QuotaError::Rate(RateError::PeriodTooFine)));
    assert_eq!(Quota::new(1, Duration::ZERO), Err(QuotaError::Rate(RateError::ZeroPeriod)));
    let ages = Duration::from_secs(u64::MAX);
    assert_eq!(Quota::new(1, ages), Err(QuotaError::Rate(RateError::PeriodTooLong)));
    assert_eq!(Quota::per_second(0), Err(QuotaError::Rate(RateError::ZeroTokens)));
}

#[test]
fn windows_are_refused_with_their_reason() {
    let build = |text: &str, algorithm| {
        Quota::build(text.parse().unwrap(), algorithm, Refill::Continuous, None, None)
    };
    let (fixed, sliding, counter) =
        (Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::SlidingCounter);
    for algorithm in [fixed, sliding, counter] {
        assert_eq!(build("2.5/s", algorithm), Err(QuotaError::FractionalTokens));
        let window = build("10/s", algorithm).unwrap();
        assert_eq!(window.capacity(), 10);
        assert_eq!(window.with_capacity(10), Ok(window));
        assert_eq!(window.with_capacity(11), Err(QuotaError::WindowHasNoCapacity));
        assert_eq!(window.with_refill(Refill::Interval), Err(QuotaError::IntervalNeedsTokenBucket));
        assert_eq!(window.with_max_wait(SECOND), Err(QuotaError::MaxWaitNeedsLeakyBucket));
    }
    // A token bucket's burst is no window's, and is dropped on the way.
    assert_eq!(quota("10/s burst 50").with_algorithm(fixed).unwrap().capacity(), 10);
    assert!(build("4503599627370496/s", fixed).is_ok());
    assert_eq!(build("4503599627370497/s", fixed), Err(QuotaError::CapacityTooLarge));
    let max = sliding_window::TOKENS_MAX;
    assert!(build("65536/s", sliding).is_ok());
    assert_eq!(build("65537/s", sliding), Err(QuotaError::WindowTooLarge { max }));
    let max = (1 << 26) - 1;
    assert!(build("67108863/s", counter).is_ok());
    assert_eq!(build("67108864/s", counter), Err(QuotaError::WindowTooLarge { max }));
    // Counts are multiplied by the period: 2^52 / 86400000000.
    let max = 52_124;
    assert!(build("52124/d", counter).is_ok());
    assert_eq!(build("52125/d", counter), Err(QuotaError::WindowTooLarge { max }));
}

/// 1 000 003 is a prime: a day has no whole units for each, but it has a window for all of them.
#[test]
fn what_is_no_token_bucket_may_be_another_quota() {
    let rate: Rate = "1000003/d".parse().unwrap();
    assert_eq!(Quota::from_rate(rate), Err(QuotaError::TooSlowToFill));
    let build = |algorithm, refill| Quota::build(rate, algorithm, refill, None, None);
    assert!(build(Algorithm::FixedWindow, Refill::Continuous).is_ok());
    assert!(build(Algorithm::TokenBucket, Refill::Interval).is_ok());
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let interval = quota("10/s").with_refill(Refill::Interval).unwrap();
    for algorithm in Algorithm::ALL {
        let refused = interval.with_algorithm(algorithm).err();
        let goes = algorithm == Algorithm::TokenBucket;
        assert_eq!(refused, (!goes).then_some(QuotaError::IntervalNeedsTokenBucket));
    }
    assert_eq!(quota("2.5/s").with_refill(Refill::Interval), Err(QuotaError::FractionalTokens));
    assert_eq!(quota("10/s").with_max_wait(SECOND), Err(QuotaError::MaxWaitNeedsLeakyBucket));
    let queue = quota("999/s").with_algorithm(Algorithm::LeakyBucket).unwrap();
    assert_eq!(queue.max_wait(), None);
    let queue = queue.with_max_wait(SECOND).unwrap();
    assert_eq!(queue.max_wait(), Some(SECOND));
    assert_eq!(queue.with_capacity(5).unwrap().max_wait(), Some(SECOND));
    // 2^52 units of 1/999 microsecond.
    let most = Duration::from_micros(MICROS_MAX / 999);
    assert!(queue.with_max_wait(most).is_ok());
    let too_long = Err(QuotaError::MaxWaitNotExact);
    assert_eq!(queue.with_max_wait(most + Duration::from_micros(1)), too_long);
    assert_eq!(queue.with_max_wait(Duration::MAX), too_long);
}

// ===== the rest of the surface =====

#[test]
fn equal_rates_are_equal_however_they_are_written() {
    let rate = |text: &str| text.parse::<Rate>().unwrap();
    assert_eq!(rate("10/s"), rate("600/minute"));
    assert_eq!(rate("0.016/s"), rate("2 per 125s"));
    assert_ne!(rate("10/s"), rate("11/s"));
    assert_eq!(rate("600/minute").written(), Some((600, 60_000_000)));
    assert_eq!(rate("0.016/s").written(), None);
    assert!((rate("600/minute").per_second() - 10.0).abs() < f64::EPSILON);
}

#[test]
fn names_are_those_of_rules() {
    let algorithms = Algorithm::ALL.map(Algorithm::name);
    assert_eq!(
        algorithms,
        ["token_bucket", "fixed_window", "sliding_window", "sliding_counter", "leaky_bucket"]
    );
    assert_eq!(Refill::ALL.map(Refill::name), ["continuous", "interval"]);
    assert_eq!(Algorithm::NAMES.map(str::parse), Algorithm::ALL.map(Ok));
    assert_eq!(Refill::NAMES.map(str::parse), Refill::ALL.map(Ok));
    assert_eq!("Interval".parse::<Refill>().unwrap_err().allowed(), Refill::NAMES);
    assert_eq!(
        "".parse::<Refill>().unwrap_err().to_string(),
        "must be one of continuous, interval"
    );
    for algorithm in Algorithm::ALL {
        assert_eq!(quota("10/s").with_algorithm(algorithm).unwrap().algorithm(), algorithm);
    }
}

#[test]
fn times_stop_at_the_end_of_the_domain() {
    let last = Micros::new(u64::MAX);
    assert_eq!(last.get(), MICROS_MAX - 1);
    assert_eq!(last.after(Duration::MAX), last);
    assert_eq!(Micros::new(5).after(Duration::from_nanos(1)).get(), 6);
    assert_eq!(Micros::new(5).since(Micros::new(3)), Duration::from_micros(2));
    assert_eq!(Micros::new(3).since(Micros::new(5)), Duration::ZERO);
}

/// Lower-case, without a full stop, and no two alike.
#[test]
fn reasons_are_written_alike() {
    let numbers = [
        DecimalError::NotANumber,
        DecimalError::Infinite,
        DecimalError::Negative,
        DecimalError::TooManyDigits,
    ];
    let rates = [
        RateError::ZeroTokens,
        RateError::ZeroPeriod,
        RateError::PeriodTooFine,
        RateError::PeriodTooLong,
        RateError::Syntax,
        RateError::UnknownUnit,
        RateError::BadBurst,
    ];
    let quotas = [
        QuotaError::ZeroCapacity,
        QuotaError::CapacityTooLarge,
        QuotaError::TooSlowToFill,
        QuotaError::RateTooFine,
        QuotaError::FractionalTokens,
        QuotaError::IntervalNeedsTokenBucket,
        QuotaError::WindowHasNoCapacity,
        QuotaError::WindowTooLarge { max: 7 },
        QuotaError::MaxWaitNeedsLeakyBucket,
        QuotaError::MaxWaitNotExact,
    ];
    let rates = numbers.map(RateError::Number).into_iter().chain(rates);
    let errors = rates.map(QuotaError::Rate).chain(quotas);
    let mut texts: Vec<String> = errors.map(|error| error.to_string()).collect();
    for text in &texts {
        assert!(text.starts_with(|first: char| first.is_lowercase()), "{text}");
        assert!(!text.ends_with('.') && !text.contains("  ") && !text.contains('\n'), "{text}");
    }
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count);
}

/// Mostly rates.
const RATE_LIKE: &str = concat!(
    "-?[0-9]{1,3}(\\.[0-9]{0,4})?( per |/)",
    "([0-9]{1,3}(\\.[0-9]{0,7})?)? ?[dhmsu]s?( burst [-0-9]{1,3})?",
);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// A quota's text reads back as the quota, and is shown the same again.
    #[test]
    fn quotas_read_back(quota in continuous()) {
        let text = quota.to_string();
        let read: Quota = text.parse().unwrap();
        prop_assert_eq!(read, quota, "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }

    /// So does every rate of whole tokens.
    #[test]
    fn rates_read_back(tokens in any_word(), period_us in any_word()) {
        let period_us = period_us.clamp(1, MICROS_MAX);
        let rate = Rate::new(tokens.max(1), Duration::from_micros(period_us)).unwrap();
        let text = rate.to_string();
        let read: Rate = text.parse().unwrap();
        prop_assert_eq!(read.written(), rate.written(), "{}", text);
    }

    /// A decimal is the ratio written, neither more nor less.
    #[test]
    fn decimals_are_kept_exactly(digits in 1..=u64::from(u32::MAX), scale in 0..=9u32) {
        let unit = 10u64.pow(scale);
        let width = usize::try_from(scale).unwrap();
        let text = format!("{}.{:0width$}", digits / unit, digits % unit);
        let text = if scale == 0 { digits.to_string() } else { text };
        let decimal: Decimal = text.parse().unwrap();
        let (n, p) = Rate::from_decimal(decimal, SECOND).unwrap().reduced();
        // n / p == digits / (unit * 1 s)
        let (left, right) = (u128::from(n) * u128::from(unit) * 1_000_000, u128::from(p));
        prop_assert_eq!(left, right * u128::from(digits), "{}", text);
        prop_assert_eq!(Decimal::from_f64(text.parse().unwrap()), Ok(decimal), "{}", text);
    }

    /// Nothing that can be typed makes a reader panic, and what was read is shown as it was meant.
    #[test]
    fn any_text_is_read_or_refused(
        text in RATE_LIKE,
        garbage in "[-+0-9a-zµ/. ]{0,24}",
    ) {
        for text in [text, garbage] {
            if let Ok(quota) = text.parse::<Quota>() {
                prop_assert_eq!(quota.to_string().parse::<Quota>(), Ok(quota));
            }
        }
    }
}
