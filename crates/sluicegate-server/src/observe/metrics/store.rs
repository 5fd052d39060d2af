//! Metrics that the store counts itself, read at each scrape.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use sluicegate::{AnyStore, BreakerState, MemoryStats, RedisHealth, RoomOwner, TroubleKind};

use crate::observe::overflow::owner_name;

/// Collector of the store's metrics.
#[derive(Debug)]
pub(super) struct StoreFigures(Arc<AnyStore>);

/// Name, help text and value of a metric.
type Figure = (&'static str, &'static str, u64);

impl StoreFigures {
    pub(super) fn of(store: Arc<AnyStore>) -> Self {
        Self(store)
    }
}

impl Collector for StoreFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        match &*self.0 {
            AnyStore::Memory(store) => {
                encode_buckets(&mut encoder, &store.stats())?;
                encode_overflows(&mut encoder, store.overflows())
            }
            AnyStore::Redis(store) => {
                let health = store.health();
                encode_buckets(&mut encoder, &health.local)?;
                encode_overflows(&mut encoder, store.overflows())?;
                encode_redis(&mut encoder, &health)
            }
        }
    }
}

/// Encodes charges that found no room, by rule. Every rule in force is present.
fn encode_overflows(
    encoder: &mut DescriptorEncoder<'_>,
    overflows: Vec<(RoomOwner, u64)>,
) -> Result<(), Error> {
    let help = "Charges that found no room in memory, by rule";
    let mut family = encoder.encode_descriptor("overflow", help, None, MetricType::Counter)?;
    for (owner, charges) in overflows {
        let counter = ConstCounter::new(charges);
        counter.encode(family.encode_family(&[("rule_id", owner_name(owner))])?)?;
    }
    Ok(())
}

/// Encodes the buckets in this process's memory.
fn encode_buckets(encoder: &mut DescriptorEncoder<'_>, stats: &MemoryStats) -> Result<(), Error> {
    gauges(
        encoder,
        &[
            ("buckets", "Buckets in memory", stats.buckets as u64),
            ("buckets_max", "Maximum number of buckets in memory", stats.max_buckets as u64),
            ("take_buckets", "Buckets without a rule in memory", stats.take_buckets as u64),
            (
                "take_buckets_max",
                "Maximum number of buckets without a rule in memory",
                stats.take_buckets_max as u64,
            ),
        ],
    )?;
    counters(encoder, &[("buckets_forgotten", "Full buckets evicted from memory", stats.forgotten)])
}

fn encode_redis(encoder: &mut DescriptorEncoder<'_>, health: &RedisHealth) -> Result<(), Error> {
    let stats = &health.stats;
    let breaker = match health.breaker {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    };
    gauges(
        encoder,
        &[
            (
                "store_breaker",
                "State of the circuit breaker: 0 closed, 1 half open, 2 open",
                breaker,
            ),
            ("store_in_flight", "Decisions in flight to Redis", stats.in_flight),
            ("store_queued", "Decisions queued to be sent to Redis", stats.queued),
            ("deny_cache_entries", "Buckets in the deny cache", health.denied_entries as u64),
        ],
    )?;
    counters(
        encoder,
        &[
            (
                "deny_cache_hits",
                "Charges denied from the deny cache, without Redis",
                health.denied_hits,
            ),
            ("store_calls", "Decisions sent to Redis", stats.calls),
            ("store_batches", "Script calls sent to Redis", stats.batches),
            (
                "store_timeouts",
                "Decisions not answered by Redis within the timeout",
                stats.timeouts,
            ),
            (
                "store_script_reloads",
                "Script calls sent again with the script's source",
                stats.script_reloads,
            ),
            ("store_reconnects", "Connections opened after one was lost", stats.reconnects),
            (
                "store_state_losses",
                "Redis servers found restarted as another process",
                stats.state_losses,
            ),
            ("store_undo_lost", "Charges whose undo was not confirmed", stats.undo_lost),
            ("store_repaired", "Buckets whose Redis key held a foreign value", stats.repaired),
            ("store_redirects", "Redirects to another node of the cluster", stats.redirects),
        ],
    )?;
    encode_errors(encoder, health)
}

/// Encodes failed decisions by kind. Every kind is present from the start.
fn encode_errors(encoder: &mut DescriptorEncoder<'_>, health: &RedisHealth) -> Result<(), Error> {
    let help = "Decisions that failed in Redis, by kind";
    let mut family = encoder.encode_descriptor("store_errors", help, None, MetricType::Counter)?;
    for kind in TroubleKind::ALL {
        let counter = ConstCounter::new(health.stats.errors(kind));
        counter.encode(family.encode_family(&[("kind", kind.name())])?)?;
    }
    Ok(())
}

fn gauges(encoder: &mut DescriptorEncoder<'_>, figures: &[Figure]) -> Result<(), Error> {
    for (name, help, value) in figures {
        let gauge = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
        gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    Ok(())
}

fn counters(encoder: &mut DescriptorEncoder<'_>, figures: &[Figure]) -> Result<(), Error> {
    for (name, help, value) in figures {
        let counter = ConstCounter::new(*value);
        counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
    }
    Ok(())
}
