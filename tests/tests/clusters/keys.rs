//! T32: names of any bytes in a cluster.

use redis::{RedisResult, Value};
use sluicegate::{OnError, RedisStore, Space, Store as _};
use sluicegate_tests::cluster::{Cluster, SLOTS};
use sluicegate_tests::proxy::FaultProxy;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::RedisServer;

use crate::clusters::resharding::error_count;
use crate::clusters::support::{
    BUDGET_LONG, Target, Trial, cluster_url, hardly_any, rounds, shared_cluster,
};

const SCRIPT: &str = include_str!("../../../crates/sluicegate/src/store/redis/charge.lua");

/// Names that would select slots, end keys early or confuse parsers, if they were not hashed.
fn odd_names(seed: &mut Seed) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "",
        "{",
        "}",
        "{}",
        "{a}",
        "}{",
        "{a}{b}",
        "{{a}}",
        "a}b{c",
        "sg:{g}:1",
        "\r\n",
        "a\nb",
        "\0",
        "*1\r\n$4\r\n",
        "é{ü}",
        " ",
        ":",
        "t",
        "g",
        "{g}",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(vec![b'{'; 100_000]);
    names.push(vec![0xff; 65_536]);
    for _ in 0..rounds(100, 2_000) {
        let len = seed.below(64);
        names.push((0..len).map(|_| seed.below(256) as u8).collect());
    }
    names
}

/// Requests whose buckets have such names are charged in a cluster like all others: no node ever replies
/// CROSSSLOT, the slot equals that of the nodes, and no name can select it.
#[test]
fn t32_names_with_braces_and_bytes() {
    let mut trial = Trial::new("t32_names_with_braces_and_bytes");
    let (cluster, proxies) = shared_cluster();
    let url = cluster_url(proxies.iter().map(FaultProxy::port));
    let prefix = format!("t32-{}", trial.seed.seed());
    let store = trial.store(&url, |store| store.prefix(&prefix).budget(BUDGET_LONG));
    let before = (crossed(cluster), unexpected(&store));
    let names = odd_names(&mut trial.seed);
    for (number, name) in names.iter().enumerate() {
        let other = &names[(number + 1) % names.len()];
        let quota = hardly_any(2);
        // Two tiers of one subject, and one of another.
        let tiers = vec![
            (store.key(Space::Rule(number as u64), &[name]), quota),
            (store.key(Space::Rule(1_000_000 + number as u64), &[name, other]), quota),
            (store.key(Space::Rule(2_000_000 + number as u64), &[other, name]), quota),
        ];
        assert_eq!(tiers[0].0.slot(), tiers[1].0.slot(), "{name:?}");
        if number < 200 {
            let slot = cluster.slot_of(tiers[0].0.as_str());
            assert_eq!(slot, tiers[0].0.slot(), "{name:?}");
        }
        let target = Target { tiers, on_error: OnError::Deny };
        for left in [1, 0] {
            let charged = trial.runtime.block_on(store.charge(&target.charges(1))).unwrap();
            let remaining = charged.decisions.iter().map(|decision| decision.remaining);
            assert!(remaining.eq([left; 3]) && !charged.degraded, "{name:?} {charged:?}");
        }
    }
    let (crossed, unexpected) = (crossed(cluster) - before.0, unexpected(&store) - before.1);
    let (chi2, limit) = spread(&store, &mut trial.seed);
    trial.line(&format!(
        "names={} CROSSSLOT={crossed} (0) unexpected={unexpected} (0) spread over 64 groups of slots: chi2 {chi2:.1} (<= \
         {limit})",
        names.len(),
    ));
    assert_eq!((crossed, unexpected), (0, 0));
    assert!(chi2 <= limit, "{chi2}");
}

fn crossed(cluster: &Cluster) -> u64 {
    let errorstats = |node: &RedisServer| node.text(&["INFO", "errorstats"]);
    cluster.nodes().iter().map(|node| error_count(&errorstats(node), "CROSSSLOT")).sum()
}

fn unexpected(store: &RedisStore) -> u64 {
    store.health().stats.errors(sluicegate::TroubleKind::Unexpected)
}

/// Chi-squared of the slots of names that all try to select the same one; and the value that a fair
/// distribution exceeds once in a hundred thousand times (63 degrees of freedom).
fn spread(store: &RedisStore, seed: &mut Seed) -> (f64, f64) {
    const GROUPS: usize = 64;
    const NAMES: usize = 20_000;
    let mut counts = [0_u32; GROUPS];
    for _ in 0..NAMES {
        let name = format!("{{same}}{}", seed.next());
        let slot = store.key(Space::Take, &[name.as_bytes()]).slot();
        counts[usize::from(slot) * GROUPS / usize::from(SLOTS)] += 1;
    }
    let expected = (NAMES / GROUPS) as f64;
    let chi2 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    (chi2, 124.0)
}

/// The script declares all keys that it touches, and the servers enforce it: the same script with one more,
/// undeclared key is refused. Without the header that requires it, it would not be.
#[test]
fn t32_the_servers_refuse_undeclared_keys() {
    let trial = Trial::new("t32_the_servers_refuse_undeclared_keys");
    let (cluster, _) = shared_cluster();
    let (key, other) = two_local_keys(cluster);
    let node = &cluster.nodes()[cluster.owner_of(cluster.slot_of(&key))];
    assert!(SCRIPT.starts_with("#!lua\n"), "the script has the header");
    let undeclared = SCRIPT.replacen(
        "local sub, format",
        &format!("redis.call('SET', '{other}', 'v')\nlocal sub, format"),
        1,
    );
    let run = |script: &str| -> RedisResult<Value> {
        let words = ["EVAL", script, "1", &key, "b", ":1000", "1000", "100000"];
        node.try_command(&words)
    };
    let honest = run(SCRIPT).unwrap();
    assert!(matches!(honest, Value::Array(_)), "{honest:?}");
    let refusal = run(&undeclared).unwrap_err().to_string();
    let headless = run(undeclared.trim_start_matches("#!lua\n"));
    trial.line(&format!("with an undeclared key: {refusal:?}; without the header: {headless:?}"));
    assert!(refusal.contains("slot"), "{refusal}");
    assert!(headless.is_ok(), "VACUOUS: it is refused anyway: {headless:?}");
}

/// Two keys of two slots of one node.
fn two_local_keys(cluster: &Cluster) -> (String, String) {
    let owner = |key: &String| cluster.owner_of(cluster.slot_of(key));
    let key = "undeclared-0".to_owned();
    let home = owner(&key);
    let mut others = (1..).map(|number| format!("undeclared-{number}"));
    let other = others.find(|other| owner(other) == home).unwrap();
    (key, other)
}
