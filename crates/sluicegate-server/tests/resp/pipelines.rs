//! Pipelines of many commands.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use crate::common::{Launch, on_every_store, pause};
use crate::resp::support::{Reply, connect, frame, serve, words};

/// Number of commands in a pipeline.
const COMMANDS: usize = 5_000;

#[test]
fn thousands_are_answered_in_their_order() {
    let launch = || Launch::serve(&["--store-budget-ms", "10000"]).with_resp();
    on_every_store(launch, |server| {
        let mut redis = connect(server);
        let mut pipeline = Vec::new();
        for number in 0..COMMANDS {
            pipeline.extend(words("CL.THROTTLE pipeline 1999 1 3600"));
            if number % 100 == 0 {
                pipeline.extend(frame(&["ECHO", &number.to_string()]));
            }
        }
        // Written by another thread, because this one reads.
        let mut writer = redis.socket().try_clone().unwrap();
        let writing = thread::spawn(move || writer.write_all(&pipeline));
        for number in 0..COMMANDS {
            let numbers = redis.reply().numbers();
            let left = 2000 - 1 - number as i64;
            assert_eq!(numbers[..3], [i64::from(left < 0), 2000, left.max(0)], "{number}");
            if number % 100 == 0 {
                assert_eq!(redis.reply().text(), number.to_string());
            }
        }
        writing.join().unwrap().unwrap();
    });
}

#[test]
fn versions_change_between_commands() {
    let launch = || Launch::serve(&["--store-budget-ms", "10000"]).with_resp();
    on_every_store(launch, |server| {
        let mut redis = connect(server);
        let lines = [
            "SG.TAKE v 9 1 1000",
            "HELLO 3",
            "SG.TAKE v 9 1 1000",
            "RESET",
            "SG.TAKE v 9 1 1000",
            "QUIT",
        ];
        redis.send(&lines.map(words).concat());
        assert!(matches!(redis.reply(), Reply::Array(_)));
        assert!(matches!(redis.reply(), Reply::Map(_)));
        assert!(matches!(redis.reply(), Reply::Map(_)));
        assert_eq!(redis.reply().text(), "RESET");
        assert!(matches!(redis.reply(), Reply::Array(_)));
        assert_eq!(redis.reply().text(), "OK");
        assert!(redis.is_closed());
    });
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let mut socket = redis.socket().try_clone().unwrap();
    let echo = frame(&[&b"ECHO"[..], &vec![b'z'; 32 * 1024]]);
    // The replies fill all buffers; then the service stops reading.
    socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while sent < 512 << 20 {
        match socket.write(&echo[sent % echo.len()..]) {
            Ok(written) => sent += written,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                pause(Duration::from_millis(100));
                match socket.write(&echo[sent % echo.len()..]) {
                    Ok(written) => sent += written,
                    Err(_) => break,
                }
            }
        }
    }
    assert!(sent < 512 << 20, "{sent} bytes were taken from a client that reads nothing");
    // It continues once the client reads.
    socket.set_nonblocking(false).unwrap();
    let whole = sent / echo.len();
    for _ in 0..whole {
        assert!(matches!(redis.reply(), Reply::Bulk(bytes) if bytes.len() == 32 * 1024));
    }
}
