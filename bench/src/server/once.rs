//! A single request and its answer.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::wire::{Answer, Protocol, Wire};

const PATIENCE: Duration = Duration::from_secs(5);
const BYTES: usize = 64 * 1024;

/// Sends a request and waits for the answer.
pub(crate) fn ask(port: u16, protocol: Protocol, request: &[u8]) -> io::Result<Vec<u8>> {
    Exchange::new(port, protocol, request)?.answer().map(|(_, answer)| answer)
}

/// A request sent on a separate connection.
pub(crate) struct Exchange {
    stream: TcpStream,
    wire: Wire,
}

impl Exchange {
    pub(crate) fn new(port: u16, protocol: Protocol, request: &[u8]) -> io::Result<Self> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut wire, mut output) = (protocol.wire(), Vec::new());
        wire.ask(request, &mut output);
        stream.write_all(&output)?;
        Ok(Self { stream, wire })
    }

    /// Waits for the answer, and returns it with the open connection.
    pub(crate) fn answer(mut self) -> io::Result<(TcpStream, Vec<u8>)> {
        let (mut input, mut filled, mut output) = (vec![0; BYTES], 0, Vec::new());
        loop {
            let read = self.stream.read(&mut input[filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            let mut body = None;
            let take = |answer: Answer<'_>| body = Some(answer.body.to_vec());
            let done = self.wire.answers(&input[..filled], &mut output, take)?;
            self.stream.write_all(&output)?;
            output.clear();
            if let Some(body) = body {
                return Ok((self.stream, body));
            }
            input.copy_within(done..filled, 0);
            filled -= done;
        }
    }
}
