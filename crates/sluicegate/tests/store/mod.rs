//! Proof of the memory store: every line of its contract, under threads, floods and clocks that
//! step back.
//!
//! | module | subject |
//! |---|---|
//! | `exact` | T4: with any number of threads, exactly N are admitted, by one bucket or by three |
//! | `atomic` | M1: a denied charge charges nothing, shadow tiers included; costs of one bucket add up |
//! | `naive` | the model: a map of buckets, and the arithmetic applied in the obvious way |
//! | `quotas` | quotas of every form, including extreme ones |
//! | `differential` | D1: store and model give the same decisions on random traces |
//! | `asks`, `together` | M1: the same for calls of several requests, probes included |
//! | `churn` | the same with thousands of buckets added and removed in every shard |
//! | `bound` | the bound holds, and the counted room is the used room |
//! | `quotas_at_the_bound` | the same with quotas that come with the charges, and buckets that are logs |
//! | `room` | a flood of one kind of key denies no subject of another rule |
//! | `flood` | E1, T41: random keys can neither reset a bucket nor lift a limit |
//! | `allocation` | T41: no charge of a stored bucket allocates; bytes are bounded and freed |
//! | `resident` | T41: the memory of a flood, as reported by the operating system |
//! | `sweep` | E1: only full buckets are evicted, a bounded number at a time |
//! | `fresh` | D2: denials without a lock are never stale, and never half of another charge |
//! | `keys` | S1, S8: two names never share a bucket |
//! | `support` | shared helpers |
//!
//! `PROPTEST_CASES` scales the properties (default 256), `SLUICEGATE_RUNS` the runs of `exact`
//! (default 50; T4 requires 200).

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
mod room;
mod support;
mod sweep;
mod together;
