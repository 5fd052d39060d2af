//! T20: error replies of servers that cannot serve.
//!
//! Each error has its kind, in the probe at start and in the counters; the policy decides meanwhile, and the
//! answers are marked as degraded; and Redis is used again within a second of its recovery.

use std::thread;
use std::time::Duration;

use sluicegate::{OnError, RedisStartError, TroubleKind};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::sleep;

use crate::faults::support::load::{Load, Plan, local_bound};
use crate::faults::support::{
    BUDGET, DETECT_MAX, GRACE, LONG, Node, RECOVER_MAX, errors, ms, node, quota, report, until,
    until_healthy, within,
};

fn plan() -> Plan {
    Plan { quota: quota("20/s burst 40"), keys: 10, per_second: 400, on_error: OnError::Local }
}

/// A server with a user, and a node that is that user.
async fn guarded(rules: &str, lines: &[&str]) -> (RedisServer, Node) {
    let mut builder = RedisServer::builder(Flavour::Redis70).acl_user("app", rules);
    for line in lines {
        builder = builder.config(*line);
    }
    let server = builder.start();
    let node = node(&format!("redis://app:secret@127.0.0.1:{}", server.port()), BUDGET);
    until_healthy(&node, LONG).await;
    (server, node)
}

const RULES: &str = "on >secret ~sg:* resetchannels +@all";

/// Errors of one kind, from `begin` to `end`, under load.
async fn trouble(
    name: &str,
    node: &Node,
    kind: TroubleKind,
    begin: impl FnOnce(),
    end: impl FnOnce(),
) {
    let mut seed = Seed::announce(name);
    let load = Load::start(std::slice::from_ref(node), plan(), &mut seed);
    sleep(Duration::from_millis(500)).await;
    assert_eq!(errors(node, kind), 0, "before its fault");
    begin();
    let counted = until(kind.name(), LONG, || async { errors(node, kind) > 0 }).await;
    sleep(DETECT_MAX).await;
    policies(node).await;
    let probed = node.store().probe().await;
    end();
    let recovered = until_healthy(node, LONG).await;
    sleep(Duration::from_millis(500)).await;
    let shots = load.stop().await;
    let slowest = shots.slowest();
    assert!(slowest <= BUDGET + GRACE + shots.noise, "{slowest:?}, noise {:?}", shots.noise);
    assert!(recovered <= RECOVER_MAX + shots.noise, "used again after {recovered:?}");
    let first_look = match &probed {
        Err(RedisStartError::Trouble(trouble)) => trouble.kind().name(),
        Err(_) => "unfit",
        Ok(_) => "fit",
    };
    let bound = local_bound(&plan().quota, 1, shots.outage());
    report(
        name,
        &seed,
        format!("{} times {kind}", errors(node, kind)),
        format!(
            "{}; {} checks, {} degraded; counted after {}, a first look says {first_look}; slowest check {}, used again \
         after {}; noise {}",
            within(shots.excess(&plan()), bound),
            shots.all.len(),
            shots.degraded(),
            ms(counted),
            ms(slowest),
            ms(recovered),
            ms(shots.noise),
        ),
    );
    assert!(matches!(first_look, "fit") || first_look == kind.name(), "{probed:?}");
}

/// Policies decide, and the answers are marked as degraded.
async fn policies(node: &Node) {
    for (on_error, granted) in [(OnError::Allow, true), (OnError::Deny, false)] {
        let charged = node.take_or("policy", &quota("1/s"), 1, on_error).await.unwrap();
        assert!(charged.degraded, "nothing is allowed silently");
        assert_eq!(charged.decisions[0].is_granted(), granted, "{on_error:?}");
    }
}

/// A server that is loading its data from disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_loading() {
    // A hundred microseconds for each of 15,000 keys.
    let builder = RedisServer::builder(Flavour::Redis70)
        .config("key-load-delay 100")
        .config("loading-process-events-interval-bytes 1024");
    let server = builder.start();
    let node = node(&server.url(), BUDGET);
    until_healthy(&node, LONG).await;
    server.command(&["EVAL", "for i = 1, 15000 do redis.call('SET', 'x' .. i, i) end", "0"]);
    server.command(&["SAVE"]);
    thread::scope(|scope| {
        let restart = || {
            scope.spawn(|| server.restart());
        };
        let loaded = || server.wait_ready();
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(trouble(
                "t20_loading",
                &node,
                TroubleKind::Loading,
                restart,
                loaded,
            ));
        });
    });
}

