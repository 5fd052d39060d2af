//! The application behind the proxies, which echoes the request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::json;

/// An HTTP server that lives as long as the test process.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) address: SocketAddr,
}

impl App {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A broken connection is handled by the proxy.
                thread::spawn(move || serve(stream));
            }
        });
        Self { address }
    }
}

/// Echoes the request, with status 403 at `/forbidden`, 500 at `/broken`, otherwise 200.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut parts = first.split_whitespace();
        let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let status = match path {
            "/forbidden" => "403 Forbidden",
            "/broken" => "500 Internal Server Error",
            _ => "200 OK",
        };
        let body = String::from_utf8_lossy(&body);
        let answer = json!({ "method": method, "path": path, "body": body }).to_string();
        let length = answer.len();
        let head = format!("HTTP/1.1 {status}\r\nx-app: yes\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), answer.as_bytes()].concat())?;
    }
}
