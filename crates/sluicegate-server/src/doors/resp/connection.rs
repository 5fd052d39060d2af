//! A connection of the Redis protocol.

use std::future::poll_fn;
use std::io;
use std::mem::take;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use super::Shared;
use super::buffers::{Buffers, READ_BYTES};
use super::error::Fault;
use super::pipeline::{Pause, Pipeline};
use super::reply::Replies;
use super::session::{ClientSession, RESP_DOOR, SharedConfig};
use crate::auth::admission::Refused;
use crate::doors::progress::Progress;
use crate::doors::stream::Stream;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::resp::CommandCounts;

/// During shutdown, a connection that keeps sending is still answered for this long, and then
/// closed after an answer.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// Time that the client has to close after the last answer. Bytes it sends meanwhile are read and
/// discarded: closing a socket with unread bytes would reset the connection and lose answers in
/// flight.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Answer to an attempt to authenticate that is not checked.
const TOO_MANY_ATTEMPTS: Fault = Fault::new(
    "ERR too many wrong passwords from this address: this one was not checked, try again in some seconds",
);

/// Size of the buffer for discarded bytes.
const SCRAP_BYTES: usize = 4 * 1024;

/// An accepted connection.
pub(super) struct RespConnection<'a, S> {
    shared: &'a Shared,
    stream: S,
    session: ClientSession,
    progress: Arc<Progress>,
    /// `None` between commands: buffers are nearly all of a connection's memory.
    buffers: Option<Box<Buffers>>,
    /// Deadline for the rest of an incomplete command; for an unauthenticated client that has sent
    /// something, for its password. A new connection may be quiet: pools are opened ahead of use.
    deadline: Option<Instant>,
    /// During shutdown, the time after which no further command is answered.
    end_at: Option<Instant>,
}

/// Reason why waiting ended.
enum Wakeup {
    /// There are bytes to read.
    Bytes,
    /// The shutdown began.
    Shutdown,
    /// A timeout expired.
    Timeout,
}

impl<'a, S: Stream> RespConnection<'a, S> {
    pub(super) fn new(
        shared: &'a Shared,
        stream: S,
        session: ClientSession,
        progress: Arc<Progress>,
    ) -> Self {
        Self { shared, stream, session, progress, buffers: None, deadline: None, end_at: None }
    }

