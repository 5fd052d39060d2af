//! Minimal client: it writes bytes that were encoded beforehand, and parses only the numbers in answers.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

/// Size of a read.
const READ_BYTES: usize = 1 << 16;

/// Characters of a time in seconds with six decimals.
pub(crate) const TIME_CHARS: usize = 17;
pub(crate) const TIME_BLANK: &str = "0000000000.000000";

/// Encodes a command.
pub(crate) fn encode(into: &mut Vec<u8>, words: &[&str]) {
    into.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        into.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Writes the current time in seconds over a blank.
pub(crate) fn write_time(blank: &mut [u8]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    digits(&mut blank[..10], now.as_secs());
    digits(&mut blank[11..TIME_CHARS], u64::from(now.subsec_micros()));
}

fn digits(into: &mut [u8], mut number: u64) {
    for place in into.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are not parsed yet.
    start: usize,
    end: usize,
    /// Numbers in the last answer.
    numbers: Vec<i64>,
}

impl Wire {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let buffer = vec![0; READ_BYTES];
        Ok(Self { stream, buffer, start: 0, end: 0, numbers: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for an answer, and returns the numbers in it.
    pub(crate) fn answer(&mut self) -> io::Result<&[i64]> {
        self.numbers.clear();
        loop {
            let mut reader = Reader { bytes: &self.buffer[self.start..self.end], at: 0 };
            match reader.value(&mut self.numbers)? {
                Some(()) => {
                    self.start += reader.at;
                    return Ok(&self.numbers);
                }
                None => self.fill()?,
            }
            self.numbers.clear();
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        match self.stream.read(&mut self.buffer[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Parses one value and collects its numbers. `None` if it is incomplete.
    fn value(&mut self, numbers: &mut Vec<i64>) -> io::Result<Option<()>> {
        let Some((kind, line)) = self.line() else { return Ok(None) };
        match kind {
            b'+' => {}
            b':' => numbers.push(number(line)),
            b'$' => {
                if let Ok(length) = usize::try_from(number(line)) {
                    self.at += length + 2;
                }
                if self.at > self.bytes.len() {
                    return Ok(None);
                }
            }
            b'*' => {
                for _ in 0..number(line) {
                    if self.value(numbers)?.is_none() {
                        return Ok(None);
                    }
                }
            }
            _ => return Err(io::Error::other(String::from_utf8_lossy(line).into_owned())),
        }
        Ok(Some(()))
    }

    fn line(&mut self) -> Option<(u8, &[u8])> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += length + 1;
        Some((rest[0], &rest[1..length - 1]))
    }
}

fn number(text: &[u8]) -> i64 {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    sign * digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}
