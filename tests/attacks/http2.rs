//! Frames of HTTP/2 that cost the service more than the client.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::{PATIENCE, Server, eventually, now, pause, suite_line};
use crate::sockets::{ATTACKER, connect, metric, resident_kib};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// SETTINGS with an initial window of this many bytes for each stream.
fn window(bytes: u32) -> Vec<u8> {
    [&[0, 4][..], &bytes.to_be_bytes()].concat()
}

/// More memory than this is too much for what a test sends.
const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// A connection of the attacker.
pub(crate) struct Attacker(TcpStream);

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields of a request: the method by its index, a path, and the credentials of the suite's caller where it has one.
pub(crate) fn fields(method: u8, path: &str) -> Vec<u8> {
    let line = suite_line(path);
    let authorization = line.strip_prefix("authorization: ").map(str::trim_end);
    fields_with_authorization(method, path, authorization)
}

/// Fields of a request with these credentials.
pub(crate) fn fields_with_authorization(
    method: u8,
    path: &str,
    authorization: Option<&str>,
) -> Vec<u8> {
    let mut fields = vec![method, 0x86, 0x04, path.len() as u8];
    fields.extend(path.as_bytes());
    fields.extend([0x01, 9]);
    fields.extend(b"localhost");
    if let Some(value) = authorization {
        // `authorization` by its index, with a literal value.
        fields.extend([0x0f, 0x08, value.len() as u8]);
        fields.extend(value.as_bytes());
    }
    fields
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields(0x82, path))
}

fn head(stream: u32, path: &str) -> Vec<u8> {
    // `:method` by its index, with a literal value.
    let fields = [b"\x02\x04HEAD", &fields(0x82, path)[1..]].concat();
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields)
}

impl Attacker {
    fn connect(server: &Server, settings: &[u8]) -> Self {
        Self::connect_to(server.address, settings)
    }

