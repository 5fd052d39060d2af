//! T25: all operations of a store, as the documented user, over every kind of connection, on every server.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{Decision, OnError, Quota, RedisStartError, TlsFiles, TroubleKind};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::tls::{Certificates, ServerCertificate};
use tokio::time::sleep;

use crate::faults::support::{
    AMPLE, Node, algorithms, errors, first_look, health, node, node_with, quota, redis_key, report,
};

const DOCUMENTATION: &str = include_str!("../../../../docs/redis.md");

/// The user in the documentation, called `sluicegate`, with the password `password`.
fn documented() -> &'static str {
    let line = DOCUMENTATION.lines().find_map(|line| line.strip_prefix("ACL SETUSER sluicegate "));
    line.expect("the documentation has an ACL")
}

fn url(server: &RedisServer) -> String {
    format!("redis://sluicegate:password@127.0.0.1:{}", server.port())
}

/// The only optional one of its commands: without it everything is read by `MGET`.
const FASTER: &str = "+get";

/// A wait that is short enough for the test.
const SOON: Duration = Duration::from_millis(500);
/// A wait beyond the test.
const DAY: Duration = Duration::from_secs(86_400);

/// Allow, deny, wait exactly as long as reported, refund, reset; with every algorithm, and with quotas that
/// change. The error names the step that failed.
async fn basics(node: &Node) -> Result<(), String> {
    for ((name, quota), (_, slow)) in algorithms(SOON).into_iter().zip(algorithms(DAY)) {
        let fails = |what| format!("{name}: {what}: {:?}", health(node).stats);
        let denied = until_denied(node, name, &quota).await.map_err(fails)?;
        sleep(denied.retry_after().unwrap()).await;
        if !take(node, name, &quota, 1).await.map_err(fails)?.is_granted() {
            return Err(fails("denied after the wait"));
        }
        give_back_and_forget(node, name, &slow).await.map_err(fails)?;
    }
    changes(node).await
}

/// A charge that Redis answers.
async fn take(node: &Node, name: &str, quota: &Quota, cost: u64) -> Result<Decision, &'static str> {
    let charged = node.take_or(name, quota, cost, OnError::Deny).await.unwrap();
    if charged.degraded { Err("degraded") } else { Ok(charged.decisions[0]) }
}

async fn until_denied(node: &Node, name: &str, quota: &Quota) -> Result<Decision, &'static str> {
    for _ in 0..40 * quota.capacity() {
        let decision = take(node, name, quota, 1).await?;
        if !decision.is_granted() {
            return Ok(decision);
        }
    }
    Err("never denied")
}

async fn give_back_and_forget(node: &Node, name: &str, quota: &Quota) -> Result<(), &'static str> {
    node.reset(name).await.map_err(|_| "not forgotten")?;
    for _ in 0..3 {
        if !take(node, name, quota, 1).await?.is_granted() {
            return Err("denied when forgotten");
        }
    }
    let before = take(node, name, quota, 0).await?.remaining;
    let after = node.refund(name, quota, 1).await.map_err(|_| "not given back")?.remaining;
    if after <= before {
        return Err("nothing was given back");
    }
    if !node.reset(name).await.map_err(|_| "not forgotten")? {
        return Err("nothing to forget");
    }
    let looked = take(node, name, quota, 0).await?;
    if looked.remaining == quota.capacity() { Ok(()) } else { Err("not full when forgotten") }
}

