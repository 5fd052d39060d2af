//! Tests of the server harness.
#![expect(clippy::disallowed_methods, reason = "these tests are about real time")]
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use sluicegate_tests::process::Process;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::shim::{ClockShim, Step};
use sluicegate_tests::tls::{Certificates, Pair, ServerCertificate};
use sluicegate_tests::wait;

const SOON: Duration = Duration::from_secs(10);

#[test]
fn every_flavour_starts_and_answers() {
    for flavour in Flavour::ALL {
        let server = RedisServer::start(flavour);
        server.wait_ready();
        assert_eq!(server.text(&["EVAL", "return redis.call('SET', 'k', 'v')", "0"]), "OK");
        assert_eq!(server.text(&["GET", "k"]), "v");
        assert_eq!(server.info_number("server", "process_id"), i64::from(server.pid()));
    }
}

#[test]
fn a_stopped_server_is_silent_and_goes_on() {
    let server = RedisServer::start(Flavour::Redis70);
    server.command(&["SET", "k", "v"]);
    server.stop();
    assert!(!server.is_running());
    let error = server.try_command(&["PING"]).unwrap_err();
    assert!(error.is_timeout() || error.is_io_error(), "{error}");
    server.cont();
    assert_eq!(server.text(&["GET", "k"]), "v");
}

#[test]
fn a_killed_server_refuses_and_comes_back_empty() {
    let server = RedisServer::start(Flavour::Valkey9);
    let (port, pid) = (server.port(), server.pid());
    server.command(&["SET", "k", "v"]);
    server.kill();
    assert!(!server.is_running());
    assert!(server.try_command(&["PING"]).unwrap_err().is_connection_refusal());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.command(&["EXISTS", "k"]), redis::Value::Int(0));
}

#[test]
fn a_dropped_server_is_gone() {
    let server = RedisServer::start(Flavour::Redis62);
    let (pid, folder) = (server.pid(), server.folder().to_owned());
    assert!(runs(pid) && folder.exists());
    drop(server);
    assert!(!runs(pid) && !folder.exists());
}

/// The signal of `--pdeathsig` is tied to the thread that started the child, which is easy to miss.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let start = || RedisServer::start(Flavour::Redis70);
    let server = std::thread::spawn(start).join().unwrap();
    assert!(!wait::within(Duration::from_millis(200), || !server.is_running()));
}

const PID_FILE: &str = "SLUICEGATE_TESTS_PID_FILE";

#[test]
#[ignore = "the part of the next test that is killed"]
fn starts_a_server_and_waits() {
    let server = RedisServer::start(Flavour::Redis70);
    let file = std::env::var_os(PID_FILE).expect("the next test names the file");
    fs::write(file, format!("{}\n", server.pid())).unwrap();
    std::thread::sleep(6 * SOON);
}

#[test]
fn a_killed_test_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let test = Process::start(std::env::current_exe().unwrap(), |command| {
        command.args(["--ignored", "--exact", "harness::servers::starts_a_server_and_waits"]);
        // Temporary files that a killed test leaves behind are removed with ours.
        command.env("TMPDIR", folder.path()).env(PID_FILE, &file);
    });
    let read = || fs::read_to_string(&file).unwrap_or_default();
    wait::until("the server of the other test", SOON, || read().ends_with('\n'));
    let pid = read().trim().parse().unwrap();
    assert!(runs(pid));
    test.kill();
    wait::until("the server to die with its test", SOON, || !runs(pid));
}

fn runs(pid: u32) -> bool {
    // A zombie does not run, either.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_replica_has_the_data_of_its_master() {
    let master = RedisServer::start(Flavour::Redis8);
    let replica = RedisServer::builder(Flavour::Redis8).replica_of(master.port()).start();
    master.command(&["SET", "k", "v"]);
    wait::until("the replica to follow", SOON, || {
        replica.try_command(&["GET", "k"]).is_ok_and(|value| value != redis::Value::Nil)
    });
    assert_eq!(replica.info("replication", "role").as_deref(), Some("slave"));
    let error = replica.try_command(&["SET", "k", "w"]).unwrap_err();
    assert_eq!(error.code(), Some("READONLY"));
}

#[test]
fn passwords_and_users_are_required() {
    let server = RedisServer::builder(Flavour::Redis70)
        .requirepass("secret")
        .acl_user("app", "on >app ~sg:* +get")
        .start();
    server.command(&["SET", "sg:k", "v"]);
    let ask = |url: &str, words: [&str; 2]| {
        let mut connection = redis::Client::open(url)?.get_connection()?;
        redis::cmd(words[0]).arg(words[1]).query::<String>(&mut connection)
    };
    let port = server.port();
    let error = ask(&server.url(), ["GET", "sg:k"]).unwrap_err();
    assert_eq!(error.code(), Some("NOAUTH"));
    assert_eq!(ask(&format!("redis://:secret@127.0.0.1:{port}"), ["GET", "sg:k"]).unwrap(), "v");
    let app = format!("redis://app:app@127.0.0.1:{port}");
    assert_eq!(ask(&app, ["GET", "sg:k"]).unwrap(), "v");
    assert_eq!(ask(&app, ["GET", "other"]).unwrap_err().code(), Some("NOPERM"));
    assert_eq!(ask(&app, ["INCR", "sg:k"]).unwrap_err().code(), Some("NOPERM"));
}

