//! Buckets in Redis, shared by any number of processes.
//!
//! ```text
//!   charge ──▶ deny_cache ── known to be denied ──▶ answer
//!                  │ else
//!                  ▼
//!   topology: one server, a sentinel's master, or the nodes of a cluster, by slot
//!                  │
//!                  ▼
//!   link: queued calls are sent as one call of the script ──▶ charge.lua, in Redis
//!                  │ states that the script saw          │ error or timeout
//!                  ▼                                     ▼
//!   decide: the figures, by sluicegate-core         local: each rule's policy
//! ```

mod alarm;
mod breaker;
mod builder;
mod call;
mod classify;
mod cluster;
mod connect;
mod decide;
mod deny_cache;
mod dial;
mod flight;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod key;
mod link;
mod local;
mod script;
mod sentinel;
mod settings;
mod share;
mod slots;
mod stats;
mod store;
mod tls;
mod topology;
mod trouble;
mod url;

pub use breaker::BreakerState;
pub use builder::{RedisStartError, RedisStoreBuilder};
pub use connect::{Unfit, Version};
pub use key::RedisKey;
pub use settings::{OnEviction, SettingsError};
pub use stats::RedisStats;
pub use store::{RedisHealth, RedisStore};
pub use tls::{TlsFiles, TlsFilesError};
pub use trouble::{Trouble, TroubleKind};
pub use url::{RedisUrl, RedisUrlError};
