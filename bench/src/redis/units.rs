//! Encoded commands of the contenders: every check of a walk over all keys.

use crate::keys::{Keys, SUBJECTS};
use crate::wire::{TIME_BLANK, encode};

/// Our script, as the library sends it to Redis 7 and newer.
pub(crate) const CHARGE: &str =
    include_str!("../../../crates/sluicegate/src/store/redis/charge.lua");
pub(crate) const NAIVE: &str = include_str!("naive.lua");
const EMPTY: &str = "return 1";

/// Maximum number of decisions in a call of our script.
const BATCH: usize = 32;

/// 1,000 a day: never exhausted by a run, and not full again before a key's next turn.
const PLENTY: Limit = Limit { tokens: 1000, token_us: 86_400_000 };
/// One an hour, which is exhausted.
const NOTHING: Limit = Limit { tokens: 1, token_us: 3_600_000_000 };

#[derive(Clone, Copy)]
struct Limit {
    tokens: u64,
    token_us: u64,
}

impl Limit {
    fn rate_per_second(self) -> String {
        format!("{:.17}", 1e6 / self.token_us as f64)
    }
}

/// A contender's commands, in the order of a walk.
pub(crate) struct Units {
    pub(crate) name: &'static str,
    /// Name of its command in `INFO commandstats`.
    pub(crate) command: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// End of each unit.
    pub(crate) ends: Vec<usize>,
    /// Positions of the client's time: one for each command, or none.
    pub(crate) times: Vec<usize>,
    /// Number of commands in a unit.
    pub(crate) commands: usize,
    /// Number of checks that these commands make.
    pub(crate) checks: usize,
    /// Number of checks that an answer grants.
    pub(crate) granted: fn(&[i64]) -> usize,
    pub(crate) is_denied: bool,
}

/// Hashes of the scripts that were loaded.
pub(crate) struct Scripts {
    pub(crate) empty: String,
    pub(crate) naive: String,
    pub(crate) charge: String,
}

impl Scripts {
    /// Sources to load, in the order of the fields.
    pub(crate) const SOURCES: [&str; 3] = [EMPTY, NAIVE, CHARGE];
}

pub(crate) const PING: &str = "PING";
pub(crate) const GET: &str = "GET";
pub(crate) const EMPTY_SCRIPT: &str = "empty EVALSHA";
pub(crate) const NAIVE_1: &str = "naive hash script";
pub(crate) const NAIVE_DENIED: &str = "naive hash script, denied";
pub(crate) const NAIVE_3: &str = "3 naive scripts, pipelined";
pub(crate) const CELL: &str = "redis-cell";
pub(crate) const CELL_DENIED: &str = "redis-cell, denied";
pub(crate) const OURS_1: &str = "sluicegate, 1 tier";
pub(crate) const OURS_DENIED: &str = "sluicegate, 1 tier, denied";
pub(crate) const OURS_3: &str = "sluicegate, 3 tiers, one script";
pub(crate) const OURS_BATCH: &str = "sluicegate, 32 checks a call";

/// All contenders, over the same walk.
pub(crate) fn all(scripts: &Scripts, keys: &Keys, has_cell: bool) -> Vec<Units> {
    let mut all = vec![ping(), get(keys), empty(&scripts.empty)];
    all.push(naive(NAIVE_1, &scripts.naive, keys, PLENTY, &["global"]));
    all.push(naive(NAIVE_DENIED, &scripts.naive, keys, NOTHING, &["denied"]));
    if has_cell {
        all.push(cell(CELL, keys, PLENTY, "cell"));
        all.push(cell(CELL_DENIED, keys, NOTHING, "cell-denied"));
    }
    all.push(ours(OURS_1, &scripts.charge, keys, PLENTY, &[1]));
    all.push(ours(OURS_DENIED, &scripts.charge, keys, NOTHING, &[2]));
    all.push(naive(NAIVE_3, &scripts.naive, keys, PLENTY, &["user", "endpoint", "address"]));
    all.push(ours(OURS_3, &scripts.charge, keys, PLENTY, &[3, 4, 5]));
    all.push(ours_batch(&scripts.charge, keys));
    all
}

/// Contenders whose memory is measured.
pub(crate) fn weighed(scripts: &Scripts, keys: &Keys, has_cell: bool) -> Vec<Units> {
    let mut all = vec![
        naive(NAIVE_1, &scripts.naive, keys, PLENTY, &["global"]),
        ours(OURS_1, &scripts.charge, keys, PLENTY, &[1]),
    ];
    if has_cell {
        all.push(cell(CELL, keys, PLENTY, "cell"));
    }
    all
}