/// A server that runs another client's endless script.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_busy() {
    let server = RedisServer::builder(Flavour::Redis70).config("lua-time-limit 50").start();
    let node = node(&server.url(), BUDGET);
    until_healthy(&node, LONG).await;
    let begin = || {
        // Its client does not wait for the end of the script.
        let mut other = server.connection().unwrap();
        other.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let _ = redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut other);
    };
    let end = || {
        server.command(&["SCRIPT", "KILL"]);
    };
    trouble("t20_busy", &node, TroubleKind::Busy, begin, end).await;
}

/// A server that requires a password from now on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_noauth() {
    let (server, _) = guarded(RULES, &[]).await;
    let node = node(&server.url(), BUDGET);
    until_healthy(&node, LONG).await;
    let begin = || {
        server.command(&["CONFIG", "SET", "requirepass", "new"]);
        server.command(&["CLIENT", "KILL", "USER", "default"]);
    };
    let end = || {
        server.command(&["CONFIG", "SET", "requirepass", ""]);
    };
    trouble("t20_noauth", &node, TroubleKind::Auth, begin, end).await;
}

/// Another password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_wrongpass() {
    let (server, node) = guarded(RULES, &[]).await;
    let begin = || {
        server.command(&["ACL", "SETUSER", "app", "resetpass", ">other"]);
        server.command(&["CLIENT", "KILL", "USER", "app"]);
    };
    let end = || {
        server.command(&["ACL", "SETUSER", "app", "resetpass", ">secret"]);
    };
    trouble("t20_wrongpass", &node, TroubleKind::Auth, begin, end).await;
}

/// A user who may no longer run scripts; and one who may not run the commands inside of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_noperm() {
    for (name, command) in [("t20_noperm, evalsha", "evalsha"), ("t20_noperm, set", "set")] {
        let (server, node) = guarded(RULES, &[]).await;
        let begin = || {
            server.command(&["ACL", "SETUSER", "app", &format!("-{command}")]);
        };
        let end = || {
            server.command(&["ACL", "SETUSER", "app", &format!("+{command}")]);
        };
        trouble(name, &node, TroubleKind::Auth, begin, end).await;
    }
}

/// A server that cannot save to disk, and so takes no writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_misconf() {
    let server = RedisServer::builder(Flavour::Redis70).config("save 100000 100000").start();
    let node = node(&server.url(), BUDGET);
    until_healthy(&node, LONG).await;
    let dump = server.folder().join("dump.rdb");
    let save = |status: &str| {
        server.command(&["BGSAVE"]);
        sluicegate_tests::wait::until("the end of BGSAVE", LONG, || {
            server.info_number("persistence", "rdb_bgsave_in_progress") == 0
                && server.info("persistence", "rdb_last_bgsave_status").as_deref() == Some(status)
        });
    };
    // A folder that is not empty cannot be replaced by a file.
    let begin = || {
        std::fs::create_dir_all(dump.join("in the way")).unwrap();
        save("err");
    };
    let end = || {
        std::fs::remove_dir_all(&dump).unwrap();
        save("ok");
    };
    trouble("t20_misconf", &node, TroubleKind::ReadOnly, begin, end).await;
}

/// A password is changed while no checks are made. The first check after that is answered by policy, and the
/// error is still counted as one of credentials, not only as an open breaker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t20_wrongpass_while_idle() {
    let seed = Seed::announce("t20_wrongpass_while_idle");
    let (server, node) = guarded(RULES, &[]).await;
    server.command(&["ACL", "SETUSER", "app", "resetpass", ">other"]);
    server.command(&["CLIENT", "KILL", "USER", "app"]);
    crate::faults::support::until_open(std::slice::from_ref(&node), LONG).await;
    policies(&node).await;
    let is_counted = || async { errors(&node, TroubleKind::Auth) > 0 };
    let counted = until("an error of credentials", RECOVER_MAX, is_counted).await;
    let open = errors(&node, TroubleKind::Open);
    let found =
        format!("over-admission 0 of at most 0; counted after {}; {open} open", ms(counted));
    report("t20_wrongpass_while_idle", &seed, "WRONGPASS", found);
}