    pub(crate) fn connect_to(address: SocketAddr, settings: &[u8]) -> Self {
        let mut stream = connect(ATTACKER, address).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Sends a frame as often as that, without reading; false if the service closed the connection before.
    fn flood(&mut self, times: u32, one: impl Fn(u32) -> Vec<u8>) -> bool {
        self.0.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        (0..times).all(|number| self.send(&one(number)).is_ok())
    }

    /// Type, flags, stream and payload of the next frame; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    /// Opens all windows, reads until this many streams have ended, and returns the bytes of their bodies.
    fn read_all(&mut self, streams: u32) -> usize {
        self.send(&frame(SETTINGS, 0, 0, &window(1 << 30))).unwrap();
        self.send(&frame(WINDOW_UPDATE, 0, 0, &(1u32 << 30).to_be_bytes())).unwrap();
        let (mut ended, mut bytes) = (0, 0);
        while ended < streams {
            let (kind, flags, _, payload) = self.next().unwrap();
            if kind == DATA {
                bytes += payload.len();
                ended += u32::from(flags & END_STREAM != 0);
            }
        }
        bytes
    }

    /// Reads to the end; true if the service said that it closes the connection.
    fn is_sent_away(&mut self) -> bool {
        let mut is_sent_away = false;
        while let Some((kind, ..)) = self.next() {
            is_sent_away |= kind == GOAWAY;
        }
        is_sent_away
    }
}

/// Resident bytes of a service.
fn memory(server: &Server) -> usize {
    resident_kib(server.pid()) as usize * 1024
}

/// Runs an attack; afterwards the service has little more memory, and answers others.
fn survives(server: &Server, name: &str, attack: impl FnOnce()) {
    assert_eq!(server.get("/livez").status, 200);
    let (before, started) = (memory(server), now());
    attack();
    // Some of it may be on its way.
    for _ in 0..10 {
        assert_eq!(server.post_json("/v1/check", "{}").status, 200, "{name}");
        pause(Duration::from_millis(20));
    }
    let grown = memory(server).saturating_sub(before);
    eprintln!("{name}: {} KiB more memory, {:?}", grown / 1024, now() - started);
    assert!(grown < MEMORY_MAX, "{name}: {grown} bytes");
}

/// 128 answers of a connection that opens no window held 4.8 MiB and more.
#[test]
fn a04_answers_that_are_not_read_are_bounded_and_not_lost() {
    const STREAMS: u32 = 128;
    const UNSENT_MAX: usize = 1024 * 1024;
    let server = Server::start(&[]);
    let answer = server.get("/openapi.json").body.len();
    assert!(answer * STREAMS as usize > 4 * UNSENT_MAX, "{answer}");
    let mut attacker = Attacker::connect(&server, &window(0));
    for stream in (1..).step_by(2).take(STREAMS as usize) {
        attacker.send(&get(stream, "/openapi.json")).unwrap();
    }
    let unsent = || metric(&server, "sluicegate_unsent_bytes");
    // Reserved for an answer until it is made.
    let room = 512 * 1024;
    assert!(answer <= room);
    eventually("unsent answers", || (unsent() > UNSENT_MAX - room).then_some(()));
    pause(Duration::from_millis(100));
    let most = unsent();
    eprintln!("{STREAMS} answers of {answer} bytes: {most} bytes are held");
    assert!(most <= UNSENT_MAX, "{most}");
    assert_eq!(server.post_json("/v1/check", "{}").status, 200);

    // As soon as the client reads, all are answered.
    assert_eq!(attacker.read_all(STREAMS), answer * STREAMS as usize);
    eventually("no unsent answers", || (unsent() == 0).then_some(()));
}

/// Documents that one client does not read do not delay checks that a proxy sends over the same connection.
#[test]
fn a04_checks_do_not_wait_for_documents_that_are_not_read() {
    const STREAMS: u32 = 100;
    let server = Server::start(&[]);
    let mut proxy = Attacker::connect(&server, &window(0));
    for stream in (1..).step_by(2).take(STREAMS as usize) {
        proxy.send(&get(stream, "/openapi.json")).unwrap();
    }
    let check = 2 * STREAMS + 1;
    proxy.send(&frame(HEADERS, END_HEADERS, check, &fields(0x83, "/v1/check"))).unwrap();
    proxy.send(&frame(DATA, END_STREAM, check, b"{}")).unwrap();
    let is_answer = |(kind, _, stream, _): &_| (*kind, *stream) == (HEADERS, check);
    let answer = std::iter::from_fn(|| proxy.next()).find(is_answer).unwrap();
    assert_eq!(answer.3[0], 0x88);
}

/// Above the total of all connections, a connection gets one large answer at a time, and loses none.
#[test]
fn a04_unsent_answers_of_all_connections_are_bounded() {
    const CONNECTIONS: usize = 10;
    const STREAMS: u32 = 20;
    const TOTAL: usize = 100_000;
    let server = Server::start(&["--limits-unsent-bytes-max", &TOTAL.to_string()]);
    let answer = server.get("/openapi.json").body.len();
    let mut attackers: Vec<_> =
        (0..CONNECTIONS).map(|_| Attacker::connect(&server, &window(0))).collect();
    for attacker in &mut attackers {
        for stream in (1..).step_by(2).take(STREAMS as usize) {
            attacker.send(&get(stream, "/openapi.json")).unwrap();
        }
        // Headers of one answer at least.
        while attacker.next().unwrap().0 != HEADERS {}
    }
    pause(Duration::from_millis(100));
    let most = metric(&server, "sluicegate_unsent_bytes");
    let asked = CONNECTIONS * STREAMS as usize;
    eprintln!("{asked} answers of {answer} bytes: {most} bytes are held");
    // Threads may make an answer each at the moment at which the total is reached.
    assert!(most <= TOTAL + (CONNECTIONS + 16) * answer, "{most}");
    // A connection that reads gets all of its answers.
    let mut attacker = attackers.pop().unwrap();
    assert_eq!(attacker.read_all(STREAMS), answer * STREAMS as usize);
}

/// Bytes of an attack, by the number of the repetition.
type Frames<'a> = &'a dyn Fn(u32) -> Vec<u8>;

/// Neither frames that move no data nor further requests keep a connection with an answer that waits to be read.
#[test]
fn a04_pings_settings_and_requests_do_not_keep_a_connection() {
    let server = Server::start(&["--limits-idle-timeout-ms", "1000"]);
    let ping = |_| frame(PING, 0, 0, &[0; 8]);
    let settings = |_| frame(SETTINGS, 0, 0, &window(0));
    let data = |_| frame(DATA, 0, 1, &[]);
    let get_livez = |number| get(2 * number + 1, "/livez");
    let head_livez = |number| head(2 * number + 1, "/livez");
    let attacks: [(&str, Frames<'_>); 5] = [
        ("PING", &ping),
        ("SETTINGS", &settings),
        ("empty DATA", &data),
        ("GET", &get_livez),
        ("HEAD", &head_livez),
    ];
    for path in ["/openapi.json", "/livez"] {
        for (name, one) in attacks {
            let mut attacker = Attacker::connect(&server, &window(0));
            attacker.send(&get(1, path)).unwrap();
            let started = now();
            let reader = attacker.0.try_clone().unwrap();
            let reading = std::thread::spawn(move || Attacker(reader).is_sent_away());
            for number in 1.. {
                if now() - started > PATIENCE || reading.is_finished() {
                    break;
                }
                let _ = attacker.send(&one(number));
                pause(Duration::from_millis(50));
            }
            let took = now() - started;
            eprintln!("{path}, {name}: closed after {took:?}");
            assert!(reading.is_finished(), "{path}, {name}");
        }
    }
}

/// Streams that are reset at once (CVE-2023-44487).
#[test]
fn rapid_resets_end_the_connection() {
    let server = Server::start(&[]);
    survives(&server, "20,000 resets", || {
        let mut attacker = Attacker::connect(&server, &[]);
        let reset = |number| {
            let stream = 2 * number + 1;
            [get(stream, "/livez"), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        };
        let is_open = attacker.flood(20_000, reset);
        assert!(!is_open || attacker.is_sent_away());
    });
}

/// A header that never ends (CVE-2024-27316 and others).
#[test]
fn continuations_without_end_close_the_connection() {
    let server = Server::start(&[]);
    survives(&server, "20,000 continuations", || {
        let mut attacker = Attacker::connect(&server, &[]);
        attacker.send(&frame(HEADERS, END_STREAM, 1, &fields(0x82, "/livez"))).unwrap();
        // A literal field `x-a: ` of 1000 bytes, which no table keeps.
        let mut field = vec![0x10, 3, b'x', b'-', b'a', 0x7f, 0xe9, 0x06];
        field.extend([b'v'; 1000]);
        let is_open = attacker.flood(20_000, |_| frame(CONTINUATION, 0, 1, &field));
        assert!(!is_open || attacker.is_sent_away());
    });
}

/// A field of 4,000 bytes in the table of HPACK, with 12,000 references to it in one header.
#[test]
fn a_header_that_unpacks_to_48_mb_is_refused() {
    const BOMBS: usize = 100;
    let server = Server::start(&[]);
    survives(&server, "an HPACK bomb", || {
        let mut attacker = Attacker::connect(&server, &[]);
        // Kept in the table: `x: ` and 4000 bytes.
        let mut bomb = fields(0x82, "/livez");
        bomb.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        bomb.extend([b'v'; 4000]);
        bomb.extend([0xbe; 12_000]);
        for stream in (1..).step_by(2).take(BOMBS) {
            let _ = attacker.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &bomb));
        }
        // 431 or a reset stream for each, or the end of the connection; never 200.
        let (mut refused, mut is_sent_away) = (HashSet::new(), false);
        while refused.len() < BOMBS && !is_sent_away {
            let Some((kind, _, stream, payload)) = attacker.next() else { break };
            assert!(kind != HEADERS || payload[0] != 0x88, "accepted");
            is_sent_away = kind == GOAWAY;
            if [HEADERS, RST_STREAM].contains(&kind) {
                refused.insert(stream);
            }
        }
        eprintln!("{} streams refused, sent away: {is_sent_away}", refused.len());
        assert!(is_sent_away || !refused.is_empty());
    });
}

/// Each frame asks for an answer that the client does not read.
#[test]
fn floods_of_settings_and_pings_hold_no_memory() {
    let server = Server::start(&[]);
    for (name, kind, payload) in [("SETTINGS", SETTINGS, window(1)), ("PING", PING, vec![0; 8])] {
        // Open until the memory is measured.
        let mut attacker = Attacker::connect(&server, &[]);
        survives(&server, &format!("100,000 frames of {name}"), || {
            let some = frame(kind, 0, 0, &payload).repeat(100);
            let is_open = attacker.flood(1_000, |_| some.clone());
            eprintln!("open to the end: {is_open}");
        });
    }
}

/// Headers and bodies over HTTP/2 that do not arrive.
#[test]
fn slow_http2_clients_are_answered_or_closed() {
    let server = Server::start(&[
        "--limits-header-timeout-ms",
        "400",
        "--limits-body-timeout-ms",
        "400",
        "--limits-idle-timeout-ms",
        "1500",
    ]);
    let started = now();
    let mut head = Attacker::connect(&server, &[]);
    head.send(&frame(HEADERS, END_STREAM, 1, &fields(0x82, "/livez"))).unwrap();
    while head.next().is_some() {}
    let head_took = now() - started;

    let started = now();
    let mut body = Attacker::connect(&server, &[]);
    body.send(&frame(HEADERS, END_HEADERS, 1, &fields(0x83, "/v1/check"))).unwrap();
    body.send(&frame(DATA, 0, 1, b"{")).unwrap();
    let frames: Vec<_> = std::iter::from_fn(|| body.next()).collect();
    let answer = frames.iter().find(|(kind, ..)| *kind == HEADERS).expect("an answer");
    // 408 is not in the static table: a literal with the index of `:status`.
    assert!(!answer.3.starts_with(&[0x88]), "{frames:?}");
    eprintln!(
        "a slow header was closed after {head_took:?}, a slow body after {:?}",
        now() - started
    );
    assert_eq!(server.post_json("/v1/check", "{}").status, 200);
}

#[test]
fn acknowledgements_are_harmless() {
    let server = Server::start(&[]);
    let mut client = Attacker::connect(&server, &[]);
    client.send(&frame(SETTINGS, ACK, 0, &[])).unwrap();
    client.send(&frame(PING, ACK, 0, &[0; 8])).unwrap();
    client.send(&get(1, "/livez")).unwrap();
    let answer = std::iter::from_fn(|| client.next()).find(|(kind, ..)| *kind == HEADERS).unwrap();
    assert_eq!(answer.3[0], 0x88);
}
