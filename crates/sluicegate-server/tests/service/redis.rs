//! Buckets in a real Redis: shared between processes, and rejected configurations.

use std::thread;

use serde_json::{Value, json};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::tls::{Certificates, ServerCertificate};

use crate::common::{Launch, Server};

/// Service on this Redis, with a time budget that a busy machine does not exceed.
pub(crate) fn patient(redis: &RedisServer) -> Launch {
    Launch::serve(&["--store-budget-ms", "5000"]).env("SLUICEGATE_STORE_URL", &redis.url())
}

/// Takes a token from a bucket of this capacity that hardly refills.
pub(crate) fn take(server: &Server, key: &str, capacity: u64) -> Value {
    let body = json!({
        "key": key, "capacity": capacity, "refill_rate": 1, "refill_interval": 3000,
    });
    let response = server.post_json("/v1/take", &body.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    let is_degraded = response.header("x-sluicegate-degraded") == Some("true");
    let answer = response.json();
    assert_eq!(answer.get("degraded").is_some(), is_degraded, "{response:?}");
    answer
}

/// Value of a metric.
pub(crate) fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in\n{metrics}")).parse().unwrap()
}

#[test]
fn processes_on_one_redis_share_one_limit_exactly() {
    let redis = RedisServer::start(Flavour::Redis70);
    let servers = [patient(&redis).start(), patient(&redis).start()];
    let allowed: usize = thread::scope(|scope| {
        let ask = |server| {
            scope.spawn(move || {
                let answers = (0..40).map(|_| take(server, "shared", 50));
                let answers: Vec<_> = answers.collect();
                assert!(answers.iter().all(|answer| answer.get("degraded").is_none()));
                answers.iter().filter(|answer| answer["allowed"] == true).count()
            })
        };
        let threads: Vec<_> = servers.iter().chain(&servers).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(allowed, 50);

    // The other process sees charges and resets at once.
    let login = json!({"ip": "203.0.113.9", "endpoint": "/login"}).to_string();
    let remaining =
        |server: &Server| server.post_json("/v1/check", &login).json()["remaining"].clone();
    assert_eq!([remaining(&servers[0]), remaining(&servers[1])], [json!(4), json!(3)]);
    assert_eq!(servers[0].request("DELETE", "/v1/buckets/shared", &[], "").status, 204);
    assert_eq!(take(&servers[0], "shared", 50)["remaining"], 49);

    // Another prefix shares no buckets.
    let other = patient(&redis).env("SLUICEGATE_STORE_PREFIX", "other").start();
    assert_eq!(take(&other, "shared", 50)["remaining"], 49);
}

#[test]
fn a_batch_is_charged_in_its_order_in_a_few_calls() {
    let redis = RedisServer::start(Flavour::Valkey9);
    let rules = "[[rule]]\nrule_id = 1\nkey_pattern = \"user:{user_id}\"\ntokens = 1\nperiod = \"1d\"\n\
                 burst_capacity = 60\n";
    let server = patient(&redis).args(&["--rules", "r.toml"]).file("r.toml", rules).start();
    let members = vec![json!({"user_id": "42"}); 100];
    let response = server.post_json("/v1/check/batch", &json!(members).to_string());
    let answer = response.json();
    let remaining: Vec<_> = answer["results"].as_array().unwrap().iter().collect();
    for (position, result) in (0..100_u64).zip(remaining) {
        assert_eq!(result["allowed"], position < 60, "{position}: {result}");
        assert_eq!(result["remaining"], 59_u64.saturating_sub(position), "{position}: {result}");
    }
    assert!(metric(&server, "sluicegate_store_batches_total") < 50);
}

#[test]
fn requests_to_redis_are_measured() {
    let redis = RedisServer::start(Flavour::Redis8);
    let server = patient(&redis).start();
    for _ in 0..20 {
        take(&server, "k", 5);
    }
    let calls = metric(&server, "sluicegate_store_calls_total");
    let hits = metric(&server, "sluicegate_deny_cache_hits_total");
    assert!(calls >= 6 && calls + hits >= 20, "{calls} calls, {hits} hits");
    assert_eq!(metric(&server, "sluicegate_deny_cache_entries"), 1);
    assert_eq!(metric(&server, "sluicegate_store_breaker"), 0);
    assert_eq!(metric(&server, "sluicegate_store_errors_total{kind=\"timeout\"}"), 0);
    assert_eq!(metric(&server, "sluicegate_degraded_total{on_error=\"local\"}"), 0);
    assert_eq!(metric(&server, "sluicegate_buckets"), 0);
    for name in ["batches", "timeouts", "script_reloads", "reconnects", "state_losses", "undo_lost"]
    {
        metric(&server, &format!("sluicegate_store_{name}_total"));
    }
    for name in ["repaired_total", "redirects_total", "in_flight", "queued"] {
        assert_eq!(metric(&server, &format!("sluicegate_store_{name}")), 0);
    }
    let verbose = server.get("/readyz?verbose").body;
    let note = format!("[+]store ok\n    redis 127.0.0.1:{}: breaker closed\n", redis.port());
    assert!(verbose.contains(&note), "{verbose}");

    let without = patient(&redis).env("SLUICEGATE_STORE_DENY_CACHE_MAX", "0").start();
    for _ in 0..5 {
        assert_eq!(take(&without, "k", 5)["allowed"], false);
    }
    assert_eq!(metric(&without, "sluicegate_deny_cache_hits_total"), 0);
}

#[test]
fn a_wrong_password_is_exit_code_3_and_the_right_one_is_not_shown() {
    const CANARY: &str = "canary-d41d8cd98f";
    let redis = RedisServer::builder(Flavour::Redis70).requirepass(CANARY).start();
    let with = |password: &str| format!("redis://:{password}@127.0.0.1:{}", redis.port());

    let wrong = patient(&redis).env("SLUICEGATE_STORE_URL", &with("wrong-0b3f")).run();
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    let said =
        format!("error: cannot use the store redis://:***@127.0.0.1:{}/0: auth: ", redis.port());
    assert!(wrong.stderr.contains(&said), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("= help: put the right user and password"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("wrong-0b3f"), "{}", wrong.stderr);
    assert_eq!(patient(&redis).run().code, Some(3), "no password at all");

    let server = patient(&redis)
        .args(&["--log-level", "trace"])
        .without_env("SLUICEGATE_STORE_URL")
        .file("url", &with(CANARY))
        .env("SLUICEGATE_STORE_URL_FILE", "url")
        .start();
    assert!(take(&server, "k", 1).get("degraded").is_none());
    let seen = [server.get("/readyz?verbose").body, server.get("/metrics").body].concat();
    server.signal("TERM");
    let seen = seen + &server.wait().stderr;
    assert!(seen.contains("redis://:***@127.0.0.1"), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
}

#[test]
fn a_redis_that_forgets_is_warned_about_or_refused() {
    let redis = RedisServer::builder(Flavour::Valkey8)
        .config("maxmemory 100mb")
        .config("maxmemory-policy allkeys-lru")
        .start();
    let server = patient(&redis).start();
    let warning = server.wait_for_line(|line| line.contains("maxmemory-policy is allkeys-lru"));
    assert!(warning.contains("\"WARN\""), "{warning}");
    let refused = patient(&redis).env("SLUICEGATE_STORE_ON_EVICTION", "refuse").run();
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("maxmemory-policy is allkeys-lru"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("= help: or set store.on_eviction to warn"),
        "{}",
        refused.stderr
    );
}

#[test]
fn redis_over_tls_is_trusted_or_refused() {
    let certificates = Certificates::new();
    let redis = RedisServer::builder(Flavour::Redis70)
        .tls(&certificates, ServerCertificate::Good)
        .config("tls-auth-clients yes")
        .start();
    let url = format!("rediss://127.0.0.1:{}", redis.tls_port());
    let launch = |authority: &str| {
        let client = certificates.client();
        patient(&redis)
            .env("SLUICEGATE_STORE_URL", &url)
            .env("SLUICEGATE_STORE_TLS_CA", authority)
            .env("SLUICEGATE_STORE_TLS_CERTIFICATE", client.certificate.to_str().unwrap())
            .env("SLUICEGATE_STORE_TLS_KEY", client.key.to_str().unwrap())
    };
    let server = launch(certificates.authority().to_str().unwrap()).start();
    assert!(take(&server, "k", 1).get("degraded").is_none());
    let refused = launch(certificates.other_authority().to_str().unwrap()).run();
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("/0: tls: "), "{}", refused.stderr);
    assert!(refused.stderr.contains("= help: check store.tls_ca"), "{}", refused.stderr);
}

#[test]
fn a_socket_is_as_good_as_a_port() {
    let redis = RedisServer::builder(Flavour::Redis62).unix_socket().start();
    let url = format!("unix:{}", redis.unix_socket().display());
    let server = patient(&redis).env("SLUICEGATE_STORE_URL", &url).start();
    assert!(take(&server, "k", 9).get("degraded").is_none());
    assert_eq!(take(&patient(&redis).start(), "k", 9)["remaining"], 7);
}

/// The buckets of address, login and global rule are in slots of different nodes.
#[test]
fn a_cluster_charges_all_or_none() {
    let cluster = Cluster::start(Flavour::Redis8);
    let addresses: Vec<_> =
        cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let url = format!("redis+cluster://{}", addresses.join(","));
    let server =
        Launch::serve(&["--store-budget-ms", "5000"]).env("SLUICEGATE_STORE_URL", &url).start();
    let login = json!({"ip": "203.0.113.9", "endpoint": "/login"}).to_string();
    for position in 0..8 {
        let answer = server.post_json("/v1/check", &login).json();
        assert_eq!(answer["allowed"], position < 5, "{answer}");
        assert_eq!(answer.get("degraded"), None, "{answer}");
    }
}

#[test]
fn a_cluster_and_a_lone_server_are_not_taken_for_each_other() {
    let redis = RedisServer::start(Flavour::Redis62);
    let url = format!("redis+cluster://127.0.0.1:{}", redis.port());
    let refused = patient(&redis).env("SLUICEGATE_STORE_URL", &url).run();
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("is not part of a cluster"), "{}", refused.stderr);
}
