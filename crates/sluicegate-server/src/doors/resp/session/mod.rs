//! State of a client's connection, and commands about it.

mod about;
mod client;
mod hello;
mod identity;

use std::mem::take;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use self::identity::Identity;
use super::commands::table::{CommandSpec, ConnectionCommand, Name};
use super::commands::{Ask, Check, LastQuota, read_refund, read_take, read_throttle};
use super::error::Fault;
use super::parser::{COMMAND_BYTES_MAX, Command};
use super::password::Password;
use super::reply::{Protocol, Replies};
use crate::app::RequestLimits;
use crate::auth::admission::{Admission, Refused, door_label};
use crate::auth::callers::Caller;
use crate::auth::connection::ConnectionInfo;
use crate::auth::password_delays::PasswordDelays;
use crate::config::Door;
use crate::data::Right;
use crate::log_limit::LogLimit;
use crate::observe::history::History;
use crate::observe::metrics::callers::CallerMetrics;
use crate::observe::metrics::resp::RespMetrics;

/// Maximum bytes of a command before authentication: long passwords fit. No more is buffered for an
/// unauthenticated client.
pub(super) const UNAUTHENTICATED_BYTES_MAX: usize = 8 * 1024;
/// Label of this door in the metrics of callers.
pub(super) const RESP_DOOR: &str = door_label(Door::Resp);
/// Wrong passwords after which the connection is closed.
const AUTH_FAILURES_MAX: u32 = 8;

/// Limits on lines about wrong passwords, and about connections closed for them.
static WRONG_LINES: LogLimit = LogLimit::new();
static CLOSED_LINES: LogLimit = LogLimit::new();
/// Limit on lines about commands that a caller may not run.
static RIGHT_LINES: LogLimit = LogLimit::new();

/// State of a client's connection.
#[derive(Debug)]
pub(super) struct ClientSession {
    id: u64,
    connection: Arc<ConnectionInfo>,
    protocol: Protocol,
    name: Option<Box<[u8]>>,
    identity: Identity,
    /// Epoch of the callers that the identity was found in.
    epoch: u64,
    auth_failures: u32,
    /// The next attempt to authenticate has waited for its delay.
    has_waited: bool,
    quota: Option<LastQuota>,
}

/// Configuration and metrics shared by all sessions.
#[derive(Debug)]
pub(super) struct SharedConfig {
    /// Password that clients must send; `None` if none is set.
    pub(super) password: Option<Password>,
    /// Delays after wrong passwords.
    pub(super) delays: PasswordDelays,
    /// Limits of requests.
    pub(super) limits: RequestLimits,
    /// Metrics of the Redis protocol.
    pub(super) metrics: RespMetrics,
    /// Decides which connections need a caller.
    pub(super) admission: Arc<Admission>,
    /// Metrics of callers.
    pub(super) caller_metrics: CallerMetrics,
    /// Adds up wrong passwords and tokens.
    pub(super) history: History,
    /// Start of the listener, for the uptime.
    pub(super) opened: tokio::time::Instant,
}

/// A parsed command.
#[derive(Debug)]
pub(super) enum Parsed<'i> {
    /// A command for the limiter.
    Ask(Ask<'i>),
    /// A command about the connection, and its properties.
    Connection(ConnectionCommand, &'static CommandSpec),
    /// An invalid command.
    Invalid(Fault),
}

/// Action after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read the next command.
    Continue,
    /// Execute the command again after this time. Nothing is done and nothing is written.
    Wait(Duration),
    /// Close the connection.
    Close,
}

impl ClientSession {
    pub(super) fn new(
        id: u64,
        connection: Arc<ConnectionInfo>,
        shared_config: &SharedConfig,
    ) -> Self {
        let epoch = shared_config.admission.callers.epoch();
        let identity = Identity::of(&connection, shared_config);
        Self {
            id,
            connection,
            protocol: Protocol::default(),
            name: None,
            identity,
            epoch,
            auth_failures: 0,
            has_waited: false,
            quota: None,
        }
    }

    /// Returns whether it is authenticated, or need not be.
    #[inline]
    pub(super) fn is_trusted(&self) -> bool {
        self.identity.is_trusted()
    }

    /// Caller of the connection; `None` for one without.
    #[inline]
    pub(super) fn caller(&self) -> Option<&Arc<Caller>> {
        self.identity.caller()
    }