    /// Answers commands until the connection ends, times out, or the process shuts down.
    pub(super) async fn run(mut self, mut phase: PhaseWatch) {
        let ending = phase.clone();
        let mut draining = pin!(phase.draining());
        loop {
            match self.wait(&ending, draining.as_mut()).await {
                Wakeup::Bytes => {}
                Wakeup::Shutdown => {
                    self.end_at = Some(Instant::now() + LAST_ANSWERS);
                    continue;
                }
                Wakeup::Timeout => break,
            }
            match self.read_and_answer(&ending).await {
                Ok(true) if self.end_at.is_some_and(|end_at| end_at <= Instant::now()) => break,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    debug!(%error, "connection broken");
                    return;
                }
            }
        }
        // Boxed, so that open connections need no memory for it. Errors are ignored: the client may
        // be gone.
        let _ = timeout(CLOSE_TIMEOUT, Box::pin(self.close())).await;
    }

    /// Shuts down the sending side, and waits for the client to close.
    async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut scrap = [0; SCRAP_BYTES];
        while self.stream.read(&mut scrap).await? > 0 {}
        Ok(())
    }

    /// Waits for bytes within the timeouts. Holds no buffer meanwhile, except for an incomplete
    /// command.
    async fn wait(
        &mut self,
        ending: &PhaseWatch,
        mut draining: Pin<&mut impl Future<Output = ()>>,
    ) -> Wakeup {
        let (stream, is_draining) = (&self.stream, self.end_at.is_some());
        let wakeup = poll_fn(|cx| {
            let is_readable = stream.poll_readable(cx).is_ready();
            // A client that always has bytes to read must notice the shutdown, too.
            let polls_shutdown = !is_draining && (!is_readable || ending.is_leaving());
            if polls_shutdown && draining.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Wakeup::Shutdown);
            }
            if is_readable { Poll::Ready(Wakeup::Bytes) } else { Poll::Pending }
        });
        match self.time_left() {
            None => wakeup.await,
            Some(time_left) => timeout(time_left, wakeup).await.unwrap_or(Wakeup::Timeout),
        }
    }

    /// Time left to wait; `None` for no limit.
    fn time_left(&self) -> Option<Duration> {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let time_left = self.deadline.map(until);
        let Some(end_at) = self.end_at else { return time_left.or(self.shared.timeouts.idle) };
        // An incomplete command may be completed for as long as it would be answered.
        let last = if self.buffers.is_some() { until(end_at) } else { QUIET };
        Some(time_left.map_or(last, |time_left| time_left.min(last)))
    }

    /// Reads available bytes, answers them and sends the replies. Returns whether to continue.
    async fn read_and_answer(&mut self, ending: &PhaseWatch) -> io::Result<bool> {
        let mut buffers = self.buffers.take().unwrap_or_else(Buffers::take);
        match self.read(&mut buffers.input).await {
            // Nothing came: no deadline begins.
            Poll::Pending => {
                self.buffers = buffers.settle();
                return Ok(true);
            }
            Poll::Ready(Ok(0)) => return Ok(false),
            Poll::Ready(Ok(_)) => {
                self.progress.moved();
                if self.answer(&mut buffers, ending).await? == Pause::Close {
                    return Ok(false);
                }
            }
            Poll::Ready(Err(error)) => return Err(error),
        }
        self.buffers = buffers.settle();
        if self.buffers.is_some() || !self.session.is_trusted() {
            self.deadline.get_or_insert_with(|| Instant::now() + self.shared.timeouts.command);
        }
        Ok(true)
    }

    /// Reads available bytes without waiting.
    async fn read(&mut self, input: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        input.reserve(READ_BYTES);
        let mut reading = pin!(self.stream.read_buf(input));
        poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await
    }

    /// Answers all commands in the input, and sends the replies.
    async fn answer(&mut self, buffers: &mut Buffers, ending: &PhaseWatch) -> io::Result<Pause> {
        let Buffers { input, parser, replies } = buffers;
        let mut used = 0;
        let pause = loop {
            let pipeline = Pipeline {
                app: &self.shared.app,
                shared_config: &self.shared.shared_config,
                session: &mut self.session,
                parser,
                replies,
                counts: CommandCounts::default(),
            };
            let answered = pipeline.answer(&input[used..]).await;
            used += answered.bytes;
            send(&mut self.stream, &mut replies.bytes, self.shared.timeouts.write).await?;
            match answered.pause {
                Pause::Send => {}
                Pause::Wait(delay) => {
                    input.drain(..take(&mut used));
                    input.shrink_to_fit();
                    // Boxed, so that other connections need no memory for it.
                    if !Box::pin(self.wait_for_turn(delay, replies, ending)).await? {
                        break Pause::Close;
                    }
                }
                Pause::Read | Pause::Close => break answered.pause,
            }
        };
        if used > 0 {
            if self.session.is_trusted() {
                // The rest of the input began later.
                self.deadline = None;
            }
            input.drain(..used);
        }
        Ok(pause)
    }
}

impl<S: Stream> RespConnection<'_, S> {
    /// Waits for the delay of an attempt to authenticate. Returns false if the connection must be closed: too many
    /// attempts wait, or the process shuts down.
    async fn wait_for_turn(
        &mut self,
        delay: Duration,
        replies: &mut Replies,
        ending: &PhaseWatch,
    ) -> io::Result<bool> {
        let SharedConfig { delays, metrics, caller_metrics, .. } = &self.shared.shared_config;
        let Some(_waiting) = delays.wait(self.session.peer().ip()) else {
            metrics.auth_refused.inc();
            caller_metrics.refused(RESP_DOOR, Refused::TooMany(delay).name());
            replies.error(TOO_MANY_ATTEMPTS);
            send(&mut self.stream, &mut replies.bytes, self.shared.timeouts.write).await?;
            return Ok(false);
        };
        metrics.auth_delayed.inc();
        self.session.waited();
        let mut ending = ending.clone();
        Ok(tokio::select! {
            () = sleep(delay) => true,
            () = ending.draining() => false,
        })
    }
}

/// Sends all bytes. A client that does not read them is not read from meanwhile, and disconnected
/// after the timeout.
async fn send<S: Stream>(
    stream: &mut S,
    bytes: &mut Vec<u8>,
    write_timeout: Duration,
) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut sending = pin!(async {
        stream.write_all(bytes).await?;
        stream.flush().await
    });
    // Usually sent at once, without a timer.
    match poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await {
        Poll::Ready(sent) => sent?,
        Poll::Pending => timeout(write_timeout, sending).await??,
    }
    bytes.clear();
    Ok(())
}
