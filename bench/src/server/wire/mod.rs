//! Bytes on a connection: requests encoded beforehand, and answers of which only the end and the outcome
//! are parsed. The client does as little as possible, so that the server is measured.

mod http1;
mod http2;
mod resp;

use std::io;

use self::http2::Http2;

/// Protocol of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    /// gRPC, with one path for all requests.
    Grpc {
        path: &'static str,
    },
    Resp,
}

/// State of a connection.
#[derive(Debug)]
pub(crate) enum Wire {
    Http1,
    Grpc(Http2),
    Resp,
}

/// A complete answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// Stream of the request; `None` if answers come in order.
    pub(crate) stream: Option<u32>,
    /// Payload: a body, a message, a value.
    pub(crate) body: &'a [u8],
}

impl Protocol {
    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Http1 => Wire::Http1,
            Self::Grpc { path } => Wire::Grpc(Http2::new(path)),
            Self::Resp => Wire::Resp,
        }
    }
}

impl Wire {
    /// Appends a request to `output`, and returns the number that its answer will have.
    pub(crate) fn ask(&mut self, request: &[u8], output: &mut Vec<u8>) -> u32 {
        match self {
            Self::Grpc(http2) => http2.ask(request, output),
            Self::Http1 | Self::Resp => {
                output.extend_from_slice(request);
                0
            }
        }
    }

    /// Parses complete answers, and returns the number of bytes consumed. Replies of the protocol itself are
    /// appended to `output`.
    pub(crate) fn answers(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
        mut take: impl FnMut(Answer<'_>),
    ) -> io::Result<usize> {
        if let Self::Grpc(http2) = self {
            return http2.answers(input, output, take);
        }
        let mut done = 0;
        loop {
            let rest = &input[done..];
            let answer = match self {
                Self::Resp => resp::value(rest)?.map(|length| (length, &rest[..length])),
                _ => http1::response(rest)?,
            };
            let Some((length, body)) = answer else { return Ok(done) };
            take(Answer { stream: None, body });
            done += length;
        }
    }
}

/// Error of an unexpected answer.
fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}
