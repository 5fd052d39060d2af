//! Minimal HTTP/1.1 client: blocking, one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use serde_json::Value;
use tokio::net::TcpSocket;

use super::{PATIENCE, suite_line};

/// A connection that is kept open between requests.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the order of the response.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    /// Connects to an address.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect_timeout(&address, PATIENCE)?, address)
    }

    /// Connects from another local address, such as 127.0.0.2.
    pub(crate) fn connect_from(from: IpAddr, address: SocketAddr) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((from, 0).into())?;
            socket.connect(address).await?.into_std()
        })?;
        stream.set_nonblocking(false)?;
        Self::new(stream, address)
    }

    fn new(stream: TcpStream, address: SocketAddr) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string() })
    }

    /// Sends a request with these headers and body, and reads the answer. `Host`, `Content-Length` and the credentials of
    /// the suite's caller, if it has one, are added unless they are given.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        // Sent at once, as clients do: a server that answers before the body arrives must close the connection.
        let head = request_head(method, path, &self.host, headers, body.len());
        self.send(&[head.as_bytes(), body].concat())?;
        self.read_response()
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the next response.
    pub(crate) fn read_response(&mut self) -> io::Result<Response> {
        let mut response = self.read_head()?;
        let body = self.body(&response)?;
        response.body = String::from_utf8(body).map_err(|_| broken("body"))?;
        Ok(response)
    }

    /// Reads the next response without its body.
    pub(crate) fn read_head(&mut self) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken(&status_line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Response { status, headers, body: String::new() })
    }

    /// Reads the next chunk of a chunked body; the last one is empty.
    pub(crate) fn read_chunk(&mut self) -> io::Result<Vec<u8>> {
        let size = self.line()?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| broken(&size))?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok(chunk)
    }

    /// Waits until the peer closes the connection or sends data; true if it closed it.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(read) => read.is_empty(),
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        }
    }

    /// Reads until the peer closes the connection.
    pub(crate) fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        // A reset connection counts as closed.
        let _ = self.stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let text = line.strip_suffix("\r\n").ok_or_else(|| broken(&line))?;
        Ok(text.to_owned())
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.read_chunk()?;
                if chunk.is_empty() {
                    return Ok(body);
                }
                body.extend(chunk);
            }
        }
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        body.resize(length.unwrap_or(0), 0);
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}

impl Response {
    /// First header of this name (in lower case).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body of {self:?}"))
    }
}

/// Text of a request without its body.
pub(crate) fn request_head(
    method: &str,
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
    body_bytes: usize,
) -> String {
    let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !has("host") {
        head += &format!("host: {host}\r\n");
    }
    if !has("content-length") && !has("transfer-encoding") {
        head += &format!("content-length: {body_bytes}\r\n");
    }
    if !has("authorization") && !has("x-sluicegate-token") {
        head += &suite_line(path);
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n"
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP: {what:?}"))
}
