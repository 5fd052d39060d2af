//! Answers all commands of an input, in order.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use sluicegate::{Decision, Trouble, Verdict};
use tracing::debug;

use super::buffers::REPLY_BYTES;
use super::commands::table::CommandSpec;
use super::commands::{Ask, Refund, Take, answer_check};
use super::error::{Fault, is_one_of};
use super::parser::{Command, Parser};
use super::reply::{Protocol, Replies};
use super::session::{ClientSession, Next, Parsed, SharedConfig};
use crate::app::{App, InProcessApp};
use crate::auth::callers::Caller;
use crate::observe::metrics::refunds::RefundDoor;
use crate::observe::metrics::resp::{CommandCounts, CommandKind, CommandOutcome};

/// Commands of a connection in flight to the store at once. They are sent in order, and so charged
/// in order, without a round trip for each.
const TOGETHER_MAX: usize = 128;

/// Answers the commands of one connection.
#[derive(Debug)]
pub(super) struct Pipeline<'a> {
    pub(super) app: &'a App,
    pub(super) shared_config: &'a SharedConfig,
    pub(super) session: &'a mut ClientSession,
    pub(super) parser: &'a mut Parser,
    pub(super) replies: &'a mut Replies,
    /// Outcomes of the commands.
    pub(super) counts: CommandCounts,
}

/// Result of answering an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// Bytes of the answered commands.
    pub(super) bytes: usize,
    /// Reason why it stopped.
    pub(super) pause: Pause,
}

/// Reason why no further command is answered for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The next command is incomplete.
    Read,
    /// The replies must be sent first.
    Send,
    /// The next command attempts to authenticate, and must wait this long.
    Wait(Duration),
    /// The connection must be closed.
    Close,
}

/// Result of one command.
enum Step<'i> {
    /// The limiter must decide.
    Ask(Ask<'i>),
    /// Answered; its reply is written.
    Answered,
    /// No further command is answered for now.
    Pause(Pause),
}

/// A command that waits for earlier ones, and possibly for the store.
enum Waiting<'i> {
    Ask(Ask<'i>),
    /// Its reply is already written.
    Answered(Vec<u8>),
}

