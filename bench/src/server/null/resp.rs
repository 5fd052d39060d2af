//! The Redis protocol: the service's parser, and one write for everything that was read at once.

use std::hint::black_box;
use std::io;

use bytes::Bytes;
use sluicegate_server::parser::Parser;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of one read, as in the service.
const READ_BYTES: usize = 64 * 1024;

pub(super) async fn serve(listener: TcpListener, answer: Bytes) {
    while let Ok(stream) = super::accept(&listener).await {
        tokio::spawn(converse(stream, answer.clone()));
    }
}

/// Answers every command until the client leaves.
async fn converse(mut stream: TcpStream, answer: Bytes) -> io::Result<()> {
    let (mut input, mut output) = (Vec::with_capacity(READ_BYTES), Vec::new());
    let mut parser = Parser::default();
    while stream.read_buf(&mut input).await? > 0 {
        let mut used = 0;
        while let Some(command) = parser.next(&input[used..]).map_err(io::Error::other)? {
            used += black_box(command).bytes();
            output.extend_from_slice(&answer);
        }
        input.drain(..used);
        input.reserve(READ_BYTES);
        stream.write_all(&output).await?;
        output.clear();
    }
    Ok(())
}