/// Buckets whose quota changes its form are read and converted; two tiers at once.
async fn changes(node: &Node) -> Result<(), String> {
    for (_, first) in algorithms(DAY) {
        for (_, second) in algorithms(DAY) {
            node.reset("changing").await.map_err(|trouble| trouble.to_string())?;
            for quota in [&first, &second] {
                let charged = node.take_or("changing", quota, 1, OnError::Deny).await.unwrap();
                if charged.degraded {
                    return Err(format!("{first:?}, then {second:?}: {:?}", health(node).stats));
                }
            }
        }
    }
    crowd(node).await?;
    let rule = |id, pattern| sluicegate::Rule::new(id, pattern, quota("5/s")).unwrap();
    let rules = vec![rule(1, "user:{user_id}"), rule(2, "ip:{ip}"), rule(3, "global")];
    let tiered = sluicegate::Limiter::on(
        std::sync::Arc::clone(node.store()),
        sluicegate::RuleSet::new(rules).unwrap(),
    );
    let request = sluicegate::Request::new().user_id("u").ip("192.0.2.1");
    let verdict = tiered.check(&request).await.unwrap();
    if verdict.is_degraded() || !verdict.is_allowed() {
        return Err(format!("three tiers: {verdict:?}"));
    }
    Ok(())
}

/// Many concurrent decisions on one key, alternating between two forms: they are sent as one script call.
async fn crowd(node: &Node) -> Result<(), String> {
    let (_, bucket) = algorithms(DAY)[0];
    let (_, window) = algorithms(DAY)[3];
    let checks = (0..32).map(|number| {
        let quota = if number % 2 == 0 { bucket } else { window };
        async move { node.take_or("crowd", &quota, 1, OnError::Deny).await.unwrap().degraded }
    });
    let degraded = join_all(checks).await.into_iter().any(|degraded| degraded);
    if degraded { Err(format!("a crowd: {:?}", health(node).stats)) } else { Ok(()) }
}

/// All of it as the documented user, on every server, over TCP and over the Unix socket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t25_as_the_documented_user_on_every_server() {
    let seed = Seed::announce("t25_as_the_documented_user_on_every_server");
    let each = Flavour::ALL.map(|flavour| {
        tokio::spawn(async move {
            let server = RedisServer::builder(flavour)
                .acl_user("sluicegate", documented())
                .unix_socket()
                .start();
            let tcp = url(&server);
            let unix = format!("unix://sluicegate:password@{}", server.unix_socket().display());
            for url in [tcp, unix] {
                let node = node(&url, AMPLE);
                let warnings = first_look(&node).await.unwrap();
                assert!(warnings.is_empty(), "{flavour:?}: {warnings:?}");
                basics(&node).await.unwrap_or_else(|why| panic!("{flavour:?}, {url}: {why}"));
                assert_eq!(errors(&node, TroubleKind::Auth), 0);
                server.command(&["FLUSHALL"]);
            }
        })
    });
    for task in each {
        task.await.unwrap();
    }
    report(
        "t25_as_the_documented_user_on_every_server",
        &seed,
        format!("ACL {}", documented()),
        "over-admission 0 of at most 0; 5 servers, TCP and unix socket, 7 algorithms",
    );
}

/// The documented list is minimal: without any one of its commands an operation is refused, and counted as an
/// error of credentials. Nothing is ever granted because a command was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t25_every_documented_command_is_needed() {
    let seed = Seed::announce("t25_every_documented_command_is_needed");
    let (mut users, mut spare) = (0, Vec::new());
    for without in documented().split(' ').filter(|word| word.starts_with('+')) {
        let left: Vec<&str> = documented().split(' ').filter(|word| *word != without).collect();
        let builder = RedisServer::builder(Flavour::Redis70);
        let server = builder.acl_user("sluicegate", &left.join(" ")).start();
        let node = node_with(&url(&server), |builder| builder.budget(AMPLE).deny_cache_max(0));
        let works = basics(&node).await.is_ok() && nonsense(&server, &node).await;
        if works {
            spare.push(without);
        } else {
            let auth = errors(&node, TroubleKind::Auth);
            assert!(auth > 0, "without {without}: {:?}", health(&node));
        }
        users += 1;
    }
    let name = "t25_every_documented_command_is_needed";
    report(
        name,
        &seed,
        format!("{users} users"),
        format!("over-admission 0 of at most 0; only faster: {spare:?}"),
    );
    assert_eq!(spare, [FASTER], "not needed");
}

