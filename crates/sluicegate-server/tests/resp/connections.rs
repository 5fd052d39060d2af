//! Idle and stalled connections, and connections during shutdown.

use std::time::Duration;
use std::{io, thread};

use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{Launch, eventually, now, pause};
use crate::resp::support::{Redis, Reply, connect, serve, words};

#[test]
fn a_command_must_come_in_time() {
    let server = Launch::serve(&["--limits-header-timeout-ms", "200"]).with_resp().start();
    let mut idle = connect(&server);
    assert_eq!(idle.ask("PING"), Reply::Status("PONG".to_owned()));
    let mut slow = connect(&server);
    slow.send(b"*1\r\n$4\r\nPI");
    assert!(slow.is_closed());
    // A later command has the timeout too.
    let mut slow = connect(&server);
    slow.send(b"PING\r\n*1\r\n$4\r\nPI");
    assert_eq!(slow.reply(), Reply::Status("PONG".to_owned()));
    assert!(slow.is_closed());
    // Between commands a connection may be idle.
    assert_eq!(idle.ask("PING"), Reply::Status("PONG".to_owned()));
}

/// Connection pools are opened ahead of use, and Redis has no such timeout.
#[test]
fn a_new_connection_may_be_silent() {
    for password in ["", "canary"] {
        let server = Launch::serve(&["--limits-header-timeout-ms", "100"])
            .with_resp()
            .env("SLUICEGATE_RESP_PASSWORD", password)
            .start();
        let mut silent = connect(&server);
        pause(Duration::from_millis(500));
        if !password.is_empty() {
            assert_eq!(silent.ask("AUTH canary"), Reply::Status("OK".to_owned()));
        }
        assert_eq!(silent.ask("PING"), Reply::Status("PONG".to_owned()));
    }
}

#[test]
fn unauthenticated_connections_time_out() {
    let server = Launch::serve(&["--limits-header-timeout-ms", "300"])
        .with_resp()
        .env("SLUICEGATE_RESP_PASSWORD", "canary")
        .start();
    let mut trusted = connect(&server);
    assert_eq!(trusted.ask("AUTH canary"), Reply::Status("OK".to_owned()));
    // Sending commands does not extend the timeout without authentication.
    let mut stranger = connect(&server);
    let started = now();
    while now() - started < Duration::from_secs(4) {
        stranger.try_send(&words("PING"));
        if stranger.try_reply().is_err() {
            break;
        }
        pause(Duration::from_millis(20));
    }
    let took = now() - started;
    assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(trusted.ask("PING"), Reply::Status("PONG".to_owned()));
    // After RESET the connection is unauthenticated again.
    assert_eq!(trusted.ask("RESET"), Reply::Status("RESET".to_owned()));
    assert!(trusted.is_closed());
}

#[test]
fn one_door_does_not_shut_another() {
    // Trusted, and therefore not evicted.
    let server = serve(&["--limits-connections-max", "32", "--proxies-trusted", "127.0.0.0/8"]);
    let held: Vec<_> = (0..40).map(|_| connect(&server)).collect();
    eventually("the others to be refused", || {
        let metrics = server.get("/metrics").body;
        metrics.contains("sluicegate_connections_refused_total 10\n").then_some(())
    });
    assert_eq!(server.get("/livez").status, 200);
    drop(held);
}

#[test]
fn quiet_connections_are_closed_where_that_is_set() {
    let server = Launch::serve(&["--resp-idle-timeout-ms", "200"]).with_resp().start();
    let mut redis = connect(&server);
    assert_eq!(redis.ask("PING"), Reply::Status("PONG".to_owned()));
    assert!(redis.is_closed());
}

#[test]
fn commands_before_the_end_are_answered() {
    let server = serve(&["--shutdown-grace-ms", "0"]);
    let address = server.address_of("resp");
    let mut connections: Vec<_> = (0..8).map(|_| Redis::connect(address).unwrap()).collect();
    for redis in &mut connections {
        redis.ask("PING");
    }
    server.signal("TERM");
    for redis in &mut connections {
        redis.send(&words("CL.THROTTLE end 99 1 3600").repeat(10));
    }
    for redis in &mut connections {
        for _ in 0..10 {
            assert_eq!(redis.reply().numbers()[0], 0);
        }
        assert!(redis.is_closed());
    }
    let finished = server.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains("stopped: all requests were answered"), "{}", finished.stderr);
}

