//! Answering all the commands that have come, in their order.

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use sluicegate::{Decision, Trouble, Verdict};
use tracing::debug;

use super::buffers::REPLY_BYTES;
use super::commands::{Ask, Take, answer_check};
use super::error::{Fault, is_one_of};
use super::parser::{Command, Parser};
use super::reply::{Protocol, Replies};
use super::session::{Heard, House, Next, Session};
use crate::app::{App, InProcessApp};
use crate::observe::metrics::resp::{CommandCounts, CommandKind, CommandOutcome};

/// So many commands of one connection are on their way to the store at once. They are sent in their order, and
/// so charged in it, without a round trip for each.
const TOGETHER_MAX: usize = 128;

/// What answers the commands of one connection.
#[derive(Debug)]
pub(super) struct Answering<'a> {
    pub(super) app: &'a App,
    pub(super) house: &'a House,
    pub(super) session: &'a mut Session,
    pub(super) parser: &'a mut Parser,
    pub(super) replies: &'a mut Replies,
    /// What became of the commands.
    pub(super) counts: CommandCounts,
}

/// How far it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// The bytes of the commands that are answered.
    pub(super) bytes: usize,
    /// Why it went no further.
    pub(super) pause: Pause,
}

/// Why no further command is answered for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// No other has come whole.
    Read,
    /// The replies are to be sent first.
    Send,
    /// The client leaves, or has to.
    Close,
}

/// What a command came to.
enum Step<'i> {
    /// The limiter has to be asked.
    Ask(Ask<'i>),
    /// It is answered, in the replies.
    Answered,
    /// No further command is answered for now.
    Pause(Pause),
}

/// A command whose answer waits for earlier ones, and perhaps for the store.
enum Waiting<'i> {
    Ask(Ask<'i>),
    /// Its replies are written already.
    Answered(Vec<u8>),
}

/// What is to be sent for it.
enum Said<'i> {
    Take(Take<'i>, Result<(Decision, bool), Trouble>),
    Check(Result<Verdict, Trouble>),
    Replies(Vec<u8>),
}

