//! The part of HTTP/2 that a gRPC client with one path needs. Its headers are compressed once; later ones are
//! seven bytes, the same as from a client that compresses every time.

use std::io;

use super::{Answer, wrong};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const FRAME_HEADER: usize = 9;
/// Prefix of a message: the compression flag and the length.
const MESSAGE_HEADER: usize = 5;

/// Increase of the flow control window beyond the initial one.
const WINDOW: u32 = 0x7fff_0000;
/// Received bytes after which the window is increased again.
const WINDOW_AGAIN: u32 = WINDOW / 2;

/// Indexes in the static table, and in the dynamic table, whose newest entry is the first.
const INDEXED_AGAIN: [u8; 7] = [0x83, 0x86, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];

/// State of an HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    path: &'static str,
    next_stream: u32,
    /// Bytes received since the last window update.
    received: u32,
    /// Messages whose trailers have not arrived, by stream.
    open: Vec<(u32, Vec<u8>)>,
    /// Buffers to reuse.
    spare: Vec<Vec<u8>>,
}

impl Http2 {
    pub(super) fn new(path: &'static str) -> Self {
        Self { path, next_stream: 1, received: 0, open: Vec::new(), spare: Vec::new() }
    }

    pub(super) fn ask(&mut self, message: &[u8], output: &mut Vec<u8>) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        if stream == 1 {
            output.extend_from_slice(PREFACE);
            frame(output, SETTINGS, 0, 0, &[]);
            frame(output, WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
            frame(output, HEADERS, END_HEADERS, stream, &first_headers(self.path));
        } else {
            frame(output, HEADERS, END_HEADERS, stream, &INDEXED_AGAIN);
        }
        let length = (message.len() as u32).to_be_bytes();
        frame_header(output, MESSAGE_HEADER + message.len(), DATA, END_STREAM, stream);
        output.push(0);
        output.extend_from_slice(&length);
        output.extend_from_slice(message);
        stream
    }

    pub(super) fn answers(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
        mut take: impl FnMut(Answer<'_>),
    ) -> io::Result<usize> {
        let mut done = 0;
        while let Some((head, rest)) = input[done..].split_at_checked(FRAME_HEADER) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            self.frame(head[3], head[4], stream, payload, output, &mut take)?;
            done += FRAME_HEADER + length;
        }
        Ok(done)
    }

    fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        output: &mut Vec<u8>,
        take: &mut impl FnMut(Answer<'_>),
    ) -> io::Result<()> {
        match kind {
            DATA => {
                self.received += payload.len() as u32;
                if self.received > WINDOW_AGAIN {
                    frame(output, WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes());
                    self.received = 0;
                }
                let mut message = self.spare.pop().unwrap_or_default();
                message.clear();
                message.extend_from_slice(payload.get(MESSAGE_HEADER..).unwrap_or_default());
                self.open.push((stream, message));
            }
            HEADERS if flags & END_STREAM != 0 => {
                let open = self.open.iter().position(|(open, _)| *open == stream);
                let open = open.ok_or_else(|| wrong("an answer without a message"))?;
                let (_, message) = self.open.swap_remove(open);
                take(Answer { stream: Some(stream), body: &message });
                self.spare.push(message);
            }
            SETTINGS if flags & ACK == 0 => frame(output, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(output, PING, ACK, 0, payload),
            RST_STREAM | GOAWAY => return Err(wrong(format!("frame {kind}: {payload:?}"))),
            _ => {}
        }
        Ok(())
    }
}

/// Literal headers, added to the dynamic table except for the first two.
fn first_headers(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    let mut text = |start: &[u8], text: &str| {
        block.extend_from_slice(start);
        block.push(text.len() as u8);
        block.extend_from_slice(text.as_bytes());
    };
    text(&[0x40 | 4], path);
    text(&[0x40 | 1], "127.0.0.1");
    text(b"\x40\x02te", "trailers");
    text(&[0x40 | 31], "application/grpc");
    text(&[0x40 | 58], "sluicegate-bench");
    block
}

fn frame(output: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    frame_header(output, payload.len(), kind, flags, stream);
    output.extend_from_slice(payload);
}

fn frame_header(output: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    output.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    output.extend_from_slice(&[kind, flags]);
    output.extend_from_slice(&stream.to_be_bytes());
}
