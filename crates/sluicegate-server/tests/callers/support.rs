//! Services with callers.

use std::time::Duration;

use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{Author, CallerSpec, Database, Right, Rights, Role};
use sluicegate_server::time::Timestamp;
use sluicegate_server::tokens;

use crate::common::{Launch, Server, eventually, with_rules};

/// A rule that never denies in these tests.
pub(super) const RULES: &str =
    "[[rule]]\nrule_id = 1\nkey_pattern = \"user:{user_id}\"\ntokens = 1000000\nperiod = \"1h\"\n";

/// Service with all doors that does not lock out a test which sends many wrong tokens.
pub(super) fn launch(rules: &str) -> Launch {
    with_rules(rules).with_grpc().with_resp().env("SLUICEGATE_ADMIN_FAILURES_PER_MINUTE", "1000000")
}

/// A caller to be created: its name and its rights, by their names.
pub(crate) fn spec(name: &str, rights: &[Right]) -> CallerSpec {
    CallerSpec {
        name: name.into(),
        rights: rights.iter().copied().collect(),
        namespace: None,
        certificate: None,
        expires_at: None,
    }
}

/// A caller with every right in a namespace.
pub(super) fn in_namespace(name: &str, namespace: &str) -> CallerSpec {
    CallerSpec { rights: Rights::ALL, namespace: Some(namespace.into()), ..spec(name, &[]) }
}

/// A caller that has expired.
pub(super) fn expired(name: &str) -> CallerSpec {
    let expires_at = Some(Timestamp::from_micros(1_000_000));
    CallerSpec { expires_at, ..spec(name, &Right::ALL) }
}

/// Runs `act` on the service's database, like another process.
fn on_database<T>(server: &Server, act: impl AsyncFnOnce(Database) -> T) -> T {
    let url = format!("sqlite:{}", server.folder().join("sluicegate.db").display());
    let url = DatabaseUrl::parse(&url).unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let database = Database::open(&url, Duration::from_secs(10)).await.unwrap();
        act(database).await
    })
}

/// Creates callers and waits until the service knows them. Returns their tokens, in order.
pub(crate) fn create(server: &Server, specs: &[CallerSpec]) -> Vec<String> {
    let author = Author::new("test");
    let now = Timestamp::now();
    let expected = specs.iter().filter(|spec| spec.expires_at.is_none_or(|at| at > now)).count();
    let before = in_force(server);
    let created = on_database(server, async |database| {
        let mut created = Vec::new();
        for spec in specs {
            let (token, hash) = tokens::mint().unwrap();
            database.create_caller(spec, Some(&hash), &author).await.unwrap();
            created.push(token.expose().to_owned());
        }
        created
    });
    wait_for(server, before + expected);
    created
}

/// Revokes a caller.
pub(super) fn revoke(server: &Server, name: &str) {
    on_database(server, async |database| {
        database.delete_caller(name, &Author::new("test")).await.unwrap();
    });
}

/// Creates a token of the administration.
pub(super) fn admin_token(server: &Server, name: &str, role: Role) -> String {
    let (token, hash) = tokens::mint().unwrap();
    on_database(server, async |database| {
        database.create_token(name, role, &hash, &Author::new("test")).await.unwrap();
    });
    token.expose().to_owned()
}

/// Waits until this many callers are in force.
pub(super) fn wait_for(server: &Server, callers: usize) {
    eventually("the callers", || (in_force(server) == callers).then_some(()));
}

fn in_force(server: &Server) -> usize {
    metric(server, "sluicegate_callers ")
}

/// Value of a metric whose line begins like this.
pub(super) fn metric(server: &Server, start: &str) -> usize {
    let metrics = server.get("/metrics").body;
    let mut lines = metrics.lines();
    let value =
        lines.find_map(|line| line.strip_prefix(start)).unwrap_or_else(|| panic!("{start}"));
    value.trim().parse().unwrap()
}
