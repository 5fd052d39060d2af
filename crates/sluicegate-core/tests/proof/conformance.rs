//! C1 to C5: the quota holds in every interval of time, no token is withheld, and every wait is
//! exact.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::{Form, Outcome};

use crate::bounds::excess;
use crate::bucket::{Amount, Bucket, Pause, Step, Stored, micros};
use crate::strategies::{
    amount, any_quota, continuous, forward, interval, leaky_bucket, pause, reachable,
};

/// Charges, and how long it takes until the next.
fn demand() -> impl Strategy<Value = Vec<(Amount, Pause)>> {
    vec((amount(), pause()), 1..30)
}

/// Charges the bucket step by step, and lists the grants with their times.
fn granted(bucket: &mut Bucket, demand: Vec<(Amount, Pause)>) -> Vec<(u64, u64)> {
    let mut grants = Vec::new();
    for (amount, pause) in demand {
        let cost = amount.of(bucket);
        if bucket.charge(cost).is_granted() && cost > 0 {
            grants.push((bucket.now, cost));
        }
        bucket.wait(pause.of(bucket));
    }
    grants
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn c1_window_bound(mut bucket in reachable(any_quota()), demand in demand()) {
        let grants = granted(&mut bucket, demand);
        prop_assert_eq!(excess(&bucket.quota, &grants, 0), None, "{:?}", grants);
    }

    /// Never more than the capacity at one instant.
    #[test]
    fn c1_window_bound_of_an_instant(
        mut bucket in reachable(any_quota()),
        amounts in vec(amount(), 1..30),
    ) {
        let left = bucket.peek().remaining;
        let demand = amounts.into_iter().map(|amount| (amount, Pause::Micros(0))).collect();
        let admitted: u64 = granted(&mut bucket, demand).iter().map(|(_, cost)| cost).sum();
        prop_assert!(admitted <= left && left <= bucket.quota.capacity());
    }

    /// Work leaves a queue no faster than its rate: granted work starts after all work granted before has
    /// had the time of its cost.
    #[test]
    fn c1_window_bound_of_a_queue(
        mut bucket in reachable(leaky_bucket()),
        demand in demand(),
    ) {
        let Form::LeakyBucket { n, p } = bucket.quota.form() else { unreachable!() };
        let mut outlet_is_free_at = 0u128;
        for (amount, pause) in demand {
            let cost = amount.of(&bucket);
            if let Outcome::Granted { delay } = bucket.charge(cost).outcome && cost > 0 {
                let starts_at = u128::from(bucket.now + delay) * u128::from(n);
                prop_assert!(starts_at >= outlet_is_free_at);
                // Exactly, it started up to a microsecond earlier: delays are rounded up.
                let exactly = (starts_at + 1).saturating_sub(n.into()).max(outlet_is_free_at);
                outlet_is_free_at = exactly + u128::from(cost) * u128::from(p);
            }
            bucket.wait(pause.of(&bucket));
        }
    }

    /// Under a load that takes every token as soon as it refills, no token is lost.
    #[test]
    fn c2_tightness(
        mut bucket in reachable(continuous()),
        shares in vec(0..=256u128, 1..30),
    ) {
        bucket.clamp();
        bucket.charge(bucket.peek().remaining);
        let Form::Continuous { n, p } = bucket.quota.form() else { unreachable!() };
        let (start, mut admitted) = (bucket.now, 0);
        for share in shares {
            // Short of full, beyond which tokens are lost by right.
            let short_of_full = u128::from(bucket.peek().reset_after - 1);
            bucket.wait(u64::try_from(short_of_full * share / 256).unwrap());
            let left = bucket.peek().remaining;
            prop_assert!(bucket.charge(left).is_granted());
            admitted += u128::from(left);
        }
        // The fraction of a token that was there at the start may make one more.
        let came_in = u128::from(n) * u128::from(bucket.now - start) / u128::from(p);
        prop_assert!((came_in..=came_in + 1).contains(&admitted), "{} of {}", admitted, came_in);
    }

    /// The same for interval refill: all the tokens of every period that ended.
    #[test]
    fn c2_tightness_of_interval_refill(
        mut bucket in reachable(interval()),
        shares in vec(0..256u128, 1..30),
    ) {
        bucket.clamp();
        bucket.charge(bucket.peek().remaining);
        let Form::Interval { n, p } = bucket.quota.form() else { unreachable!() };
        let ends_at = bucket.now + wait(bucket.would(bucket.now, 1).outcome);
        let mut admitted = 0;
        for share in shares {
            // Short of full, where the period under way ends.
            let periods = (bucket.quota.capacity() - 1) / n;
            bucket.wait(u64::try_from(u128::from(periods * p) * share / 256).unwrap());
            let left = bucket.peek().remaining;
            bucket.charge(left);
            admitted += left;
        }
        let ended = if bucket.now < ends_at { 0 } else { (bucket.now - ends_at) / p + 1 };
        prop_assert_eq!(admitted, ended * n);
    }

    /// Waiting `retry_after` always suffices; one microsecond less never does.
    #[test]
    fn c3_exact_retry(
        mut bucket in reachable(any_quota()),
        amount in amount(),
        earlier in any::<u64>(),
    ) {
        let cost = amount.of(&bucket);
        if let Outcome::Denied { retry_after } = bucket.charge(cost).outcome
            && bucket.can_reach(retry_after)
        {
            prop_assert!(retry_after >= 1);
            let then = bucket.now + retry_after;
            for too_soon in [retry_after - 1, retry_after / 2, earlier % retry_after] {
                let denial = bucket.would(bucket.now + too_soon, cost);
                // At every instant before, and it names the same one.
                prop_assert_eq!(wait(denial.outcome), retry_after - too_soon, "{:?}", denial);
            }
            prop_assert!(bucket.would(then, cost).is_granted());
        }
    }

    /// The remaining tokens can be taken, and not one more.
    #[test]
    fn c3_exact_remaining(mut bucket in reachable(any_quota())) {
        let left = bucket.peek().remaining;
        prop_assert!(!bucket.would(bucket.now, left + 1).is_granted());
        prop_assert!(bucket.charge(left).is_granted());
        if left > 0 {
            prop_assert_eq!(bucket.peek().remaining, 0);
        }
    }

    /// A denial postpones nothing: it stores nothing, unless it mends what lay beyond an empty
    /// bucket.
    #[test]
    fn c4_poll_independence(
        mut polled in reachable(any_quota()),
        polls in vec((amount(), pause()), 1..10),
        after in vec(forward(), 1..10),
    ) {
        polled.clamp();
        let mut left_alone = polled.clone();
        for (amount, pause) in polls {
            let cost = amount.of(&polled);
            if !polled.would(polled.now, cost).is_granted() {
                polled.charge(cost);
            }
            polled.charge(0);
            prop_assert_eq!(&polled.stored, &left_alone.stored);
            polled.wait(pause.of(&polled));
        }
        left_alone.now = polled.now;
        for step in after {
            polled.step(step);
            left_alone.step(step);
            prop_assert_eq!(polled.peek(), left_alone.peek());
        }
    }

    /// The two textbook forms of the generic cell rate algorithm, in fractions, give the same
    /// verdicts.
    #[test]
    fn c5_gcra_equal(mut bucket in reachable(continuous()), steps in vec(forward(), 1..30)) {
        bucket.clamp();
        let mut gcra = Gcra::of(&bucket);
        for step in steps {
            if let Step::Charge(amount) = step {
                let cost = amount.of(&bucket);
                let by_virtual_schedule = gcra.schedules(bucket.now, cost);
                let by_leaky_bucket = gcra.leaks(bucket.now, cost);
                let granted = bucket.charge(cost).is_granted();
                prop_assert_eq!(by_virtual_schedule, granted);
                prop_assert_eq!(by_leaky_bucket, granted);
                prop_assert_eq!(gcra.tokens(bucket.now), u128::from(bucket.peek().remaining));
            } else if let Step::Wait(_) = step {
                bucket.step(step);
            }
        }
    }
}

