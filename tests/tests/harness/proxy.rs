//! Every fault of the proxy acts, and is counted.
#![expect(clippy::disallowed_methods, reason = "these tests are about real time")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_tests::proxy::{Direction, FaultProxy, Faults};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::wait;

const SOON: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(100);

/// An echo server; at the end of a client's stream, it sends `bye` and closes.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || echo_one(stream));
        }
    });
    port
}

fn echo_one(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(len) = stream.read(&mut buffer) {
        if len == 0 {
            let _ = stream.write_all(b"bye");
            return;
        }
        if stream.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends a text, and waits until it has come back.
fn ping(stream: &mut TcpStream, text: &[u8]) -> Duration {
    let started = Instant::now();
    stream.write_all(text).unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, text);
    started.elapsed()
}

fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(MOMENT)).unwrap();
    let silent = stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(SOON)).unwrap();
    silent
}

fn is_reset(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[test]
fn without_faults_bytes_pass_unchanged() {
    let proxy = FaultProxy::start(echo());
    let mut stream = connect(&proxy);
    let mut reader = stream.try_clone().unwrap();
    let bytes = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect::<Vec<_>>();
    let expected = bytes.clone();
    let writer = thread::spawn(move || {
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    writer.join().unwrap();
    assert_eq!(back.split_off(expected.len()), b"bye");
    assert!(back == expected, "bytes were changed");
    let counts = proxy.counts();
    assert_eq!(counts.connections.accepted, 1);
    assert_eq!((counts.up.forwarded_bytes, counts.up.connections_hit), (3_000_000, 0));
    wait::until("the connection to end", SOON, || proxy.counts().connections.open == 0);
}

#[test]
fn latency_is_added_in_one_direction_or_both() {
    let proxy = FaultProxy::start(echo());
    let mut stream = connect(&proxy);
    ping(&mut stream, b"a");
    assert_eq!(proxy.counts().up.delayed_bytes, 0);
    proxy.set(Direction::Up, Faults::latency(MOMENT));
    let took = ping(&mut stream, b"b");
    assert!((MOMENT..SOON).contains(&took), "{took:?}");
    assert_eq!((proxy.counts().up.delayed_bytes, proxy.counts().down.delayed_bytes), (1, 0));
    proxy.set(Direction::Down, Faults::latency(MOMENT));
    let took = ping(&mut stream, b"c");
    assert!((2 * MOMENT..SOON).contains(&took), "{took:?}");
    assert_eq!((proxy.counts().up.delayed_bytes, proxy.counts().down.delayed_bytes), (2, 1));
    assert_eq!((proxy.counts().up.connections_hit, proxy.counts().down.connections_hit), (1, 1));
    proxy.heal();
    ping(&mut stream, b"d");
    assert_eq!((proxy.counts().up.delayed_bytes, proxy.counts().down.delayed_bytes), (2, 1));
}

#[test]
fn latency_does_not_lower_the_throughput() {
    let proxy = FaultProxy::start(echo());
    proxy.set(Direction::Down, Faults::latency(MOMENT));
    let mut stream = connect(&proxy);
    let started = Instant::now();
    for _ in 0..50 {
        stream.write_all(b"x").unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    stream.read_exact(&mut [0; 50]).unwrap();
    assert!(started.elapsed() < 25 * MOMENT, "answers waited for each other");
}

#[test]
fn jitter_varies_by_its_seed_and_keeps_the_order() {
    let seed = Seed::announce("jitter_varies_by_its_seed_and_keeps_the_order");
    let proxy = FaultProxy::seeded(echo(), &seed);
    let jitter = Duration::from_millis(30);
    proxy.set(Direction::Down, Faults { jitter, ..Faults::NONE });
    let mut stream = connect(&proxy);
    let took = (0..10).map(|_| ping(&mut stream, b"x")).collect::<Vec<_>>();
    let (least, most) = (took.iter().min().unwrap(), took.iter().max().unwrap());
    assert!(*most - *least > Duration::from_millis(3), "{took:?}");
    assert!(*most < jitter + SOON, "{took:?}");
    // Ten delays of up to 30 ms: fewer than three in ten million seeds stay below this.
    assert!(took.iter().sum::<Duration>() > jitter, "{took:?}");
    for byte in 0..20_u8 {
        stream.write_all(&[byte]).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    let mut back = [0; 20];
    stream.read_exact(&mut back).unwrap();
    assert!(back.is_sorted());
    assert!(proxy.counts().down.delayed_bytes > 20);
}

#[test]
fn bandwidth_is_limited() {
    let proxy = FaultProxy::start(echo());
    proxy.set(Direction::Down, Faults::bandwidth(10_000));
    let took = ping(&mut connect(&proxy), &[7; 4_000]);
    assert!((Duration::from_millis(400)..SOON).contains(&took), "{took:?}");
    assert_eq!(
        (proxy.counts().down.throttled_bytes, proxy.counts().up.throttled_bytes),
        (4_000, 0)
    );
}

#[test]
fn slices_arrive_as_slices() {
    let proxy = FaultProxy::start(echo());
    proxy.set(Direction::Down, Faults::slices(3, Duration::from_millis(2)));
    let mut stream = connect(&proxy);
    stream.write_all(&[7; 60]).unwrap();
    let (mut total, mut reads) = (0, 0);
    while total < 60 {
        total += stream.read(&mut [0; 60]).unwrap();
        reads += 1;
    }
    // A slice has one to three bytes; a slow reader may still see a few of them at once.
    assert!(reads >= 5, "{reads} reads");
    let slices = proxy.counts().down.slices;
    assert!((20..=60).contains(&slices), "{slices} slices");
    let one_by_one = Faults { slice_bytes_max: NonZeroUsize::new(1), ..Faults::NONE };
    proxy.set_both(one_by_one);
    ping(&mut stream, &[7; 500]);
    assert_eq!(proxy.counts().up.slices, 500);
}

#[test]
fn a_stall_holds_bytes_and_then_delivers_them() {
    let proxy = FaultProxy::start(echo());
    let mut stream = connect(&proxy);
    ping(&mut stream, b"a");
    proxy.set(Direction::Down, Faults::STALL);
    stream.write_all(b"hello").unwrap();
    assert!(is_silent(&mut stream));
    assert_eq!(proxy.counts().down.stalled_bytes, 5);
    proxy.heal();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
}

#[test]
fn a_black_hole_loses_requests_or_answers() {
    let server = RedisServer::start(Flavour::Redis70);
    let proxy = FaultProxy::start(server.port());
    let ask = |stream: &mut TcpStream, key: &str| {
        stream.write_all(format!("INCR {key}\r\n").as_bytes()).unwrap();
        assert!(is_silent(stream));
    };
    // Replies are lost: the server has run the command.
    let (mut first, mut second) = (connect(&proxy), connect(&proxy));
    proxy.set(Direction::Down, Faults::BLACK_HOLE);
    ask(&mut first, "down");
    assert_eq!(proxy.counts().down.swallowed_bytes, 4);
    assert_eq!(server.text(&["GET", "down"]), "1");
    // Requests are lost: it has not.
    proxy.set(Direction::Up, Faults::BLACK_HOLE);
    ask(&mut second, "up");
    assert_eq!(proxy.counts().up.swallowed_bytes, 9);
    assert_eq!(server.command(&["GET", "up"]), redis::Value::Nil);
    // A connection that lost bytes is reset, others continue.
    let mut third = connect(&proxy);
    proxy.heal();
    assert!(is_reset(&mut first) && is_reset(&mut second));
    third.write_all(b"PING\r\n").unwrap();
    third.read_exact(&mut [0; 7]).unwrap();
    assert_eq!(proxy.counts().connections.reset, 2);
}

#[test]
fn a_black_hole_swallows_the_end_of_a_stream_too() {
    let proxy = FaultProxy::start(echo());
    let mut stream = connect(&proxy);
    ping(&mut stream, b"a");
    proxy.set(Direction::Up, Faults::BLACK_HOLE);
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_silent(&mut stream));
    proxy.heal();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"bye");
}

#[test]
fn connections_are_reset_now() {
    let proxy = FaultProxy::start(echo());
    let mut streams = [connect(&proxy), connect(&proxy), connect(&proxy)];
    for stream in &mut streams {
        ping(stream, b"a");
    }
    proxy.reset_all();
    assert_eq!(proxy.counts().connections.reset, 3);
    assert!(streams.iter_mut().all(is_reset));
    ping(&mut connect(&proxy), b"b");
}

#[test]
fn connections_are_reset_again_and_again() {
    let proxy = FaultProxy::start(echo());
    proxy.reset_every(Some(Duration::from_millis(20)));
    for _ in 0..3 {
        assert!(is_reset(&mut connect(&proxy)));
    }
    assert!(proxy.counts().connections.reset >= 3);
    proxy.heal();
    assert!(is_silent(&mut connect(&proxy)));
}

#[test]
fn one_half_closes_and_the_other_lives() {
    let proxy = FaultProxy::start(echo());
    let mut stream = connect(&proxy);
    ping(&mut stream, b"a");
    // The server sees the end, and can still reply.
    proxy.half_close(Direction::Up);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"bye");
    assert_eq!(proxy.counts().up.half_closed, 1);
    // The client sees the end, and its requests still arrive.
    let server = RedisServer::start(Flavour::Redis70);
    proxy.retarget(server.port());
    let mut stream = connect(&proxy);
    ping_redis(&mut stream);
    proxy.half_close(Direction::Down);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    stream.write_all(b"SET k v\r\n").unwrap();
    wait::until("the command to be heard", SOON, || {
        server.command(&["EXISTS", "k"]) == redis::Value::Int(1)
    });
    wait::until("the answer to be lost", SOON, || proxy.counts().down.swallowed_bytes == 5);
    assert_eq!(proxy.counts().down.half_closed, 1);
}

fn ping_redis(stream: &mut TcpStream) {
    stream.write_all(b"PING\r\n").unwrap();
    stream.read_exact(&mut [0; 7]).unwrap();
}

#[test]
fn new_connections_are_refused_and_open_ones_live() {
    let proxy = FaultProxy::start(echo());
    let mut old = connect(&proxy);
    ping(&mut old, b"a");
    for _ in 0..3 {
        proxy.refuse(true);
        let error = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        ping(&mut old, b"b");
        proxy.refuse(false);
        ping(&mut connect(&proxy), b"c");
    }
}

#[test]
fn new_connections_are_reset_and_open_ones_live() {
    let proxy = FaultProxy::start(echo());
    let mut old = connect(&proxy);
    ping(&mut old, b"a");
    proxy.reset_new(true);
    assert!(is_reset(&mut connect(&proxy)));
    assert_eq!(proxy.counts().connections.reset_new, 1);
    ping(&mut old, b"b");
    proxy.heal();
    ping(&mut connect(&proxy), b"c");
}

#[test]
fn a_dead_target_breaks_connections() {
    let server = RedisServer::start(Flavour::Redis70);
    let proxy = FaultProxy::start(server.port());
    let mut stream = connect(&proxy);
    ping_redis(&mut stream);
    server.kill();
    let ended = stream.read(&mut [0]);
    assert!(ended.as_ref().is_ok_and(|&len| len == 0) || ended.is_err(), "{ended:?}");
    assert!(is_reset(&mut connect(&proxy)));
    assert_eq!(proxy.counts().connections.unreachable, 1);
}

#[test]
fn a_dropped_proxy_ends_its_connections_and_its_listener() {
    let proxy = FaultProxy::start(echo());
    let port = proxy.port();
    let mut stream = connect(&proxy);
    ping(&mut stream, b"a");
    drop(proxy);
    let ended = stream.read(&mut [0]);
    assert!(ended.as_ref().is_ok_and(|&len| len == 0) || ended.is_err(), "{ended:?}");
    wait::until("the port to be free", SOON, || TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn its_buffers_are_bounded() {
    let proxy = FaultProxy::start(echo());
    proxy.set(Direction::Up, Faults::STALL);
    let mut stream = connect(&proxy);
    stream.set_write_timeout(Some(MOMENT)).unwrap();
    let mut sent = 0_usize;
    while let Ok(len) = stream.write(&[0; 65_536]) {
        sent += len;
        assert!(sent < 64 << 20, "the sender was never stopped");
    }
}