fn units(name: &'static str, command: &'static str, granted: fn(&[i64]) -> usize) -> Units {
    Units {
        name,
        command,
        bytes: Vec::new(),
        ends: Vec::new(),
        times: Vec::new(),
        commands: 1,
        checks: 1,
        granted,
        is_denied: false,
    }
}

impl Units {
    fn push(&mut self, words: &[&str]) {
        encode(&mut self.bytes, words);
        self.ends.push(self.bytes.len());
    }
}

fn ping() -> Units {
    let mut units = units(PING, "ping", |_| 1);
    (0..SUBJECTS).for_each(|_| units.push(&["PING"]));
    units
}

fn get(keys: &Keys) -> Units {
    let mut units = units(GET, "get", |_| 1);
    keys.walk().for_each(|subject| units.push(&["GET", keys.ours(subject, 1)]));
    units
}

fn empty(sha: &str) -> Units {
    let mut units = units(EMPTY_SCRIPT, "evalsha", |numbers| numbers[0] as usize);
    (0..SUBJECTS).for_each(|_| units.push(&["EVALSHA", sha, "0"]));
    units
}

/// Sequential script calls, each with the client's current time.
fn naive(name: &'static str, sha: &str, keys: &Keys, limit: Limit, buckets: &[&str]) -> Units {
    let mut units = units(name, "evalsha", |numbers| numbers[0] as usize);
    let (rate, burst) = (limit.rate_per_second(), limit.tokens.to_string());
    for subject in keys.walk() {
        for bucket in buckets {
            let key = format!("rl:user:{subject}:{bucket}");
            encode(&mut units.bytes, &["EVALSHA", sha, "1", &key, &rate, &burst, TIME_BLANK, "1"]);
            let after_time = "\r\n$1\r\n1\r\n".len();
            units.times.push(units.bytes.len() - after_time - TIME_BLANK.len());
        }
        units.ends.push(units.bytes.len());
    }
    units.commands = buckets.len();
    units.is_denied = limit.tokens == 1;
    units
}

fn cell(name: &'static str, keys: &Keys, limit: Limit, bucket: &str) -> Units {
    let mut units = units(name, "cl.throttle", |numbers| usize::from(numbers[0] == 0));
    // It admits one more than its burst.
    let burst = (limit.tokens - 1).to_string();
    let period = (limit.token_us / 1_000_000).to_string();
    for subject in keys.walk() {
        let key = format!("rl:user:{subject}:{bucket}");
        units.push(&["CL.THROTTLE", &key, &burst, "1", &period, "1"]);
    }
    units.is_denied = limit.tokens == 1;
    units
}

/// One decision over plain token buckets: see the top of `charge.lua`.
fn ours(name: &'static str, sha: &str, keys: &Keys, limit: Limit, rules: &[u64]) -> Units {
    let mut units = units(name, "evalsha", |numbers| numbers[1] as usize);
    let (form, cost, cap) = arguments(limit);
    let count = rules.len().to_string();
    for subject in keys.walk() {
        let mut words = vec!["EVALSHA", sha, &count];
        words.extend(rules.iter().map(|rule| keys.ours(subject, *rule)));
        words.push("b");
        rules.iter().for_each(|_| words.extend([form.as_str(), &cost, &cap]));
        units.push(&words);
    }
    units.is_denied = limit.tokens == 1;
    units
}

/// Many decisions, each over one plain token bucket.
fn ours_batch(sha: &str, keys: &Keys) -> Units {
    let granted = |numbers: &[i64]| numbers[1..].iter().step_by(2).sum::<i64>() as usize;
    let mut units = units(OURS_BATCH, "evalsha", granted);
    let (form, cost, cap) = arguments(PLENTY);
    let count = BATCH.to_string();
    let numbers: Vec<_> = (1..=BATCH).map(|number| number.to_string()).collect();
    let walk: Vec<_> = keys.walk().collect();
    for subjects in walk.chunks_exact(BATCH) {
        let mut words = vec!["EVALSHA", sha, &count];
        words.extend(subjects.iter().map(|subject| keys.ours(*subject, 1)));
        words.push("B");
        for number in &numbers {
            words.extend(["1", number.as_str(), &form, &cost, &cap]);
        }
        units.push(&words);
    }
    units.checks = BATCH;
    units
}

/// Form, cost of one token, and capacity, in microseconds.
fn arguments(limit: Limit) -> (String, String, String) {
    let Limit { tokens, token_us } = limit;
    (format!(":{token_us}"), token_us.to_string(), (tokens * token_us).to_string())
}
