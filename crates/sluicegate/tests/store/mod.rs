//! The proof of the memory store: every line of its contract, under threads, floods and clocks that
//! step back.
//!
//! | module | what it shows |
//! |---|---|
//! | `exact` | T4: whatever the number of threads, exactly N are admitted, by one bucket or by three |
//! | `atomic` | M1: a denied charge charges nothing, shadow tiers included; twins add up |
//! | `naive` | the model: a map of buckets, and the arithmetic applied in the obvious way |
//! | `quotas` | quotas of every form, extreme ones among them |
//! | `differential` | D1: store and model give the same answers on random traces |
//! | `asks`, `together` | M1: the same of limiters that are asked several things at once, probes among them |
//! | `churn` | the same with thousands of buckets coming and going in every shard |
//! | `bound` | the bound holds, and the room that is counted is the room that is used |
//! | `quotas_at_the_bound` | the same where quotas come with the charges, and where buckets are logs |
//! | `flood` | E1, T41: random keys can neither reset a bucket nor lift a limit |
//! | `allocation` | T41: no charge of a bucket that is there allocates; bytes are bounded and given back |
//! | `resident` | T41: the memory of a flood, as the operating system counts it |
//! | `sweep` | E1: only full buckets are forgotten, a bounded number at a time |
//! | `fresh` | D2: denials without a lock are never stale, and never half of another charge |
//! | `keys` | S1, S8: two names never share a bucket |
//! | `support` | what they share |
//!
//! `PROPTEST_CASES` scales the properties (256 is the everyday run), `SLUICEGATE_RUNS` the runs of `exact`
//! (50 is the everyday run, 200 what T4 asks for).

mod allocation;
pub(crate) mod asks;
mod atomic;
mod bound;
mod churn;
mod differential;
mod exact;
mod flood;
mod fresh;
mod keys;
pub(crate) mod naive;
pub(crate) mod quotas;
mod quotas_at_the_bound;
mod resident;
mod support;
mod sweep;
mod together;