impl Answering<'_> {
    /// Answers the commands in the input, until it is used up or the replies are many.
    pub(super) async fn answer(mut self, input: &[u8]) -> Answered {
        self.replies.protocol = self.session.protocol();
        let answered = match self.app.in_process() {
            Some(app) => self.answer_in_process(app, input),
            // Boxed, so that connections whose store is in this process have no room for it.
            None => Box::pin(self.answer_together(input)).await,
        };
        self.house.metrics.count(&self.counts);
        answered
    }

    /// Answers from a store in this process: each command is done before the next is parsed.
    fn answer_in_process(&mut self, mut app: InProcessApp<'_>, input: &[u8]) -> Answered {
        let mut bytes = 0;
        loop {
            match self.step(input, &mut bytes) {
                Step::Ask(Ask::Take(take)) => {
                    let decision = app.take(take.key, &take.quota, take.cost);
                    self.took(&take, &decision, false);
                }
                Step::Ask(Ask::Check(check)) => self.checked(app.check(&check.request())),
                Step::Answered => {}
                Step::Pause(pause) => return Answered { bytes, pause },
            }
        }
    }

    /// Answers by a store elsewhere: many commands are on their way to it at once.
    async fn answer_together(&mut self, input: &[u8]) -> Answered {
        let (mut asked, mut bytes) = (FuturesOrdered::new(), 0);
        let pause = loop {
            let (start, protocol) = (self.replies.bytes.len(), self.replies.protocol);
            let waiting = match self.step(input, &mut bytes) {
                Step::Ask(ask) => Waiting::Ask(ask),
                Step::Answered if asked.is_empty() => continue,
                // Earlier commands are answered first.
                Step::Answered => Waiting::Answered(self.replies.bytes.split_off(start)),
                Step::Pause(pause) => {
                    let last = self.replies.bytes.split_off(start);
                    while let Some((said, protocol)) = asked.next().await {
                        self.say(said, protocol);
                    }
                    self.replies.bytes.extend_from_slice(&last);
                    break pause;
                }
            };
            asked.push_back(said_of(self.app, waiting, protocol));
            if asked.len() == TOGETHER_MAX
                && let Some((said, protocol)) = asked.next().await
            {
                self.say(said, protocol);
            }
        };
        Answered { bytes, pause }
    }

    /// Understands the next command, and answers it unless the limiter has to.
    #[inline]
    fn step<'i>(&mut self, input: &'i [u8], bytes: &mut usize) -> Step<'i> {
        if self.replies.bytes.len() >= REPLY_BYTES {
            return Step::Pause(Pause::Send);
        }
        let bytes_max = self.session.command_bytes_max();
        let command = match self.parser.next_within(&input[*bytes..], bytes_max) {
            Ok(Some(command)) => command,
            Ok(None) => return Step::Pause(Pause::Read),
            Err(malformed) => {
                self.house.metrics.protocol_errors.inc();
                self.replies.error(format_args!("ERR Protocol error: {malformed}"));
                return Step::Pause(Pause::Close);
            }
        };
        *bytes += command.bytes();
        if command.is_empty() {
            return Step::Answered;
        }
        let heard = self.session.hear(&command, self.house);
        let next = match heard {
            Heard::Ask(ask) => return Step::Ask(ask),
            Heard::Talk(known) => self.session.talk(&command, known, self.house, self.replies),
            Heard::Wrong(fault) if is_http(&command) => {
                debug!(%fault, "connection closed: this is HTTP");
                self.house.metrics.protocol_errors.inc();
                self.replies.error("ERR Protocol error: this is HTTP, sent to a port that speaks the Redis protocol");
                return Step::Pause(Pause::Close);
            }
            Heard::Wrong(fault) => Err(fault),
        };
        match next {
            Ok(next) => {
                self.counts.note(CommandKind::Other, CommandOutcome::Ok);
                match next {
                    Next::Listen => Step::Answered,
                    Next::Close => Step::Pause(Pause::Close),
                }
            }
            Err(fault) => {
                self.counts.note(kind_of(&command), CommandOutcome::Error);
                self.replies.error(fault);
                Step::Answered
            }
        }
    }

    /// Answers in the version of the protocol that was spoken when the command came.
    fn say(&mut self, said: Said<'_>, protocol: Protocol) {
        let now = std::mem::replace(&mut self.replies.protocol, protocol);
        match said {
            Said::Take(take, Ok((decision, is_degraded))) => {
                self.took(&take, &decision, is_degraded);
            }
            Said::Take(take, Err(trouble)) => self.failed(take_kind(&take), &trouble),
            Said::Check(verdict) => self.checked(verdict),
            Said::Replies(replies) => self.replies.bytes.extend_from_slice(&replies),
        }
        self.replies.protocol = now;
    }

    #[inline]
    fn took(&mut self, take: &Take<'_>, decision: &Decision, is_degraded: bool) {
        self.counts.note(take_kind(take), outcome(decision.is_granted()));
        take.answer(decision, is_degraded, self.replies);
    }

    fn checked(&mut self, verdict: Result<Verdict, Trouble>) {
        match verdict {
            Ok(verdict) => {
                self.counts.note(CommandKind::Check, outcome(verdict.is_allowed()));
                answer_check(&verdict, self.replies);
            }
            Err(trouble) => self.failed(CommandKind::Check, &trouble),
        }
    }

    fn failed(&mut self, kind: CommandKind, trouble: &Trouble) {
        self.counts.note(kind, CommandOutcome::Error);
        self.replies.error(Fault::trouble(trouble));
    }
}

/// Asks the limiter, and remembers in which version of the protocol it is to be answered.
async fn said_of<'i>(app: &App, waiting: Waiting<'i>, protocol: Protocol) -> (Said<'i>, Protocol) {
    let said = match waiting {
        Waiting::Ask(Ask::Take(take)) => {
            let taken = app.take_bytes(take.key, &take.quota, take.cost).await;
            Said::Take(take, taken)
        }
        Waiting::Ask(Ask::Check(check)) => Said::Check(app.check(&check.request()).await),
        Waiting::Answered(replies) => Said::Replies(replies),
    };
    (said, protocol)
}

/// Whether it is a line of a request of HTTP that somebody was made to send here.
fn is_http(command: &Command<'_, '_>) -> bool {
    command.is_inline() && is_one_of(command.argument(0), &["post", "host:"])
}

fn take_kind(take: &Take<'_>) -> CommandKind {
    if take.is_throttle { CommandKind::Throttle } else { CommandKind::Take }
}

fn kind_of(command: &Command<'_, '_>) -> CommandKind {
    let name = command.argument(0);
    match () {
        () if is_one_of(name, &["cl.throttle"]) => CommandKind::Throttle,
        () if is_one_of(name, &["sg.check"]) => CommandKind::Check,
        () if is_one_of(name, &["sg.take"]) => CommandKind::Take,
        () => CommandKind::Other,
    }
}

fn outcome(is_granted: bool) -> CommandOutcome {
    if is_granted { CommandOutcome::Ok } else { CommandOutcome::Denied }
}
