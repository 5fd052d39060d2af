//! Workloads: keys, their order, and the share of denials, the same for every contender.
//!
//! All sequences are drawn from fixed seeds before anything is timed, and are the same for all contenders.
//! Keys are text, `user:` and a number: most limits have such keys, and some libraries accept no others. They
//! lie in memory in the order of the sequence, as warm as a key that has just been parsed. For libraries
//! that accept any type, numeric keys are measured too, under a separate name.

/// Keys of the large workloads.
pub(crate) const MANY: u64 = 1_000_000;
/// Length of a sequence for many keys. Each round begins at another position.
pub(crate) const STEPS: usize = 1 << 20;

/// Every limit is one token in six minutes with this burst: more than a run takes from any key, and an
/// exhausted key stays exhausted on a busy machine. Their product is near the largest that all contenders
/// represent exactly.
pub(crate) const BURST: u32 = 10_000_000;
pub(crate) const PERIOD_SECS: u64 = 360;
/// Tokens taken from every key before the start, so that all have a state that must be kept for minutes.
/// A million times this is well below a burst: shared tiers are not exhausted.
pub(crate) const SPENT: u32 = 1;

/// Order of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Hot,
    Uniform,
    Zipf,
}

/// Share of denials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denials {
    None,
    /// Of many keys, every other one is exhausted. Of one key, every other charge, at random, is for a
    /// full bucket's worth of tokens, which it never has.
    Half,
    /// The key is exhausted.
    All,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) order: Order,
    pub(crate) denials: Denials,
}

/// One check.
#[derive(Clone, Debug)]
pub(crate) struct Step<K> {
    pub(crate) key: K,
    pub(crate) cost: u32,
}

/// The same steps for each kind of key.
pub(crate) struct Steps {
    texts: Vec<Step<String>>,
    numbers: Vec<Step<u64>>,
}

/// Kind of key of a sequence.
pub(crate) trait Key: Sized + Sync {
    fn of(id: u64) -> Self;
    fn steps(steps: &Steps) -> &[Step<Self>];
}

impl Workload {
    pub(crate) fn name(self) -> String {
        let order = match self.order {
            Order::Hot => "one hot key",
            Order::Uniform => "1M keys, uniform",
            Order::Zipf => "1M keys, Zipf",
        };
        let denials = match self.denials {
            Denials::None => "allowed",
            Denials::Half => "half denied",
            Denials::All => "denied",
        };
        format!("{order}, {denials}")
    }

    /// Number of keys.
    pub(crate) fn keys(self) -> u64 {
        if self.order == Order::Hot { 1 } else { MANY }
    }

    /// Tokens taken from a key before the start.
    pub(crate) fn taken_before(self, id: u64) -> u32 {
        match self.denials {
            Denials::All => BURST,
            Denials::Half if self.order != Order::Hot && id % 2 == 1 => BURST,
            Denials::None | Denials::Half => SPENT,
        }
    }

    /// Expected share of denials, within a few percent: an exhausted key is refilled from time to time.
    pub(crate) fn denied_share(self) -> f64 {
        match self.denials {
            Denials::None => 0.0,
            Denials::Half => 0.5,
            Denials::All => 1.0,
        }
    }

    /// The first `length` steps.
    pub(crate) fn steps(self, length: usize) -> Steps {
        let mut random = fastrand::Rng::with_seed(7);
        let zipf = (self.order == Order::Zipf).then(Zipf::new);
        let numbers: Vec<_> = (0..length)
            .map(|_| {
                let key = match &zipf {
                    Some(zipf) => zipf.draw(&mut random),
                    None => random.u64(0..self.keys()),
                };
                let too_much = self.denials == Denials::Half && self.order == Order::Hot;
                let cost = if too_much && random.bool() { BURST } else { 1 };
                Step { key, cost }
            })
            .collect();
        Steps::new(numbers)
    }
}

impl Steps {
    fn new(numbers: Vec<Step<u64>>) -> Self {
        let texts = numbers
            .iter()
            .map(|step| Step { key: String::of(step.key), cost: step.cost })
            .collect();
        Self { texts, numbers }
    }

    /// Every key once, in random order.
    pub(crate) fn each_once(keys: u64) -> Self {
        let mut numbers: Vec<_> = (0..keys).map(|key| Step { key, cost: 1 }).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut numbers);
        Self::new(numbers)
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl Key for u64 {
    fn of(id: u64) -> Self {
        id
    }

    fn steps(steps: &Steps) -> &[Step<Self>] {
        &steps.numbers
    }
}

impl Key for String {
    fn of(id: u64) -> Self {
        format!("user:{id}")
    }

    fn steps(steps: &Steps) -> &[Step<Self>] {
        &steps.texts
    }
}

/// Key k with a probability proportional to 1 / (k + 1).
struct Zipf {
    /// Cumulative weights.
    up_to: Vec<f64>,
}

impl Zipf {
    fn new() -> Self {
        let mut sum = 0.0;
        let weigh = |id: u64| {
            sum += 1.0 / (id + 1) as f64;
            sum
        };
        Self { up_to: (0..MANY).map(weigh).collect() }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        let point = random.f64() * self.up_to[self.up_to.len() - 1];
        self.up_to.partition_point(|weight| *weight <= point) as u64
    }
}
