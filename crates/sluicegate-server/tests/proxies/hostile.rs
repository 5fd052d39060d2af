//! Hostile requests: no bytes and no length in a request bypass an exhausted limit.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::{fmt, thread};

use crate::common::Client;
use crate::proxies::app::App;
use crate::proxies::proxy::{Kind, Patience, Proxy};
use crate::proxies::stage::{CLIENT, Stage};

/// Lengths around the limits of the proxies and of Sluicegate, from the buffers of nginx to the megabyte of Traefik.
const LENGTHS: [usize; 11] =
    [1_000, 7_900, 8_100, 8_170, 8_175, 15_000, 20_000, 33_000, 66_000, 140_000, 1_000_000];

/// Header fields and bodies that a request may end with.
const ENDS: [&str; 10] = [
    "connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n",
    "connection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n",
    "connection: close, host, x-forwarded-for, x-forwarded-uri, x-original-uri, x-api-key\r\n\r\n",
    "connection: close\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello",
    "connection: close\r\nexpect: nothing\r\n\r\n",
    "connection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "connection: close\r\ntransfer-encoding: chunked\r\ntrailer: x-end\r\n\r\n0\r\nx-end: 1\r\n\r\n",
    "connection: close\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "connection: close\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "connection: close\r\nte: trailers\r\nrange: bytes=0-0\r\nif-modified-since: nonsense\r\n\r\n",
];

/// A request with one or more unusual parts.
struct Odd {
    what: String,
    method: &'static str,
    uri: Vec<u8>,
    host: Vec<u8>,
    key: Vec<u8>,
    /// Number of times the key is sent.
    keys: usize,
    end: &'static str,
}

impl fmt::Debug for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Odd {
    fn new(what: String) -> Self {
        let (uri, host, key) = (b"/limited/x".into(), b"shop.example".into(), b"ann".into());
        let end = "connection: close\r\n\r\n";
        Self { what, method: "GET", uri, host, key, keys: 1, end }
    }

    /// Every byte in every part. A line break makes it a different request, which must not pass either.
    fn bytes() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).flat_map(|byte| {
            let about = |place: &str| Self::new(format!("{byte:#04x} in the {place}"));
            let end = [byte, b'a'];
            let (mut uri, mut host, mut key) = (about("URI"), about("host"), about("key"));
            uri.uri.extend(end);
            host.host.extend(end);
            key.key.extend(end);
            [uri, host, key]
        })
    }

    /// Every length in every combination of parts.
    fn lengths() -> impl Iterator<Item = Self> {
        LENGTHS.into_iter().flat_map(|length| {
            let long = vec![b'x'; length];
            (1..8).map(move |places| {
                let mut odd = Self::new(format!("{length} in places {places:#05b}"));
                let parts = [&mut odd.uri, &mut odd.host, &mut odd.key];
                for (place, part) in parts.into_iter().enumerate() {
                    if places & 1 << place != 0 {
                        part.extend(&long);
                    }
                }
                odd
            })
        })
    }

    fn numbers() -> impl Iterator<Item = Self> {
        [2, 60, 90, 200, 5_000].into_iter().map(|keys| {
            let odd = Self::new(format!("{keys} keys"));
            Self { keys, ..odd }
        })
    }

    fn methods() -> impl Iterator<Item = Self> {
        let methods = ["HEAD", "POST", "DELETE", "OPTIONS", "TRACE", "PURGE", "get", "M-SEARCH"];
        methods.into_iter().map(|method| Self { method, ..Self::new(format!("method {method}")) })
    }

    fn ends() -> impl Iterator<Item = Self> {
        ENDS.into_iter().flat_map(|end| {
            ["GET", "POST"].map(|method| Self {
                method,
                end,
                ..Self::new(format!("{method} {end}"))
            })
        })
    }

    fn uris() -> impl Iterator<Item = Self> {
        let uris = [
            "http://shop.example/limited/x",
            "HTTP://a:b@shop.example:80/limited/x?y",
            "/%2e/limited/x",
        ];
        uris.into_iter().map(|uri| Self { uri: uri.into(), ..Self::new(uri.into()) })
    }

    fn all() -> impl Iterator<Item = Self> {
        let parts = Self::bytes().chain(Self::lengths()).chain(Self::numbers());
        parts.chain(Self::methods()).chain(Self::ends()).chain(Self::uris())
    }

    fn written(&self) -> Vec<u8> {
        let method = self.method.as_bytes();
        let mut text = [method, b" ", &self.uri[..], b" HTTP/1.1\r\nhost: ", &self.host].concat();
        for _ in 0..self.keys {
            text.extend([b"\r\nx-api-key: ", &self.key[..]].concat());
        }
        text.extend([b"\r\n", self.end.as_bytes()].concat());
        text
    }

    /// Complete answer of the proxy, which may close the connection before it has read the whole request.
    fn answer(&self, stage: &Stage) -> String {
        let mut client = Client::connect_from(CLIENT, stage.proxy.address).unwrap();
        let _ = client.send(&self.written());
        client.read_to_end()
    }
}

pub(crate) fn no_byte_and_no_length_gets_past(kind: Kind) {
    let stage = Stage::set(kind, Patience::Long);
    let plain = || stage.request_from_afar("GET", "/limited/a", &[]).status;
    assert_eq!([(); 4].map(|()| plain()), [200, 200, 200, 429]);
    for odd in Odd::all() {
        let answer = odd.answer(&stage).to_ascii_lowercase();
        // The application marks its answers in a header field and in the body.
        let is_through = answer.contains("x-app") || answer.contains(r#""method""#);
        assert!(!is_through, "{odd:?}: {answer:.300}");
    }
    assert_eq!(plain(), 429);
    long_keys_have_buckets(&stage);
}

/// A key that exceeds the maximum length of a value has a bucket as well.
fn long_keys_have_buckets(stage: &Stage) {
    for length in [300, 1_500, 7_000] {
        let key = "k".repeat(length) + &length.to_string();
        let ask = || stage.request("GET", "/users", &[("x-api-key", &key)], "").status;
        assert!((0..5).filter(|_| ask() == 200).count() <= 2, "{length}");
        assert_eq!(ask(), 429, "{length}");
    }
}

/// Every status of the limiter other than 200 and 5xx is a denial.
pub(crate) fn only_a_failure_goes_on(kind: Kind) {
    let app = App::start();
    let proxy = Proxy::start(kind, Patience::Long, start_limiter(), app.address);
    for status in [200, 302, 400, 401, 403, 404, 413, 429, 431, 500, 503] {
        let response = proxy.connect().request("GET", &format!("/status/{status}"), &[], b"");
        let is_through = response.unwrap().header("x-app").is_some();
        let goes_on = kind.status_without_sluicegate().is_none();
        assert_eq!(is_through, status == 200 || (status >= 500 && goes_on), "{status}");
    }
}

/// Starts a limiter that answers each connection once, with the status in the path, by default 200.
fn start_limiter() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_as_asked(stream));
        }
    });
    address
}

fn answer_as_asked(mut stream: TcpStream) -> io::Result<()> {
    let mut status = "200".to_owned();
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?;
        if let Some((_, asked)) = line.split_once("/status/") {
            asked.clone_into(&mut status);
        }
        if line.is_empty() {
            break;
        }
    }
    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
