//! Misuse of the listener for the Redis protocol.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Launch, Server, eventually, now};
use crate::sockets::{
    ATTACKER, NEWCOMER, ask, connect, connect_resp, metric, open, read_to_end, resident_kib,
    sign_in,
};

fn serve(arguments: &[&str]) -> Server {
    Launch::serve(arguments).with_resp().start()
}

/// Another client is answered.
fn ping(stream: &mut TcpStream) {
    ask(stream, b"PING\r\n", "+PONG").unwrap();
}

#[test]
fn hostile_sizes_end_their_connection_and_cost_nothing() {
    let server = serve(&[]);
    let address = server.address_of("resp");
    let mut bystander = connect_resp(NEWCOMER, address).unwrap();
    ping(&mut bystander);
    let before = resident_kib(server.pid());
    let nested = "*1\r\n".repeat(10_000);
    let frames: &[&[u8]] = &[
        b"*1000000000\r\n",
        b"*1025\r\n",
        b"*2147483648\r\n",
        b"*9223372036854775807\r\n",
        b"*9223372036854775808\r\n",
        b"*18446744073709551616\r\n",
        b"*99999999999999999999999999999999999999\r\n",
        b"*-9223372036854775809\r\n",
        b"*+1\r\n",
        b"*1e3\r\n",
        b"*0x10\r\n",
        b"* 1\r\n",
        b"*\xff\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$-9223372036854775809\r\n",
        b"*1\r\n$65537\r\n",
        b"*1\r\n$536870912\r\n",
        b"*1\r\n$9223372036854775807\r\n",
        b"*1\r\n$18446744073709551615\r\n",
        b"*1\r\n$18446744073709551620\r\nPING\r\n",
        b"*1\r\n$4294967300\r\nPING\r\n",
        b"*1\r\n$+4\r\nPING\r\n",
        b"*1\r\n$4x\r\nPING\r\n",
        b"*1\r\n$3\r\nPING\r\n",
        b"*2\r\n*1\r\n$4\r\nPING\r\n",
        b"*1\r\n%1\r\n+a\r\n+b\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n#t\r\n",
        nested.as_bytes(),
    ];
    for frame in frames {
        let mut stream = connect_resp(ATTACKER, address).unwrap();
        // The answer may come before everything is sent.
        let _ = stream.write_all(frame);
        let answer = read_to_end(&mut stream);
        let shown = String::from_utf8_lossy(&frame[..frame.len().min(60)]).into_owned();
        assert!(answer.starts_with("-ERR Protocol error: "), "{shown:?}: {answer:?}");
        assert!(answer.ends_with("\r\n") && answer.len() < 200, "{shown:?}: {answer:?}");
    }
    ping(&mut bystander);
    assert_eq!(metric(&server, "sluicegate_resp_protocol_errors_total"), frames.len());
    let grown = resident_kib(server.pid()).saturating_sub(before);
    eprintln!("  {} hostile frames: {grown} KiB more memory", frames.len());
    assert!(grown < 16 * 1024, "{grown} KiB");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

#[test]
fn announced_sizes_are_not_allocated() {
    const CONNECTIONS: usize = 400;
    for (password, announced) in
        [("", &b"*1024\r\n$65536\r\nx"[..]), ("canary-of-a-password", b"*3\r\n$8000\r\nx")]
    {
        let server = Launch::serve(&["--limits-header-timeout-ms", "600000"])
            .with_resp()
            .env("SLUICEGATE_RESP_PASSWORD", password)
            .start();
        let before = resident_kib(server.pid());
        let mut held = open(ATTACKER, server.address_of("resp"), CONNECTIONS);
        for stream in &mut held {
            stream.write_all(announced).unwrap();
        }
        eventually("all to be read", || {
            (metric(&server, "sluicegate_connections") >= CONNECTIONS).then_some(())
        });
        let mut other = connect(NEWCOMER, server.address_of("resp")).unwrap();
        ask(&mut other, b"PING\r\n", "\r\n").unwrap();
        let grown = resident_kib(server.pid()).saturating_sub(before);
        eprintln!("  {CONNECTIONS} announced commands of up to 64 MiB: {grown} KiB more memory");
        // 128 KiB each would be 51,200.
        assert!(grown < 24 * 1024, "{grown} KiB");
    }
}

#[test]
fn long_lines_and_empty_commands_are_bounded() {
    let server = serve(&[]);
    let address = server.address_of("resp");
    let mut bystander = connect_resp(NEWCOMER, address).unwrap();
    let before = resident_kib(server.pid());
    for piece in [&b"x"[..], b"\"", b" ", b"\0", b"$", b"*"] {
        let mut stream = connect_resp(ATTACKER, address).unwrap();
        let _ = stream.write_all(&piece.repeat((4 << 20) / piece.len()));
        let answer = read_to_end(&mut stream);
        assert!(answer.is_empty() || answer.starts_with("-ERR Protocol error: "), "{answer:?}");
        ping(&mut bystander);
    }
    // Commands without words are skipped without an answer.
    for piece in [&b"\r\n"[..], b"*0\r\n", b"*-1\r\n"] {
        let mut stream = connect_resp(ATTACKER, address).unwrap();
        let started = now();
        stream.write_all(&piece.repeat((4 << 20) / piece.len())).unwrap();
        ping(&mut stream);
        eprintln!("  4 MiB of {:?} in {:?}", piece.escape_ascii().to_string(), now() - started);
    }
    ping(&mut bystander);
    let grown = resident_kib(server.pid()).saturating_sub(before);
    eprintln!("  {grown} KiB more memory");
    assert!(grown < 32 * 1024, "{grown} KiB");
}

#[test]
fn slow_commands_are_cut_wherever_they_stop() {
    let begun: [&[u8]; 8] = [
        b"PI",
        b"*",
        b"*1\r",
        b"*1\r\n$",
        b"*1\r\n$4\r\n",
        b"*1\r\n$4\r\nPI",
        b"*1\r\n$4\r\nPING\r",
        b"PING\r\nPING\r\nPI",
    ];
    let begun_unauthenticated: [&[u8]; 3] = [
        b"AU",
        b"*2\r\n$4\r\nAUTH\r\n$20\r\ncan",
        // Complete, but nothing that authenticates.
        b"PING\r\n",
    ];
    for (password, begun) in [("", &begun[..]), ("canary-of-a-password", &begun_unauthenticated)] {
        let server = Launch::serve(&["--limits-header-timeout-ms", "300"])
            .with_resp()
            .env("SLUICEGATE_RESP_PASSWORD", password)
            .start();
        let mut held = Vec::new();
        for bytes in begun {
            let mut streams = open(ATTACKER, server.address_of("resp"), 20);
            for stream in &mut streams {
                stream.write_all(bytes).unwrap();
            }
            held.extend(streams);
        }
        let started = now();
        for stream in &mut held {
            read_to_end(stream);
        }
        eprintln!("  {} slow connections cut after {:?}", held.len(), now() - started);
        eventually("the slots to be free", || {
            (metric(&server, "sluicegate_connections") <= 1).then_some(())
        });
    }
}

#[test]
fn bytes_that_trickle_in_do_not_extend_the_timeout() {
    let server = serve(&["--limits-header-timeout-ms", "500"]);
    let mut stream = connect_resp(ATTACKER, server.address_of("resp")).unwrap();
    stream.write_all(b"*1\r\n$60000\r\n").unwrap();
    let started = now();
    while stream.write_all(b"x").is_ok() {
        assert!(now() - started < Duration::from_secs(15), "still open");
        crate::common::pause(Duration::from_millis(20));
    }
    eprintln!("  cut after {:?}", now() - started);
}

#[test]
fn a_pipeline_whose_replies_are_not_read_is_bounded_and_cut() {
    let server = serve(&["--limits-idle-timeout-ms", "1000"]);
    let address = server.address_of("resp");
    let mut bystander = connect_resp(NEWCOMER, address).unwrap();
    ping(&mut bystander);
    let before = resident_kib(server.pid());
    let echo = [b"*2\r\n$4\r\nECHO\r\n$60000\r\n", &[b'x'; 60_000][..], b"\r\n"].concat();
    let small = b"CL.THROTTLE unread 9 1 1\r\n".repeat(2_500);
    for commands in [&echo, &small] {
        let mut held = open(ATTACKER, address, 8);
        let (mut sent, mut most) = (0, 0);
        for stream in &mut held {
            sign_in(stream);
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            // Far more than all buffers of the kernel hold; a failed write means that the service stopped reading.
            for _ in 0..1_000 {
                match stream.write(commands) {
                    Ok(written) => sent += written,
                    Err(_) => break,
                }
            }
            most = resident_kib(server.pid()).max(most);
            ping(&mut bystander);
        }
        let grown = most.saturating_sub(before);
        eprintln!("  8 clients sent {} MiB and read nothing: {grown} KiB more", sent >> 20);
        assert!(grown < 32 * 1024, "{grown} KiB");
        eventually("them to be cut", || {
            (metric(&server, "sluicegate_connections") <= 2).then_some(())
        });
        ping(&mut bystander);
    }
}
