//! Figures that the store keeps itself, read when somebody asks.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use sluicegate::{AnyStore, BreakerState, MemoryStats, RedisHealth, TroubleKind};

/// The figures of this store.
#[derive(Debug)]
pub(super) struct StoreFigures(Arc<AnyStore>);

/// A figure's name, what it is, and its value.
type Figure = (&'static str, &'static str, u64);

impl StoreFigures {
    pub(super) fn of(store: Arc<AnyStore>) -> Self {
        Self(store)
    }
}

impl Collector for StoreFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        match &*self.0 {
            AnyStore::Memory(store) => encode_buckets(&mut encoder, &store.stats()),
            AnyStore::Redis(store) => {
                let health = store.health();
                encode_buckets(&mut encoder, &health.local)?;
                encode_redis(&mut encoder, &health)
            }
        }
    }
}

/// The buckets of this process.
fn encode_buckets(encoder: &mut DescriptorEncoder<'_>, stats: &MemoryStats) -> Result<(), Error> {
    gauges(
        encoder,
        &[
            ("buckets", "Buckets remembered", stats.buckets as u64),
            ("buckets_max", "The most buckets that may be", stats.max_buckets as u64),
        ],
    )?;
    counters(
        encoder,
        &[
            ("buckets_forgotten", "Full buckets that were forgotten", stats.forgotten),
            ("overflow", "Charges of new keys that found the store full", stats.overflowed),
        ],
    )
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
            ("store_breaker", "Whether Redis is asked: 0 yes, 1 a probe is, 2 no", breaker),
            ("store_in_flight", "Decisions on their way to Redis", stats.in_flight),
            ("store_queued", "Decisions that wait to be sent to Redis", stats.queued),
            ("deny_cache_entries", "Denied buckets remembered", health.denied_entries as u64),
        ],
    )?;
    counters(
        encoder,
        &[
            ("deny_cache_hits", "Charges denied without asking Redis", health.denied_hits),
            ("store_calls", "Decisions sent to Redis", stats.calls),
            ("store_batches", "Script calls they were sent in", stats.batches),
            ("store_timeouts", "Decisions not answered within the budget", stats.timeouts),
            (
                "store_script_reloads",
                "Script calls sent again with the source",
                stats.script_reloads,
            ),
            ("store_reconnects", "Connections made after one was lost", stats.reconnects),
            ("store_state_losses", "Servers that came back as another process", stats.state_losses),
            ("store_undo_lost", "Charges whose undo was not confirmed", stats.undo_lost),
            ("store_repaired", "Buckets that held something else", stats.repaired),
            ("store_redirects", "Answers that pointed to another node", stats.redirects),
        ],
    )?;
    encode_errors(encoder, health)
}

/// Decisions that ended in trouble, by kind: all kinds, so that each begins with zero.
fn encode_errors(encoder: &mut DescriptorEncoder<'_>, health: &RedisHealth) -> Result<(), Error> {
    let help = "Decisions that ended in trouble, by kind";
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
