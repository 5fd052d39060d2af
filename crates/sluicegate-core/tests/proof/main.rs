//! The proof of the arithmetic: every promise of the crate, tested from every reachable state
//! against models that are obviously right rather than fast.
//!
//! | module | what it is |
//! |---|---|
//! | `bucket` | a bucket as a store keeps it, and the steps that drive it |
//! | `strategies` | quotas, extreme ones among them, and buckets in any reachable state |
//! | `bounds` | bounds of each algorithm over any interval of time |
//! | `oracle` | naive models of every algorithm, which share no arithmetic with the crate |
//! | `traces` | every algorithm against its model, figure by figure |
//! | `exhaustive` | the same on a small domain, with nothing left out |
//! | `conformance` | C1 window bound, C2 tightness, C3 exact retry, C4 poll independence, C5 GCRA |
//! | `arithmetic` | A2 step split, A6 totality |
//! | `costs` | K1 never, K2 peek, K3 refund |
//! | `clock` | T2 clock step |
//! | `change` | U1 quota change |
//! | `expiry` | E1 forget only full |
//! | `doubles` | the same answers from doubles, as Lua has them |
//! | `regressions` | bugs of other limiters |
//! | `quotas` | text forms and refusals |
//!
//! Every property is tried on 10 000 cases of some twenty steps each; `PROPTEST_CASES` says
//! otherwise.

#![cfg(test)]

mod arithmetic;
mod bounds;
mod bucket;
mod change;
mod clock;
mod conformance;
mod costs;
mod doubles;
mod exhaustive;
mod expiry;
mod oracle;
mod quotas;
mod regressions;
mod strategies;
mod traces;
