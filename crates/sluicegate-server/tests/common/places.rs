//! Runs a test on every store or every database.

use serde_json::Value;
use sluicegate_tests::postgres::Postgres;
use sluicegate_tests::servers::{Flavour, RedisServer};

use super::{Launch, Server};

/// Service with these rules from a file, and a store timeout that a slow machine does not exceed.
pub(crate) fn with_rules(rules: &str) -> Launch {
    Launch::serve(&["--rules", "r.toml", "--store-budget-ms", "5000"]).file("r.toml", rules)
}

/// Runs a test in memory and in Redis.
pub(crate) fn on_every_store(launch: impl Fn() -> Launch, test: impl Fn(&Server)) {
    test(&launch().start());
    let redis = RedisServer::start(Flavour::Redis70);
    test(&launch().env("SLUICEGATE_STORE_URL", &redis.url()).start());
}

/// Runs a test on both databases.
pub(crate) fn on_every_database(launch: impl Fn() -> Launch, test: impl Fn(&Server)) {
    test(&launch().start());
    let postgres = Postgres::start();
    let url = postgres.create("places");
    test(&launch().env("SLUICEGATE_DATABASE_URL", &url).start());
}

/// Verdict on a request.
pub(crate) fn check(server: &Server, request: &Value) -> Value {
    let response = server.post_json("/v1/check", &request.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}
