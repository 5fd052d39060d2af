//! The load: requests over several connections, driven by one thread.
//!
//! In a closed loop every connection has a fixed number of requests in flight and sends more when they are answered:
//! it measures capacity. In an open loop requests have a timetable that does not depend on the server, and latency is
//! measured from the time a request was due.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::requests::Requests;
use crate::wire::{Answer, Protocol, Wire};

/// Timeout without any answer of a server.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time by which an open loop may end late.
const LATE_MAX: Duration = Duration::from_secs(3);
const INPUT_BYTES: usize = 256 * 1024;
const EVENTS_MAX: usize = 1024;

/// Concurrency of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) connections: usize,
    /// Requests in flight on each.
    pub(crate) depth: usize,
}

/// Counts of answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answers: u64,
    pub(crate) denied: u64,
}

/// Connections to a door, and their requests.
pub(crate) struct Load<'a> {
    poll: Poll,
    events: Events,
    lines: Vec<Line>,
    shape: Shape,
    /// A connection sends more when at most this number of its requests are in flight.
    refill_at: usize,
    requests: &'a Requests,
    /// Number of the next request.
    next: usize,
}

/// Everything that a [`Load`] needs to connect.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    pub(crate) shape: Shape,
    pub(crate) requests: &'a Requests,
}

/// One connection.
struct Line {
    stream: TcpStream,
    wire: Wire,
    input: Vec<u8>,
    filled: usize,
    output: Vec<u8>,
    sent: usize,
    /// Requests in flight: stream and due time of each.
    waiting: VecDeque<(u32, u64)>,
}

impl<'a> Load<'a> {
    /// Opens all connections; the first request is the one with this number.
    pub(crate) fn connect(plan: Plan<'a>, next: usize) -> io::Result<Self> {
        let Plan { port, protocol, shape, requests } = plan;
        let poll = Poll::new()?;
        let lines =
            (0..shape.connections).map(|number| Line::connect(&poll, number, port, protocol));
        Ok(Self {
            lines: lines.collect::<io::Result<_>>()?,
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            shape,
            // A pipeline is sent as a whole; streams are independent.
            refill_at: if let Protocol::Grpc { .. } = protocol { shape.depth - 1 } else { 0 },
            requests,
            next,
        })
    }

    /// Number of the next request.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// Sends every request once.
    pub(crate) fn all(&mut self) -> io::Result<Tally> {
        self.closed_until(self.requests.len() as u64)
    }

    /// Runs the closed loop until this number of answers.
    pub(crate) fn closed_until(&mut self, count: u64) -> io::Result<Tally> {
        self.closed(|answers| answers < count)
    }

    /// Runs the closed loop for this time.
    pub(crate) fn closed_for(&mut self, length: Duration) -> io::Result<Tally> {
        let started = Instant::now();
        self.closed(|_| started.elapsed() < length)
    }

    fn closed(&mut self, goes_on: impl Fn(u64) -> bool) -> io::Result<Tally> {
        let mut tally = Tally::default();
        for line in 0..self.lines.len() {
            self.fill(line)?;
        }
        let mut is_going = true;
        loop {
            wait(&mut self.poll, &mut self.events, PATIENCE)?;
            if self.events.is_empty() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
            }
            let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
            for number in ready {
                let (line, requests) = (&mut self.lines[number], self.requests);
                line.flush()?;
                line.receive(|answer, _| tally.add(requests, answer))?;
                if is_going && line.waiting.len() <= self.refill_at {
                    self.fill(number)?;
                }
            }
            is_going = is_going && goes_on(tally.answers);
            if !is_going && self.lines.iter().all(|line| line.waiting.is_empty()) {
                return Ok(tally);
            }
        }
    }

    fn fill(&mut self, line: usize) -> io::Result<()> {
        while self.lines[line].waiting.len() < self.shape.depth {
            self.ask(line, 0);
        }
        self.lines[line].flush()
    }

    fn ask(&mut self, line: usize, due: u64) {
        let line = &mut self.lines[line];
        let stream = line.wire.ask(self.requests.get(self.next), &mut line.output);
        line.waiting.push_back((stream, due));
        self.next = (self.next + 1) % self.requests.len();
    }

    /// Runs the open loop by this timetable, in nanoseconds from now, and returns the latencies. Never sleeps: waking
    /// up takes longer than many answers.
    pub(crate) fn open(&mut self, timetable: &[u64]) -> io::Result<(Tally, Vec<u64>)> {
        let mut tally = Tally::default();
        let mut latencies = Vec::with_capacity(timetable.len());
        let Shape { connections, depth } = self.shape;
        // Round robin: a connection that was used goes to the end.
        let mut free: VecDeque<usize> = (0..depth).flat_map(|_| 0..connections).collect();
        let mut due = timetable.iter().copied().peekable();
        let started = Instant::now();
        let now = || started.elapsed().as_nanos() as u64;
        let end = timetable.last().copied().unwrap_or(0) + LATE_MAX.as_nanos() as u64;
        while latencies.len() < timetable.len() {
            let at = now();
            while let Some(line) = free.front().copied() {
                let Some(due) = due.next_if(|due| *due <= at) else { break };
                free.pop_front();
                self.ask(line, due);
                self.lines[line].flush()?;
            }
            if at > end {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "too slow for the timetable"));
            }
            wait(&mut self.poll, &mut self.events, Duration::ZERO)?;
            for event in &self.events {
                let number = event.token().0;
                let (line, requests) = (&mut self.lines[number], self.requests);
                line.flush()?;
                line.receive(|answer, due| {
                    tally.add(requests, answer);
                    latencies.push(now() - due);
                    free.push_back(number);
                })?;
            }
        }
        Ok((tally, latencies))
    }
}

fn wait(poll: &mut Poll, events: &mut Events, most: Duration) -> io::Result<()> {
    match poll.poll(events, Some(most)) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}

impl Tally {
    fn add(&mut self, requests: &Requests, answer: Answer<'_>) {
        self.answers += 1;
        self.denied += u64::from(!(requests.is_allowed)(answer.body));
    }
}

impl Line {
    fn connect(poll: &Poll, number: usize, port: u16, protocol: Protocol) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut stream, Token(number), both)?;
        Ok(Self {
            stream,
            wire: protocol.wire(),
            input: vec![0; INPUT_BYTES],
            filled: 0,
            output: Vec::new(),
            sent: 0,
            waiting: VecDeque::new(),
        })
    }

    /// Sends as much as the socket accepts.
    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads available bytes and calls `take` for each answer with the due time of its request.
    fn receive(&mut self, mut take: impl FnMut(Answer<'_>, u64)) -> io::Result<()> {
        loop {
            let space = self.input.len() - self.filled;
            let read = match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.filled += read;
            let (waiting, input) = (&mut self.waiting, &self.input[..self.filled]);
            let done = self.wire.answers(input, &mut self.output, |answer| {
                let place = waiting.iter().position(|(stream, _)| {
                    answer.stream.is_none_or(|answered| answered == *stream)
                });
                let due = place.and_then(|place| waiting.remove(place)).map_or(0, |(_, due)| due);
                take(answer, due);
            })?;
            self.input.copy_within(done..self.filled, 0);
            self.filled -= done;
            self.flush()?;
            // Less than the buffer: nothing more is available.
            if read < space {
                return Ok(());
            }
        }
    }
}
