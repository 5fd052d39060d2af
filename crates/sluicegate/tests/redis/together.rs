//! M1 over several requests, in Redis and in a cluster: the same figures as in memory.

use std::time::Duration;

use sluicegate::{Algorithm, Limiter, ManualClock, Quota, RedisStore};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::store::asks::{Pair, START, Tally};
use crate::store::quotas;

const ROUNDS: u64 = 12;
const STEPS_PER_ROUND: u64 = 250;
const BUDGET: Duration = Duration::from_secs(5);

async fn agree(seed: &mut Seed, url: &str, quotas: &[Quota]) -> Tally {
    let mut tally = Tally::default();
    for round in 0..ROUNDS {
        let clock = ManualClock::new(START);
        let store = RedisStore::builder(url).unwrap().prefix(&format!("m{round}"));
        let store = store.clock(clock.clone()).budget(BUDGET).deny_cache_max(0).build().unwrap();
        let mut pair = Pair::new(store, clock, seed, quotas);
        for _ in 0..STEPS_PER_ROUND {
            pair.step(&mut tally).await;
            until_undone(&pair.limiter).await;
        }
        assert_eq!(pair.limiter.store().health().stats.undo_lost, 0);
    }
    println!("{tally:?}, no mismatch");
    assert!(tally.granted > 100 && tally.denied > 100 && tally.by_probe > 20, "{tally:?}");
    tally
}

/// A cluster undoes grants of slots in separate tasks when other slots denied.
async fn until_undone(limiter: &Limiter<RedisStore>) {
    let quiet = async {
        loop {
            // Spawned tasks run, so that they have sent their calls.
            tokio::task::yield_now().await;
            let stats = limiter.store().health().stats;
            if stats.in_flight == 0 && stats.queued == 0 {
                return;
            }
        }
    };
    tokio::time::timeout(BUDGET, quiet).await.expect("it is undone in time");
}

#[tokio::test]
async fn m1_together_redis_and_the_model_agree() {
    let mut seed = Seed::announce("m1_together_redis_and_the_model_agree");
    for flavour in [Flavour::Redis62, Flavour::Redis70, Flavour::Valkey9] {
        let server = RedisServer::start(flavour);
        agree(&mut seed, &server.url(), &quotas::small()).await;
    }
}

/// A place in a queue is not taken back from those behind it: there are none here.
#[tokio::test]
async fn m1_together_a_cluster_and_the_model_agree() {
    let mut seed = Seed::announce("m1_together_a_cluster_and_the_model_agree");
    let cluster = Cluster::start(Flavour::Redis70);
    let hosts: Vec<_> =
        cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyBucket;
    let quotas: Vec<_> = quotas::small().into_iter().filter(|quota| !is_queue(quota)).collect();
    agree(&mut seed, &format!("redis+cluster://{}", hosts.join(",")), &quotas).await;
}
