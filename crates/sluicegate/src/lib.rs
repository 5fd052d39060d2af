//! Exact token-bucket rate limiting, atomic over many tiers: the library.
//!
//! A request carries attributes and a cost; rules turn it into a few buckets; one atomic step charges
//! all of those buckets or none; the answer says yes, not yet (and exactly when), or never, and which
//! rule said so.
//!
//! # Limit something in five lines
//!
//! ```
//! use sluicegate::{KeyedLimiter, Quota};
//!
//! let limiter = KeyedLimiter::<str>::new("login", Quota::per_minute(5)?);
//! let decision = limiter.take("203.0.113.9", 1);
//! assert!(decision.is_granted());
//! # Ok::<(), sluicegate::QuotaError>(())
//! ```
//!
//! # Overview
//!
//! - [`KeyedLimiter`]: one quota, keys of any type, in this process.
//! - [`Limiter`]: rules by user, endpoint, address and plan, over any [`store`]; and buckets by name
//!   without rules ([`Limiter::take`]).
//! - [`Limiter::check_together`]: several requests and buckets at once, all of them or none.
//! - [`RuleSet`] and [`Rule`]: the rules; feature `file` reads them from `rules.toml`. [`Overrides`] are for single
//!   customers: another quota, no limit, or a block.
//! - [`Bucket`]: one bucket of a rule, to peek into and to fill up ([`Limiter::bucket`]).
//! - `headers` and `client_ip`, with the feature `http`: the header fields of answers, and the address of a client
//!   behind proxies.
//! - `middleware`, with the feature `tower`: a layer around services of axum, tonic or hyper, and one around clients.
//! - [`Quota`] and the rest of [`sluicegate_core`]: the arithmetic alone.
//!
//! # Time
//!
//! Stores take the time from a [`Clock`]; tests give them a [`ManualClock`]. Waits are exact: after
//! `retry_after` the same charge is granted if no other charge came between, and not a microsecond
//! earlier.
//!
//! # Features
//!
//! - `axum`: `tower`, and its layer knows axum's route templates and peers.
//! - `file`: reading rules from `rules.toml`, with errors that show the line.
//! - `http`: the header fields of answers, and clients' addresses, for any server that speaks with the `http` crate.
//! - `redis`: [`RedisStore`], buckets that any number of processes share.
//! - `tokio`: waiting for tokens, [`Limiter::until_granted`], [`Limiter::until_allowed`] and
//!   [`KeyedLimiter::until_granted`].
//! - `tower`: `RateLimitLayer` and `OutgoingLayer`.
//!
//! # Minimum supported Rust version
//!
//! Rust 1.88; raised only in a minor release and never to a version younger than six months.

mod backoff;
mod bucket;
#[cfg(feature = "http")]
pub mod client_ip;
mod clock;
mod compat;
#[cfg(feature = "http")]
pub mod headers;
mod in_process;
mod keyed;
mod limiter;
#[cfg(feature = "tower")]
pub mod middleware;
mod request;
mod reservation;
pub mod rules;
pub mod store;
#[cfg(feature = "file")]
mod suggest;
mod sync;
mod tiers;
mod together;
mod verdict;
#[cfg(feature = "tokio")]
mod wait;

#[doc(hidden)]
pub use backoff::Backoff;
pub use bucket::Bucket;
pub use clock::{Clock, ManualClock, SystemClock};
pub use in_process::InProcessLimiter;
pub use keyed::KeyedLimiter;
pub use limiter::Limiter;
pub use request::Request;
pub use reservation::Reservation;
pub use rules::{Mode, OnError, Override, Overrides, PathForm, Rule, RuleSet, Scope};
#[doc(hidden)]
pub use sluicegate_core::named_values;
pub use sluicegate_core::{
    Algorithm, Decimal, DecimalError, Decision, Micros, Outcome, Quota, QuotaError, QuotaField,
    Rate, RateError, Refill, UnknownName, parse_duration,
};
#[cfg(feature = "redis")]
pub use store::any::{AnyKey, AnyStore};
pub use store::memory::{
    MAX_BUCKETS_DEFAULT, MAX_BUCKETS_MAX, MemoryKey, MemoryStats, MemoryStore, MemoryStoreBuilder,
    OnFull, ReservedRoom, RoomOwner,
};
#[cfg(feature = "redis")]
#[doc(hidden)]
pub use store::redis::fuzzing;
#[cfg(feature = "redis")]
pub use store::redis::{
    BreakerState, OnEviction, RedisHealth, RedisKey, RedisStartError, RedisStats, RedisStore,
    RedisStoreBuilder, RedisUrl, RedisUrlError, SettingsError, TlsFiles, TlsFilesError, Trouble,
    TroubleKind, Unfit, Version,
};
pub use store::{Charge, Charged, Decisions, InProcess, LocalStore, Space, Store};
#[cfg(feature = "file")]
#[doc(hidden)]
pub use suggest::closest;
pub use together::{ASKS_MAX, Answer, Ask, Together};
pub use verdict::{Tier, Verdict};
#[cfg(feature = "tokio")]
pub use wait::WaitError;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/middleware.md")]
struct MiddlewareGuide;
