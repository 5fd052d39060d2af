//! Minimal client of the Redis protocol: blocking and strict.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::common::{Launch, PATIENCE, Server};

/// A connection to the service.
#[derive(Debug)]
pub(crate) struct Redis {
    stream: BufReader<TcpStream>,
}

/// A reply of the service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Boolean(bool),
    Verbatim(String),
}

/// Service with a listener for the Redis protocol.
pub(crate) fn serve(arguments: &[&str]) -> Server {
    Launch::serve(arguments).with_resp().start()
}

/// Opens a connection to it.
pub(crate) fn connect(server: &Server) -> Redis {
    Redis::connect(server.address_of("resp")).unwrap()
}

/// Encodes arguments as an array of bulk strings.
pub(crate) fn frame<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        frame.extend(format!("${}\r\n", argument.len()).bytes());
        frame.extend_from_slice(argument);
        frame.extend_from_slice(b"\r\n");
    }
    frame
}

/// Encodes the words of a line as a command.
pub(crate) fn words(line: &str) -> Vec<u8> {
    frame(&line.split(' ').collect::<Vec<_>>())
}

impl Redis {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Sends raw bytes; false if that fails.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Sends the words of a line as a command, and reads the reply.
    pub(crate) fn ask(&mut self, line: &str) -> Reply {
        self.send(&words(line));
        self.reply()
    }

    /// Sends a command, and reads the reply.
    pub(crate) fn ask_all<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Reply {
        self.send(&frame(arguments));
        self.reply()
    }

    /// Sends a line and reads a reply of integers.
    pub(crate) fn numbers(&mut self, line: &str) -> Vec<i64> {
        self.ask(line).numbers()
    }

    /// Sends a line and reads an error.
    pub(crate) fn error(&mut self, line: &str) -> String {
        match self.ask(line) {
            Reply::Error(text) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Reads the next reply.
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().unwrap()
    }

    /// Reads the next reply; an error if the connection ends.
    pub(crate) fn try_reply(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        let count = || rest.parse::<usize>().unwrap();
        Ok(match kind {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "_" => Reply::Null,
            "#" => Reply::Boolean(rest == "t"),
            "$" if rest == "-1" => Reply::Null,
            "$" => Reply::Bulk(self.bytes(count())?),
            "=" => Reply::Verbatim(String::from_utf8(self.bytes(count())?).unwrap()),
            "*" => Reply::Array((0..count()).map(|_| self.try_reply()).collect::<Result<_, _>>()?),
            "%" => Reply::Map(
                (0..count())
                    .map(|_| Ok((self.try_reply()?, self.try_reply()?)))
                    .collect::<io::Result<_>>()?,
            ),
            _ => panic!("no reply: {line:?}"),
        })
    }

    /// Waits until the service closes the connection or sends data; true if it closed it.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(read) => read.is_empty(),
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        }
    }

    /// Socket of the connection.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let text = line.strip_suffix("\r\n");
        text.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no line: {line:?}")))
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        assert_eq!(bytes.split_off(length), b"\r\n");
        Ok(bytes)
    }
}

impl Reply {
    /// Text of a reply of any textual kind.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Verbatim(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// Integers of an array.
    pub(crate) fn numbers(&self) -> Vec<i64> {
        let Self::Array(members) = self else { panic!("no array: {self:?}") };
        let number = |reply: &Self| match reply {
            Self::Integer(number) => *number,
            other => panic!("no number: {other:?}"),
        };
        members.iter().map(number).collect()
    }

    /// Value of this name in a map.
    pub(crate) fn get(&self, name: &str) -> &Self {
        let Self::Map(pairs) = self else { panic!("no map: {self:?}") };
        let found = pairs.iter().find(|(key, _)| key.text() == name);
        &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }
}
