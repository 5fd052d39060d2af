//! One connection, from its first byte to its last.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::Shared;
use super::buffers::{Buffers, READ_BYTES};
use super::pipeline::{Answering, Pause};
use super::session::Session;
use crate::doors::stream::Stream;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::resp::CommandCounts;

/// At the end, how long one that is not quiet is still answered. Then it is closed after an answer.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// How long is waited, after the last answer, for the client to close: what it sends meanwhile is not done, but
/// taken, since a socket that is closed on it would take back the answers that are on their way.
const FAREWELL: Duration = Duration::from_millis(200);

/// So much is taken at once of what nobody answers.
const SCRAP_BYTES: usize = 4 * 1024;

/// A connection that is to be served.
pub(super) struct Connection<'a, S> {
    shared: &'a Shared,
    stream: S,
    session: Session,
    /// None between commands: nearly all that a connection takes.
    buffers: Option<Box<Buffers>>,
    /// When the rest of a command must have come, if part of one has; of a client that has not said anything yet,
    /// or is not trusted, when it must have.
    deadline: Option<Instant>,
    /// From when on no further command is answered, if everything ends.
    end_at: Option<Instant>,
}

/// What was waited for.
enum Came {
    /// There is something to read.
    Bytes,
    /// Everything ends.
    End,
    /// Nothing, in time.
    Nothing,
}

impl<'a, S: Stream> Connection<'a, S> {
    pub(super) fn new(shared: &'a Shared, stream: S, session: Session) -> Self {
        let deadline = Some(Instant::now() + shared.timeouts.command);
        Self { shared, stream, session, buffers: None, deadline, end_at: None }
    }

    /// Answers its commands until it ends, stalls, or everything ends.
    pub(super) async fn run(mut self, mut phase: PhaseWatch) {
        let ending = phase.clone();
        let mut draining = pin!(phase.draining());
        loop {
            match self.wait(&ending, draining.as_mut()).await {
                Came::Bytes => {}
                Came::End => {
                    self.end_at = Some(Instant::now() + LAST_ANSWERS);
                    continue;
                }
                Came::Nothing => break,
            }
            match self.read_and_answer().await {
                Ok(true) if self.end_at.is_some_and(|end_at| end_at <= Instant::now()) => break,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    debug!(%error, "connection broken");
                    return;
                }
            }
        }
        // In a box, so that connections that go on have no room for it. The client may be gone: then nobody needs
        // to be told.
        let _ = timeout(FAREWELL, Box::pin(self.close())).await;
    }

    /// Says that nothing more comes, and waits for the client to say so, too.
    async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut scrap = [0; SCRAP_BYTES];
        while self.stream.read(&mut scrap).await? > 0 {}
        Ok(())
    }

    /// Waits for something to read, as long as may be. It holds no buffer meanwhile, but for a part of a command.
    async fn wait(
        &mut self,
        ending: &PhaseWatch,
        mut draining: Pin<&mut impl Future<Output = ()>>,
    ) -> Came {
        let (stream, is_draining) = (&self.stream, self.end_at.is_some());
        let came = poll_fn(|cx| {
            let is_readable = stream.poll_readable(cx).is_ready();
            // Whoever always has more to say hears of the end, too.
            let is_asked = !is_draining && (!is_readable || ending.is_leaving());
            if is_asked && draining.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Came::End);
            }
            if is_readable { Poll::Ready(Came::Bytes) } else { Poll::Pending }
        });
        match self.patience() {
            None => came.await,
            Some(patience) => timeout(patience, came).await.unwrap_or(Came::Nothing),
        }
    }

    /// How long it may be waited for.
    fn patience(&self) -> Option<Duration> {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let patience = self.deadline.map(until);
        let Some(end_at) = self.end_at else { return patience.or(self.shared.timeouts.idle) };
        // Part of a command may become a whole one, as long as that would be answered.
        let last = if self.buffers.is_some() { until(end_at) } else { QUIET };
        Some(patience.map_or(last, |patience| patience.min(last)))
    }

    /// Reads what is there, answers it and sends the answers. Says whether to go on.
    async fn read_and_answer(&mut self) -> io::Result<bool> {
        let mut buffers = self.buffers.take().unwrap_or_else(Buffers::take);
        match self.read(&mut buffers.input).await {
            Poll::Pending => {}
            Poll::Ready(Ok(0)) => return Ok(false),
            Poll::Ready(Ok(_)) => {
                if self.answer(&mut buffers).await? == Pause::Close {
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

    /// Reads what is there, and never waits.
    async fn read(&mut self, input: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        input.reserve(READ_BYTES);
        let mut reading = pin!(self.stream.read_buf(input));
        poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await
    }

    /// Answers all commands in the input, and sends the answers.
    async fn answer(&mut self, buffers: &mut Buffers) -> io::Result<Pause> {
        let Buffers { input, parser, replies } = buffers;
        let mut used = 0;
        let pause = loop {
            let answering = Answering {
                app: &self.shared.app,
                house: &self.shared.house,
                session: &mut self.session,
                parser,
                replies,
                counts: CommandCounts::default(),
            };
            let answered = answering.answer(&input[used..]).await;
            used += answered.bytes;
            send(&mut self.stream, &mut replies.bytes, self.shared.timeouts.write).await?;
            if answered.pause != Pause::Send {
                break answered.pause;
            }
        };
        if used > 0 {
            if self.session.is_trusted() {
                // What is left has begun later.
                self.deadline = None;
            }
            input.drain(..used);
        }
        Ok(pause)
    }
}

/// Sends all of it. A client that does not take it is not read from meanwhile, and not for ever.
async fn send<S: Stream>(
    stream: &mut S,
    bytes: &mut Vec<u8>,
    patience: Duration,
) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut sending = pin!(async {
        stream.write_all(bytes).await?;
        stream.flush().await
    });
    // Nearly always it goes at once, and nobody need watch the time.
    match poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await {
        Poll::Ready(sent) => sent?,
        Poll::Pending => timeout(patience, sending).await??,
    }
    bytes.clear();
    Ok(())
}