/// A reply to be written.
enum Reply<'i> {
    Take(Take<'i>, Result<(Decision, bool), Trouble>),
    Check(Result<Verdict, Trouble>),
    Refund(Refund<'i>, Result<Decision, Trouble>),
    Replies(Vec<u8>),
}

impl Pipeline<'_> {
    /// Answers commands until the input is used up or the replies are large.
    pub(super) async fn answer(mut self, input: &[u8]) -> Answered {
        self.replies.protocol = self.session.protocol();
        let answered = match self.app.in_process() {
            Some(app) => self.answer_in_process(app, input),
            // Boxed, so that connections with a store in this process need no memory for it.
            None => Box::pin(self.answer_together(input)).await,
        };
        self.shared_config.metrics.count(&self.counts);
        answered
    }

    /// Answers from a store in this process: each command is done before the next is parsed.
    fn answer_in_process(&mut self, mut app: InProcessApp<'_>, input: &[u8]) -> Answered {
        let mut bytes = 0;
        loop {
            match self.step(input, &mut bytes) {
                Step::Ask(Ask::Take(take)) => {
                    let decision =
                        app.take(take.key, self.session.namespace(), &take.quota, take.cost);
                    self.took(&take, &decision, false);
                }
                Step::Ask(Ask::Check(check)) => {
                    let verdict = app.check(&check.request(self.session.namespace()));
                    self.checked(verdict);
                }
                Step::Ask(Ask::Refund(refund)) => {
                    let Refund { key, quota, amount } = &refund;
                    let decision = app.refund_key(key, self.session.namespace(), quota, *amount);
                    let caller = self.session.caller().map(Arc::as_ref);
                    self.app.note_refund(RefundDoor::Resp, caller, *amount);
                    self.refunded(&refund, Ok(decision));
                }
                Step::Answered => {}
                Step::Pause(pause) => return Answered { bytes, pause },
            }
        }
    }

    /// Answers with a remote store: many commands are in flight at once.
    async fn answer_together(&mut self, input: &[u8]) -> Answered {
        let (mut pending, mut bytes) = (FuturesOrdered::new(), 0);
        let pause = loop {
            let (start, protocol) = (self.replies.bytes.len(), self.replies.protocol);
            let waiting = match self.step(input, &mut bytes) {
                Step::Ask(ask) => Waiting::Ask(ask),
                Step::Answered if pending.is_empty() => continue,
                // Earlier commands are answered first.
                Step::Answered => Waiting::Answered(self.replies.bytes.split_off(start)),
                Step::Pause(pause) => {
                    let last = self.replies.bytes.split_off(start);
                    while let Some((reply, protocol)) = pending.next().await {
                        self.write_reply(reply, protocol);
                    }
                    self.replies.bytes.extend_from_slice(&last);
                    break pause;
                }
            };
            // Later commands may authenticate as another caller.
            let caller = self.session.caller().cloned();
            pending.push_back(reply_to(self.app, waiting, caller, protocol));
            if pending.len() == TOGETHER_MAX
                && let Some((reply, protocol)) = pending.next().await
            {
                self.write_reply(reply, protocol);
            }
        };
        Answered { bytes, pause }
    }

    /// Parses the next command, and answers it unless the limiter must decide.
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
                self.shared_config.metrics.protocol_errors.inc();
                self.replies.error(format_args!("ERR Protocol error: {malformed}"));
                return Step::Pause(Pause::Close);
            }
        };
        *bytes += command.bytes();
        if command.is_empty() {
            return Step::Answered;
        }
        let parsed = self.session.parse(&command, self.shared_config);
        let next = match parsed {
            Parsed::Ask(ask) => return Step::Ask(ask),
            Parsed::Connection(name, known) => {
                let command_bytes = command.bytes();
                let next =
                    self.session.execute(&command, (name, known), self.shared_config, self.replies);
                if let Ok(Next::Wait(delay)) = next {
                    *bytes -= command_bytes;
                    return Step::Pause(Pause::Wait(delay));
                }
                next
            }
            Parsed::Invalid(fault) if is_http(&command) => {
                debug!(%fault, "connection closed: this is HTTP");
                self.shared_config.metrics.protocol_errors.inc();
                self.replies.error(
                    "ERR Protocol error: this is HTTP, sent to a port of the Redis protocol",
                );
                return Step::Pause(Pause::Close);
            }
            Parsed::Invalid(fault) => Err(fault),
        };
        match next {
            Ok(next) => {
                self.counts.note(CommandKind::Other, CommandOutcome::Ok);
                match next {
                    Next::Continue | Next::Wait(_) => Step::Answered,
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

    /// Writes a reply in the protocol version that was in use when the command was read.
    fn write_reply(&mut self, reply: Reply<'_>, protocol: Protocol) {
        let now = std::mem::replace(&mut self.replies.protocol, protocol);
        match reply {
            Reply::Take(take, Ok((decision, is_degraded))) => {
                self.took(&take, &decision, is_degraded);
            }
            Reply::Take(take, Err(trouble)) => self.failed(take_kind(&take), &trouble),
            Reply::Check(verdict) => self.checked(verdict),
            Reply::Refund(refund, refunded) => self.refunded(&refund, refunded),
            Reply::Replies(replies) => self.replies.bytes.extend_from_slice(&replies),
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

    fn refunded(&mut self, refund: &Refund<'_>, refunded: Result<Decision, Trouble>) {
        match refunded {
            Ok(decision) => {
                self.counts.note(CommandKind::Refund, CommandOutcome::Ok);
                refund.answer(&decision, self.replies);
            }
            Err(trouble) => self.failed(CommandKind::Refund, &trouble),
        }
    }

    fn failed(&mut self, kind: CommandKind, trouble: &Trouble) {
        self.counts.note(kind, CommandOutcome::Error);
        self.replies.error(Fault::trouble(trouble));
    }
}

/// Decides a command, and returns the reply with its protocol version.
async fn reply_to<'i>(
    app: &App,
    waiting: Waiting<'i>,
    caller: Option<Arc<Caller>>,
    protocol: Protocol,
) -> (Reply<'i>, Protocol) {
    let namespace = caller.as_ref().and_then(|caller| caller.namespace.as_deref());
    let reply = match waiting {
        Waiting::Ask(Ask::Take(take)) => {
            let taken = app.take(take.key, namespace, &take.quota, take.cost).await;
            Reply::Take(take, taken)
        }
        Waiting::Ask(Ask::Check(check)) => Reply::Check(app.check(&check.request(namespace)).await),
        Waiting::Ask(Ask::Refund(refund)) => {
            let Refund { key, quota, amount } = &refund;
            let refunded = app.refund_key(key, namespace, quota, *amount).await;
            if refunded.is_ok() {
                app.note_refund(RefundDoor::Resp, caller.as_deref(), *amount);
            }
            Reply::Refund(refund, refunded)
        }
        Waiting::Answered(replies) => Reply::Replies(replies),
    };
    (reply, protocol)
}

/// True for the first lines of an HTTP request, which a browser can be tricked into sending.
fn is_http(command: &Command<'_, '_>) -> bool {
    command.is_inline() && is_one_of(command.argument(0), &["post", "host:"])
}

fn take_kind(take: &Take<'_>) -> CommandKind {
    if take.is_throttle { CommandKind::Throttle } else { CommandKind::Take }
}

fn kind_of(command: &Command<'_, '_>) -> CommandKind {
    CommandSpec::find(command.argument(0)).map_or(CommandKind::Other, CommandSpec::kind)
}

fn outcome(is_granted: bool) -> CommandOutcome {
    if is_granted { CommandOutcome::Ok } else { CommandOutcome::Denied }
}