    /// Namespace of the caller; `None` for the common one.
    #[inline]
    pub(super) fn namespace(&self) -> Option<&str> {
        self.caller().and_then(|caller| caller.namespace.as_deref())
    }

    /// Address of the client.
    pub(super) fn peer(&self) -> SocketAddr {
        self.connection.peer
    }

    /// Records that the delay of the next attempt to authenticate is over.
    pub(super) fn waited(&mut self) {
        self.has_waited = true;
    }

    /// Maximum bytes of a command.
    #[inline]
    pub(super) fn command_bytes_max(&self) -> usize {
        if self.is_trusted() { COMMAND_BYTES_MAX } else { UNAUTHENTICATED_BYTES_MAX }
    }

    /// Version of the protocol for replies.
    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Parses a command without executing it, except for caching its quota.
    #[inline]
    pub(super) fn parse<'i>(
        &mut self,
        command: &Command<'_, 'i>,
        shared_config: &SharedConfig,
    ) -> Parsed<'i> {
        if self.epoch != shared_config.admission.callers.epoch() {
            self.renew(shared_config);
        }
        let Some(known) = CommandSpec::find(command.argument(0)) else {
            return Parsed::Invalid(match self.is_trusted() {
                true => Fault::unknown(command.argument(0)),
                false => self.unauthenticated(shared_config),
            });
        };
        if !self.is_trusted() && !known.is_allowed_before_auth {
            return Parsed::Invalid(self.unauthenticated(shared_config));
        }
        if let Some(right) = known.right()
            && !self.identity.may(right)
        {
            return Parsed::Invalid(self.refuse(known, right, shared_config));
        }
        if !known.takes(command.len()) {
            return Parsed::Invalid(Fault::arguments(known));
        }
        let limits = &shared_config.limits;
        let asked = match known.name {
            Name::Throttle => read_throttle(command, known, limits, &mut self.quota).map(Ask::Take),
            Name::Take => read_take(command, known, limits).map(Ask::Take),
            Name::Check => Check::read(command, known, limits).map(Ask::Check),
            Name::Refund => read_refund(command, known, limits).map(Ask::Refund),
            Name::Connection(name) => return Parsed::Connection(name, known),
        };
        match asked {
            Ok(ask) if ask.key().is_some_and(|key| key.len() > limits.value_bytes_max) => {
                let most = format_args!("has more than {} bytes", limits.value_bytes_max);
                Parsed::Invalid(Fault::field("key", most))
            }
            Ok(ask) => Parsed::Ask(ask),
            Err(fault) => Parsed::Invalid(fault),
        }
    }

    /// Executes a command about the connection, and writes its reply.
    pub(super) fn execute(
        &mut self,
        command: &Command<'_, '_>,
        (name, known): (ConnectionCommand, &'static CommandSpec),
        shared_config: &SharedConfig,
        replies: &mut Replies,
    ) -> Result<Next, Fault> {
        match name {
            ConnectionCommand::Ping => match command.len() {
                1 => replies.status("PONG"),
                2 => replies.bulk(command.argument(1)),
                _ => return Err(Fault::arguments(known)),
            },
            ConnectionCommand::Echo => replies.bulk(command.argument(1)),
            ConnectionCommand::Quit => {
                replies.ok();
                return Ok(Next::Close);
            }
            ConnectionCommand::Reset => {
                *self = Self {
                    auth_failures: self.auth_failures,
                    ..Self::new(self.id, Arc::clone(&self.connection), shared_config)
                };
                replies.protocol = self.protocol;
                replies.status("RESET");
            }
            ConnectionCommand::Select => match command.argument(1) {
                b"0" => replies.ok(),
                _ => return Err(Fault::new("ERR DB index is out of range: there is only 0")),
            },
            ConnectionCommand::Auth => return self.auth(command, known, shared_config, replies),
            ConnectionCommand::Hello => return self.hello(command, shared_config, replies),
            ConnectionCommand::Client => self.client(command, known, replies)?,
            ConnectionCommand::Command => about::command(command, known, replies)?,
            ConnectionCommand::Config => about::config(command, known, replies)?,
            ConnectionCommand::Info => about::info(command, shared_config, replies),
        }
        Ok(Next::Continue)
    }

    /// `AUTH [username] password`
    fn auth(
        &mut self,
        command: &Command<'_, '_>,
        known: &CommandSpec,
        shared_config: &SharedConfig,
        replies: &mut Replies,
    ) -> Result<Next, Fault> {
        let (user, password) = match command.len() {
            2 if shared_config.password.is_none() => return Err(NO_PASSWORD),
            2 => (&b"default"[..], command.argument(1)),
            3 => (command.argument(1), command.argument(2)),
            _ => return Err(Fault::arguments(known)),
        };
        if let Some(delay) = self.delay(user, shared_config) {
            return Ok(Next::Wait(delay));
        }
        let is_right = self.authenticate(user, password, shared_config);
        if is_right {
            replies.ok();
        } else {
            replies.error(WRONG_PASSWORD);
        }
        Ok(self.next())
    }

    /// Time that an attempt to authenticate must wait because of wrong passwords of this address; `None` if it may be
    /// checked. Clients that are authenticated as this user do not wait: they have nothing to guess.
    fn delay(&mut self, user: &[u8], shared_config: &SharedConfig) -> Option<Duration> {
        let can_guess =
            shared_config.password.is_some() || !shared_config.admission.callers.is_empty();
        if take(&mut self.has_waited) || self.identity.is_of(user) || !can_guess {
            return None;
        }
        shared_config.delays.delay(self.peer().ip())
    }

    /// Checks a password or a caller's token, and updates the session.
    fn authenticate(&mut self, user: &[u8], password: &[u8], shared_config: &SharedConfig) -> bool {
        let epoch = shared_config.admission.callers.epoch();
        let authenticated = Identity::authenticate(&self.connection, user, password, shared_config);
        if let Some(identity) = authenticated {
            // A client that can authenticate as one user could otherwise guess the password of another for ever.
            if !self.identity.is_authenticated() {
                self.auth_failures = 0;
            }
            (self.identity, self.epoch) = (identity, epoch);
            return true;
        }
        shared_config.metrics.auth_failures.inc();
        shared_config.caller_metrics.refused(RESP_DOOR, Refused::Wrong.name());
        shared_config.delays.note(self.peer().ip());
        let named = shared_config.admission.callers.unverified(user);
        let name = named.as_deref().map(|caller| &*caller.name);
        shared_config.history.sign_in_failed(Door::Resp, self.peer().ip(), name);
        self.auth_failures += 1;
        self.log_failure();
        false
    }

    /// Looks the identity up again, after the callers have changed.
    #[cold]
    fn renew(&mut self, shared_config: &SharedConfig) {
        self.epoch = shared_config.admission.callers.epoch();
        self.identity = self.identity.renewed(&self.connection, shared_config);
    }

    /// Error of a connection that must authenticate.
    #[cold]
    fn unauthenticated(&self, shared_config: &SharedConfig) -> Fault {
        shared_config.caller_metrics.refused(RESP_DOOR, Refused::Missing.name());
        NO_AUTH
    }

    /// Error about a command that needs a right which the caller lacks.
    #[cold]
    fn refuse(&self, known: &CommandSpec, right: Right, shared_config: &SharedConfig) -> Fault {
        let Some(caller) = self.caller() else {
            shared_config.caller_metrics.refused(RESP_DOOR, Refused::Missing.name());
            return Fault::caller_needed(known, right);
        };
        shared_config.caller_metrics.refused(RESP_DOOR, Refused::Right(right).name());
        if let Some(suppressed) = RIGHT_LINES.admit() {
            let (peer, caller, right) = (self.peer(), &*caller.name, right.name());
            info!(%peer, caller, right, suppressed, "caller without the right rejected");
        }
        Fault::right(known, right)
    }

    /// Logs the first wrong password of a connection, and the last.
    fn log_failure(&self) {
        let (peer, failures) = (self.peer(), self.auth_failures);
        if failures == 1
            && let Some(suppressed) = WRONG_LINES.admit()
        {
            info!(%peer, suppressed, "wrong password over the Redis protocol");
        }
        if failures == AUTH_FAILURES_MAX
            && let Some(suppressed) = CLOSED_LINES.admit()
        {
            warn!(%peer, failures, suppressed, "connection closed: too many wrong passwords");
        }
    }

    /// Action after an authentication, possibly a failed one.
    fn next(&self) -> Next {
        if self.auth_failures < AUTH_FAILURES_MAX { Next::Continue } else { Next::Close }
    }
}

const NO_AUTH: Fault = Fault::new("NOAUTH Authentication required.");
const WRONG_PASSWORD: Fault =
    Fault::new("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: Fault = Fault::new(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
     configuration is correct?",
);