#[test]
fn the_unix_socket_answers() {
    let server = RedisServer::builder(Flavour::Valkey8).unix_socket().start();
    let mut stream = UnixStream::connect(server.unix_socket()).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

// ===== TLS =====

/// A strict client's verification of a certificate: openssl's number, 0 if it is valid.
fn verdict(server: &RedisServer, authority: &Path, client: Option<&Pair>) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-verify_ip", "127.0.0.1", "-ign_eof", "-connect"]);
    command.arg(format!("127.0.0.1:{}", server.tls_port())).arg("-CAfile").arg(authority);
    if let Some(pair) = client {
        command.arg("-cert").arg(&pair.certificate).arg("-key").arg(&pair.key);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl");
    // QUIT ends the connection, so that openssl ends.
    let _ = child.stdin.take().unwrap().write_all(b"PING\r\nQUIT\r\n");
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn certificates_are_wrong_in_the_way_they_say() {
    let certificates = Certificates::new();
    // OpenSSL's own numbers: 0 ok, 10 expired, 64 wrong address, 20 or 21 unknown issuer.
    let cases = [
        (ServerCertificate::Good, vec!["code: 0 "]),
        (ServerCertificate::Expired, vec!["code: 10 "]),
        (ServerCertificate::WrongHost, vec!["code: 64 "]),
        (ServerCertificate::WrongAuthority, vec!["code: 20 ", "code: 21 "]),
    ];
    for flavour in [Flavour::Redis70, Flavour::Valkey8] {
        for (which, codes) in &cases {
            let server = RedisServer::builder(flavour).tls(&certificates, *which).start();
            let said = verdict(&server, &certificates.authority(), None);
            assert!(codes.iter().any(|code| said.contains(code)), "{flavour:?} {which:?}: {said}");
            assert!(said.contains("+PONG"), "{flavour:?} {which:?}: {said}");
        }
    }
}

#[test]
fn client_certificates_are_required() {
    let certificates = Certificates::new();
    let server = RedisServer::builder(Flavour::Redis70)
        .tls(&certificates, ServerCertificate::Good)
        .config("tls-auth-clients yes")
        .start();
    let said = |client: Option<Pair>| verdict(&server, &certificates.authority(), client.as_ref());
    assert!(said(Some(certificates.client())).contains("+PONG"));
    assert!(!said(Some(certificates.other_client())).contains("+PONG"));
    assert!(!said(None).contains("+PONG"));
}

// ===== the clock =====

fn server_time_us(server: &RedisServer) -> i128 {
    let time: Vec<i128> = redis::from_redis_value(server.command(&["TIME"])).unwrap();
    time[0] * 1_000_000 + time[1]
}

fn our_time_us() -> i128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_micros().cast_signed()
}

/// Does `ask` return our time plus `offset_us`, with any latency?
fn is_off_by(offset_us: i128, ask: impl FnOnce() -> i128) -> bool {
    // Valkey 9 interpolates, with an error of some microseconds.
    const SLACK_US: i128 = 1_000;
    let before = our_time_us();
    let said = ask() - offset_us;
    (before - SLACK_US..=our_time_us() + SLACK_US).contains(&said)
}

#[test]
fn the_clock_of_every_flavour_can_be_stepped() {
    for flavour in Flavour::ALL {
        let shim = ClockShim::new();
        let server = RedisServer::builder(flavour).preload(&shim).start();
        let off_by = |offset_us| is_off_by(offset_us, || server_time_us(&server));
        assert!(off_by(0), "{flavour:?}");
        shim.step(Duration::from_secs(3_600), Step::Forward);
        assert!(off_by(3_600_000_000), "{flavour:?}");
        let script = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]";
        let in_script = || redis::from_redis_value(server.command(&["EVAL", script, "0"])).unwrap();
        assert!(is_off_by(3_600_000_000, in_script), "{flavour:?}");
        shim.step(Duration::from_micros(5_400_000_123), Step::Back);
        assert_eq!(shim.offset_us(), -1_800_000_123);
        assert!(off_by(-1_800_000_123), "{flavour:?}");
        server.restart();
        assert!(off_by(-1_800_000_123), "{flavour:?}");
    }
}

#[test]
fn keys_expire_by_the_stepped_clock() {
    let shim = ClockShim::new();
    let server = RedisServer::builder(Flavour::Redis70).preload(&shim).start();
    server.command(&["SET", "k", "v", "EX", "100"]);
    shim.step(Duration::from_secs(99), Step::Forward);
    assert_eq!(server.text(&["GET", "k"]), "v");
    shim.step(Duration::from_secs(2), Step::Forward);
    assert_eq!(server.command(&["GET", "k"]), redis::Value::Nil);
}

#[test]
fn the_clock_of_any_child_can_be_stepped() {
    let shim = ClockShim::new();
    shim.set_us(-1_500_000);
    let date = || {
        let mut command = Command::new("date");
        shim.apply(command.arg("+%s%6N"));
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    };
    assert!(is_off_by(-1_500_000, date));
    let started = Instant::now();
    let mut sleep = Command::new("sleep");
    shim.apply(sleep.arg("0.05"));
    assert!(sleep.status().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(5), "the monotonic clock was moved");
}