/// Sends commands without pause until the connection is closed, and returns the number granted. Only commands after
/// the last reply are lost.
fn ask_until_closed(mut redis: Redis, key: &str, pipeline: usize) -> i64 {
    let commands = words(&format!("CL.THROTTLE {key} 99999 1 300")).repeat(pipeline);
    let mut granted = 0;
    while redis.try_send(&commands) {
        for _ in 0..pipeline {
            match redis.try_reply() {
                Ok(reply) => assert_eq!(reply.numbers()[0], 0),
                Err(error) => {
                    assert_ne!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
                    return granted;
                }
            }
            granted += 1;
        }
        pause(Duration::from_millis(5));
    }
    granted
}

#[test]
fn busy_connections_end_after_an_answer() {
    let redis = RedisServer::start(Flavour::Redis70);
    for store in ["memory:", &redis.url()] {
        let server = serve(&["--store-url", store, "--store-budget-ms", "5000"]);
        let address = server.address_of("resp");
        let asking: Vec<_> = (0..4)
            .map(|n| {
                let (redis, key) = (Redis::connect(address).unwrap(), format!("busy{n}"));
                thread::spawn(move || (ask_until_closed(redis, &key, 1 + n * 50), key))
            })
            .collect();
        pause(Duration::from_millis(100));
        let asked = now();
        server.signal("TERM");
        let granted: Vec<_> = asking.into_iter().map(|asking| asking.join().unwrap()).collect();
        let finished = server.wait();
        let took = now() - asked;
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert!(
            finished.stderr.contains("stopped: all requests were answered"),
            "{}",
            finished.stderr
        );
        if store != "memory:" {
            // Every charge in the store was answered.
            let server = serve(&["--store-url", store, "--store-budget-ms", "5000"]);
            let mut redis = connect(&server);
            for (granted, key) in granted {
                assert!(granted > 0, "{key}");
                let left = redis.numbers(&format!("CL.THROTTLE {key} 99999 1 300 0"))[2];
                assert_eq!(100_000 - left, granted, "{key}");
            }
        }
    }
}

#[test]
fn half_a_command_does_not_hold_up_the_end() {
    let server = serve(&["--limits-header-timeout-ms", "60000"]);
    let (mut half, mut silent) = (connect(&server), connect(&server));
    half.ask("PING");
    half.send(b"*2\r\n$4\r\nECHO\r\n$5\r\nab");
    let asked = now();
    server.signal("TERM");
    assert!(half.is_closed() && silent.is_closed());
    let finished = server.wait();
    assert!(now() - asked < Duration::from_secs(3), "{:?}", now() - asked);
    assert!(finished.stderr.contains("stopped: all requests were answered"), "{}", finished.stderr);
}

#[test]
fn connections_are_counted_and_bounded() {
    let server = serve(&["--limits-connections-max", "2"]);
    let mut first = connect(&server);
    let mut second = connect(&server);
    first.ask("PING");
    pause(Duration::from_millis(5));
    second.ask("PING");
    // The longest idle one makes room.
    let mut third = connect(&server);
    assert_eq!(third.ask("PING"), Reply::Status("PONG".to_owned()));
    assert!(first.is_closed());
    assert_eq!(second.ask("PING"), Reply::Status("PONG".to_owned()));
}

/// Resident memory of a process in kilobytes.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn idle_connections_take_little() {
    const CONNECTIONS: u64 = 400;
    let server = serve(&[]);
    let address = server.address_of("resp");
    let mut warm = connect(&server);
    warm.ask("PING");
    let before = resident_kb(server.pid());
    let mut connections: Vec<_> =
        (0..CONNECTIONS).map(|_| Redis::connect(address).unwrap()).collect();
    for redis in &mut connections {
        redis.send(&words("CL.THROTTLE idle 9 1 3600").repeat(100));
        for _ in 0..100 {
            redis.reply();
        }
    }
    pause(Duration::from_millis(50));
    let each_kb = (resident_kb(server.pid()) - before) / CONNECTIONS;
    // Debug builds have larger futures; allocated buffers alone would take 128 kB.
    assert!(each_kb < 24, "{each_kb} kB for each idle connection");
}
