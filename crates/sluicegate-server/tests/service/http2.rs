//! HTTP/2 without TLS on the same port, as proxies use it internally. Its few frames are written by hand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{PATIENCE, Server, now};

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
/// Flags `END_STREAM` and `END_HEADERS`.
const END: u8 = 1 | 4;

pub(crate) struct Http2<S = TcpStream> {
    stream: S,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

impl Http2 {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::over(stream)
    }
}

impl<S: Read + Write> Http2<S> {
    /// Opens HTTP/2 on a stream.
    pub(crate) fn over(mut stream: S) -> Self {
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        Self { stream }
    }

    pub(crate) fn get(&mut self, stream: u32, path: &str) {
        // GET and http by their index in the static table; path and authority as literals.
        let mut header = vec![0x82, 0x86, 0x04, path.len() as u8];
        header.extend(path.as_bytes());
        header.extend([0x41, 9]);
        header.extend(b"localhost");
        self.stream.write_all(&frame(HEADERS, END, stream, &header)).unwrap();
    }

    /// Type, stream and payload of the next frame; `None` at the end.
    fn next(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        if head[3] == SETTINGS && head[4] & ACK == 0 {
            self.stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        }
        Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    /// Reads up to the answer of a stream; true if it is 200.
    pub(crate) fn is_ok(&mut self, stream: u32) -> bool {
        loop {
            let (kind, of, payload) = self.next().unwrap();
            if (kind, of) == (HEADERS, stream) {
                return payload[0] == 0x88;
            }
        }
    }
}

#[test]
fn it_speaks_http2() {
    let server = Server::start(&[]);
    let mut client = Http2::connect(&server);
    for stream in [1, 3, 5] {
        client.get(stream, "/livez");
        assert!(client.is_ok(stream));
    }
}

#[test]
fn http2_connections_are_told_to_go_away() {
    let server = Server::start(&[]);
    let mut client = Http2::connect(&server);
    client.get(1, "/livez");
    assert!(client.is_ok(1));
    let asked = now();
    server.signal("TERM");
    let frames: Vec<_> = std::iter::from_fn(|| client.next()).collect();
    assert!(frames.iter().any(|(kind, ..)| *kind == GOAWAY), "{frames:?}");
    assert_eq!(server.wait().code, Some(0));
    assert!(now() - asked < Duration::from_secs(2), "{:?}", now() - asked);
}

#[test]
fn quiet_http2_connections_are_closed() {
    let server = Server::start(&["--limits-idle-timeout-ms", "400"]);
    let mut client = Http2::connect(&server);
    client.get(1, "/livez");
    assert!(client.is_ok(1));
    let started = now();
    while client.next().is_some() {}
    assert!(now() - started < Duration::from_secs(5), "{:?}", now() - started);
}
