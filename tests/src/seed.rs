//! Random choices that a failed test can repeat.

use std::hash::{BuildHasher as _, RandomState};

/// The variable with the seed of a run to repeat.
pub const VARIABLE: &str = "SLUICEGATE_SEED";

/// Pseudo-random generator of one test (`SplitMix64`).
///
/// The same seed gives the same numbers, on every machine. Not for secrets.
#[derive(Clone, Debug)]
pub struct Seed {
    state: u64,
    seed: u64,
}

impl Seed {
    /// The seed in `SLUICEGATE_SEED`, else a new one; printed, with instructions to repeat it.
    ///
    /// # Panics
    ///
    /// If `SLUICEGATE_SEED` is not an unsigned number.
    pub fn announce(test: &str) -> Self {
        let seed = match std::env::var(VARIABLE) {
            Ok(text) => {
                text.trim().parse().unwrap_or_else(|_| panic!("{VARIABLE}={text} is not a number"))
            }
            Err(_) => RandomState::new().hash_one(test),
        };
        eprintln!("{test}: {VARIABLE}={seed}");
        Self::new(seed)
    }

    /// The seed `seed`, not printed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed, seed }
    }

    /// The initial seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The next number of 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, or 0 when `end` is 0. Uniform up to 1 in 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half of a product of two halves fits")
    }
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn the_same_seed_repeats() {
        let draw = |mut seed: Seed| (0..8).map(|_| seed.next()).collect::<Vec<_>>();
        assert_eq!(draw(Seed::new(7)), draw(Seed::new(7)));
        let (mut a, mut b) = (Seed::new(1), Seed::new(2));
        assert_ne!(a.next(), b.next());
        assert_eq!(a.seed(), 1);
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut seed = Seed::announce("below_stays_below_and_reaches_all");
        let mut seen = [false; 5];
        for _ in 0..500 {
            seen[usize::try_from(seed.below(5)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(seed.below(0), 0);
    }
}
