//! The library as its users see it: rules, verdicts, buckets, waiting, files.
//!
//! | module | what it is |
//! |---|---|
//! | `support` | limiters on a clock that stands still |
//! | `patterns` | key patterns, and errors that point at the character |
//! | `globs` | globs against a matcher that backtracks |
//! | `conditions` | globs that must match, and exceptions |
//! | `specs` | rules column by column, with everything that is wrong |
//! | `sets` | clashes between two rules |
//! | `matching` | rules that apply, case by case |
//! | `index` | rules that apply, against a scan of all rules |
//! | `costly` | many or hostile rules: the work of matching is bounded |
//! | `explain` | reasons why rules apply or not, against the same scan |
//! | `replacing` | rules that replace others, and rules without a limit |
//! | `verdicts` | M1 all or nothing, M2 the longest wait, and the figures on top |
//! | `shadow` | shadow rules: recorded, never enforced |
//! | `algorithms` | all algorithms in one verdict, delays, K1 never, K2 peek |
//! | `reload` | U1 no free refill, U3 snapshots, U5 no ghosts, T34 reload under load |
//! | `overrides` | overrides of single subjects; with them M1, U1, U3, U5 |
//! | `starter` | the starter rules, and scenarios of earlier limiters |
//! | `buckets` | buckets without rules: take, peek, refund, reset |
//! | `rule_buckets` | buckets of rules, one by one: peek, refund, grant, reset |
//! | `keyed` | the typed limiter |
//! | `reservations` | K3 refund once, and settling |
//! | `waiting` | `until_granted`, `until_allowed` |
//! | `types` | types that may be sent between threads |
//! | `file` | `rules.toml` that is right |
//! | `file_written` | `rules.toml` that is written, and read back |
//! | `file_errors` | `rules.toml` that is not |
//! | `examples` | the examples run |

mod algorithms;
mod buckets;
mod conditions;
mod costly;
mod examples;
mod explain;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "file")]
mod file_errors;
#[cfg(feature = "file")]
mod file_written;
mod globs;
mod index;
mod keyed;
mod matching;
mod overrides;
mod patterns;
mod reload;
mod replacing;
mod reservations;
mod rule_buckets;
mod sets;
mod shadow;
mod specs;
mod starter;
mod support;
mod types;
mod verdicts;
#[cfg(feature = "tokio")]
mod waiting;