fn wait(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Granted { .. } => 0,
        Outcome::Denied { retry_after } => retry_after,
        Outcome::Never => panic!("never"),
    }
}

/// The generic cell rate algorithm in both of its forms, with the increment T = P/N kept as a
/// fraction: times are counted in units of 1/N microsecond.
#[derive(Debug)]
struct Gcra {
    n: u128,
    increment: u128,
    /// T + tau: the increments of a whole burst.
    burst: u128,
    /// Virtual scheduling: the theoretical arrival time.
    arrival: u128,
    /// Continuous state: the level of the bucket, and its time.
    level: u128,
    since: u128,
}

impl Gcra {
    /// In the state that the bucket is in.
    fn of(bucket: &Bucket) -> Self {
        let Form::Continuous { n, p } = bucket.quota.form() else { unreachable!() };
        let (n, increment) = (u128::from(n), u128::from(p));
        let arrival = match &bucket.stored {
            Stored::State(Some(state)) if n == 1 => state.a.into(),
            Stored::State(Some(state)) => u128::from(state.b) * n + u128::from(state.a),
            _ => 0,
        };
        let since = u128::from(bucket.now) * n;
        let burst = u128::from(bucket.quota.capacity()) * increment;
        let level = arrival.saturating_sub(since);
        Self { n, increment, burst, arrival, level, since }
    }

    fn schedules(&mut self, now: u64, cost: u64) -> bool {
        let now = u128::from(now) * self.n;
        let arrival = self.arrival.max(now) + u128::from(cost) * self.increment;
        let granted = arrival <= now + self.burst;
        if granted && cost > 0 {
            self.arrival = arrival;
        }
        granted
    }

    fn leaks(&mut self, now: u64, cost: u64) -> bool {
        let now = u128::from(now) * self.n;
        let level = self.level.saturating_sub(now - self.since);
        let charged = level + u128::from(cost) * self.increment;
        let granted = charged <= self.burst;
        if granted {
            (self.level, self.since) = (charged, now);
        }
        granted
    }

    /// (now + B*T - max(TAT, now)) / T
    fn tokens(&self, now: u64) -> u128 {
        let now = u128::from(now) * self.n;
        (now + self.burst - self.arrival.max(now)) / self.increment
    }
}

/// The documented bounds of each algorithm.
#[test]
fn c6_a_burst_comes_on_top_of_the_rate() {
    let quota = "10/s".parse().unwrap();
    let mut bucket = Bucket::new(quota, 1_700_000_000_000_000);
    assert_eq!(micros(quota.time_to_full()), 1_000_000);
    assert!(bucket.charge(10).is_granted());
    bucket.wait(1_000_000);
    assert!(bucket.charge(10).is_granted());
    assert!(!bucket.charge(1).is_granted());
}