/// Are overwritten buckets of all forms repaired, and a lost script too?
async fn nonsense(server: &RedisServer, node: &Node) -> bool {
    server.command(&["SCRIPT", "FLUSH"]);
    for (name, quota) in algorithms(DAY) {
        let key = redis_key(node, name);
        server.command(&["DEL", &key]);
        server.command(&["RPUSH", &key, "x"]);
        if node.take_or(name, &quota, 1, OnError::Deny).await.unwrap().degraded {
            return false;
        }
    }
    true
}

// ===== TLS =====

fn files(ca: PathBuf) -> TlsFiles {
    TlsFiles { ca: Some(ca), ..TlsFiles::default() }
}

fn encrypted(server: &RedisServer, files: TlsFiles) -> Node {
    let url = format!("rediss://sluicegate:password@127.0.0.1:{}", server.tls_port());
    node_with(&url, |builder| builder.budget(AMPLE).tls(files))
}

fn tls_server(
    flavour: Flavour,
    certificates: &Certificates,
    which: ServerCertificate,
    line: &str,
) -> RedisServer {
    let builder = RedisServer::builder(flavour).tls(certificates, which).config(line);
    builder.acl_user("sluicegate", documented()).start()
}

/// The connection is refused because of TLS; and checks are answered by policy, never over plain text.
async fn refused(node: &Node, what: &str) {
    match first_look(node).await {
        Err(RedisStartError::Trouble(trouble)) => {
            assert_eq!(trouble.kind(), TroubleKind::Tls, "{what}: {trouble}");
        }
        other => panic!("{what}: {other:?}"),
    }
    let charged = node.take_or("key", &quota("1/s"), 1, OnError::Deny).await.unwrap();
    assert!(charged.degraded && !charged.decisions[0].is_granted(), "{what}");
}

/// Everything over TLS with the right authority, with and without a client certificate; and every wrong
/// certificate, of the server or the client, prevents the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t25_tls_right_and_wrong() {
    let seed = Seed::announce("t25_tls_right_and_wrong");
    let certificates = Certificates::new();
    let mut refusals = 0;
    for flavour in Flavour::ALL.into_iter().filter(|flavour| flavour.has_tls()) {
        let start = |which, line| tls_server(flavour, &certificates, which, line);
        let good = start(ServerCertificate::Good, "tls-auth-clients no");
        let node = encrypted(&good, files(certificates.authority()));
        first_look(&node).await.unwrap();
        basics(&node).await.unwrap_or_else(|why| panic!("{flavour:?}: {why}"));
        refused(&encrypted(&good, files(certificates.other_authority())), "another authority")
            .await;
        refused(&encrypted(&good, TlsFiles::default()), "the system's authorities").await;
        use ServerCertificate::{Expired, WrongAuthority, WrongHost};
        for which in [Expired, WrongHost, WrongAuthority] {
            let server = start(which, "tls-auth-clients no");
            let node = encrypted(&server, files(certificates.authority()));
            refused(&node, &format!("{flavour:?}, {which:?}")).await;
        }
        refusals += 5 + client_certificates(
            &start(ServerCertificate::Good, "tls-auth-clients yes"),
            &certificates,
        )
        .await;
    }
    report(
        "t25_tls_right_and_wrong",
        &seed,
        format!("{refusals} wrong certificates"),
        "over-admission 0 of at most 0; all refused as tls; 2 servers work with the right ones",
    );
}

/// A server that requires a client certificate: ours, another's, none. Returns the number of refusals.
async fn client_certificates(server: &RedisServer, certificates: &Certificates) -> u64 {
    let with = |pair: sluicegate_tests::tls::Pair| TlsFiles {
        certificate: Some(pair.certificate),
        key: Some(pair.key),
        ..files(certificates.authority())
    };
    let node = encrypted(server, with(certificates.client()));
    first_look(&node).await.unwrap();
    basics(&node).await.unwrap_or_else(|why| panic!("with a certificate: {why}"));
    refused(&encrypted(server, with(certificates.other_client())), "another's certificate").await;
    refused(&encrypted(server, files(certificates.authority())), "no certificate").await;
    2
}
