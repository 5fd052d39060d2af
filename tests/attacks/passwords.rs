//! Attempts to guess secrets.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{Launch, Server, eventually, now, pause};
use crate::sockets::{ATTACKER, EndOfAttack, NEWCOMER, ask, connect, metric, read_to_end};

const PASSWORD: &str = "canary-password-of-resp";

/// Longest delay of an attempt.
const DELAY_MAX: Duration = Duration::from_secs(4);

fn start() -> Server {
    Launch::serve(&[]).with_resp().env("SLUICEGATE_RESP_PASSWORD", PASSWORD).start()
}

/// Sends a password, and returns the reply; empty if the connection was closed.
fn try_password(stream: &mut TcpStream, password: &str) -> String {
    ask(stream, format!("AUTH {password}\r\n").as_bytes(), "\r\n").unwrap_or_default()
}

/// Uses up the guesses that are free.
fn guess_a_few(server: &Server) {
    let mut guesser = connect(ATTACKER, server.address_of("resp")).unwrap();
    for n in 0..5 {
        assert!(try_password(&mut guesser, &format!("guess-{n}")).contains("WRONGPASS"));
    }
}

#[test]
fn a08_passwords_cannot_be_tried_quickly() {
    let server = start();
    let address = server.address_of("resp");
    let mut signed_in = connect(ATTACKER, address).unwrap();
    assert_eq!(try_password(&mut signed_in, PASSWORD), "+OK\r\n");
    let (is_over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let started = now();
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(mut stream) = connect(ATTACKER, address) else { continue };
                    let reply = try_password(&mut stream, "guess");
                    if reply.contains("too many wrong passwords") {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let _end = EndOfAttack(&is_over);
        pause(Duration::from_secs(2));
        // A connection that is signed in, and other addresses, are not touched.
        let asked = now();
        ask(&mut signed_in, b"PING\r\n", "+PONG").unwrap();
        let mut other = connect(NEWCOMER, address).unwrap();
        assert_eq!(try_password(&mut other, PASSWORD), "+OK\r\n");
        eprintln!("  others are answered after {:?}", now() - asked);
        pause(Duration::from_secs(1));
    });
    let checked = metric(&server, "sluicegate_resp_auth_failures_total");
    let seconds = (now() - started).as_secs_f64();
    let refused = refused.into_inner();
    eprintln!("  {checked} guesses checked in {seconds:.1} s by 50 clients, {refused} refused");
    // Five at once, then at most 16 in each of the growing delays.
    assert!(checked <= 16 * 8, "{checked}");
    assert!(metric(&server, "sluicegate_resp_auth_delayed_total") > 0);
    assert_eq!(metric(&server, "sluicegate_resp_auth_refused_total"), refused);
}

#[test]
fn a08_the_right_password_waits_like_a_wrong_one() {
    let server = start();
    guess_a_few(&server);
    let mut took = Vec::new();
    for password in ["wrong", "wrong", "wrong", PASSWORD] {
        let mut stream = connect(ATTACKER, server.address_of("resp")).unwrap();
        let started = now();
        let reply = try_password(&mut stream, password);
        took.push(now() - started);
        assert_eq!(reply == "+OK\r\n", password == PASSWORD, "{reply}");
    }
    eprintln!("  delays: {took:?}");
    for (delay, least_ms) in took.iter().zip([250, 500, 1_000, 2_000]) {
        assert!(*delay >= Duration::from_millis(least_ms), "{took:?}");
    }
    // HELLO is no way around it.
    let mut stream = connect(ATTACKER, server.address_of("resp")).unwrap();
    let started = now();
    let hello = format!("HELLO 3 AUTH default {PASSWORD}\r\n");
    ask(&mut stream, hello.as_bytes(), "proto").unwrap();
    assert!(now() - started >= Duration::from_secs(1), "{:?}", now() - started);
    assert!(took[3] < DELAY_MAX * 4, "{took:?}");
}

#[test]
fn a08_a_pipeline_of_passwords_waits_for_each() {
    let server = start();
    guess_a_few(&server);
    let mut stream = connect(ATTACKER, server.address_of("resp")).unwrap();
    let started = now();
    let commands = format!("AUTH a\r\nAUTH b\r\nAUTH {PASSWORD}\r\nPING\r\n");
    let replies = ask(&mut stream, commands.as_bytes(), "+PONG").unwrap();
    assert_eq!(replies.matches("WRONGPASS").count(), 2, "{replies}");
    assert!(replies.ends_with("+OK\r\n+PONG\r\n"), "{replies}");
    assert!(now() - started >= Duration::from_millis(1_750), "{:?}", now() - started);
}

#[test]
fn a08_waiting_attempts_do_not_hold_up_the_shutdown() {
    let server = start();
    guess_a_few(&server);
    let address = server.address_of("resp");
    let mut waiting: Vec<_> = (0..8).map(|_| connect(ATTACKER, address).unwrap()).collect();
    thread::scope(|scope| {
        for stream in &mut waiting {
            scope.spawn(|| try_password(stream, "wrong"));
        }
        eventually("attempts to wait", || {
            (metric(&server, "sluicegate_resp_auth_delayed_total") >= 8).then_some(())
        });
    });
    // After that many failures, the next attempt has the longest delay.
    let mut last = connect(ATTACKER, address).unwrap();
    last.write_all(b"AUTH wrong\r\n").unwrap();
    eventually("the last to wait", || {
        (metric(&server, "sluicegate_resp_auth_delayed_total") >= 9).then_some(())
    });
    let asked = now();
    server.signal("TERM");
    let finished = server.wait();
    let took = now() - asked;
    eprintln!("  ended {took:?} after SIGTERM");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(read_to_end(&mut last), "", "closed unchecked");
    assert!(took < DELAY_MAX * 3 / 4, "{took:?}");
}

#[test]
fn a08_three_thousand_bad_connections_write_few_lines() {
    let server = start();
    let address = server.address_of("resp");
    let before = server.stderr().lines().count();
    let started = now();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for n in 0..500 {
                    let mut stream = connect(ATTACKER, address).unwrap();
                    match n % 5 {
                        // Closed again while it waits, if it has to.
                        0 => drop(stream.write_all(b"AUTH wrong\r\n")),
                        1 => drop(ask(&mut stream, b"*1\r\n$-7\r\n", "\r\n")),
                        2 => drop(ask(&mut stream, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP")),
                        3 => drop(stream.write_all(b"*2\r\n$4\r\nAU")),
                        _ => {}
                    }
                }
            });
        }
    });
    assert_eq!(server.get("/livez").status, 200);
    let lines = server.stderr().lines().count() - before;
    eprintln!("  3000 bad connections in {:?}: {lines} lines", now() - started);
    assert!(lines <= 10, "{}", server.stderr());
    assert!(server.stderr().contains("wrong password over the Redis protocol"));
}
