//! Table of all commands.

use crate::data::Right;
use crate::observe::metrics::resp::CommandKind;

/// Identifies a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Throttle,
    Check,
    Take,
    Refund,
    /// A command that the limiter is not needed for.
    Connection(ConnectionCommand),
}

/// Identifies a command about the connection or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionCommand {
    Auth,
    Client,
    Command,
    Config,
    Echo,
    Hello,
    Info,
    Ping,
    Quit,
    Reset,
    Select,
}

/// Properties of a command.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    pub(crate) name: Name,
    /// Lower-case name, as in replies to `COMMAND`.
    pub(crate) text: &'static str,
    /// Number of arguments including the name; at least that many if negative.
    pub(crate) arity: i64,
    /// The first argument is a key, whose bucket is charged.
    pub(crate) has_key: bool,
    /// Allowed before authentication.
    pub(crate) is_allowed_before_auth: bool,
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) usage: &'static str,
}

const fn about_limits(name: Name, text: &'static str, arity: i64) -> CommandSpec {
    CommandSpec {
        name,
        text,
        arity,
        has_key: false,
        is_allowed_before_auth: false,
        group: "module",
        summary: "",
        usage: "",
    }
}

const fn about_connections(
    command: ConnectionCommand,
    text: &'static str,
    arity: i64,
) -> CommandSpec {
    use ConnectionCommand::{Auth, Hello, Quit, Reset};
    CommandSpec {
        group: "connection",
        is_allowed_before_auth: matches!(command, Auth | Hello | Quit | Reset),
        ..about_limits(Name::Connection(command), text, arity)
    }
}

/// All commands, the most frequent first.
pub(crate) const COMMANDS: [CommandSpec; 15] = [
    CommandSpec {
        has_key: true,
        summary: "Takes tokens from the bucket of a key; the answer is in seconds",
        usage: "CL.THROTTLE key max_burst count_per_period period [quantity]",
        ..about_limits(Name::Throttle, "cl.throttle", -5)
    },
    CommandSpec {
        summary: "Checks a request against the rules",
        usage: "SG.CHECK name value [name value ...]",
        ..about_limits(Name::Check, "sg.check", -3)
    },
    CommandSpec {
        has_key: true,
        summary: "Takes tokens from the bucket of a key; the answer is in milliseconds",
        usage: "SG.TAKE key capacity tokens period_ms [cost] [ALGORITHM name] [REFILL name] [MAX_WAIT ms]",
        ..about_limits(Name::Take, "sg.take", -5)
    },
    CommandSpec {
        has_key: true,
        summary: "Gives tokens back to the bucket of a key; the answer is that of SG.TAKE",
        usage: "SG.REFUND key amount capacity tokens period_ms [ALGORITHM name] [REFILL name] [MAX_WAIT ms]",
        ..about_limits(Name::Refund, "sg.refund", -6)
    },
    CommandSpec {
        summary: "Authenticates the connection",
        usage: "AUTH [username] password",
        ..about_connections(ConnectionCommand::Auth, "auth", -2)
    },
    CommandSpec {
        summary: "Describes or names this connection",
        usage: "CLIENT GETNAME|ID|INFO|NO-EVICT|NO-TOUCH|REPLY|SETINFO|SETNAME|TRACKING",
        ..about_connections(ConnectionCommand::Client, "client", -2)
    },
    CommandSpec {
        group: "server",
        summary: "Describes the commands",
        usage: "COMMAND [COUNT|DOCS|INFO|LIST]",
        ..about_connections(ConnectionCommand::Command, "command", -1)
    },
    CommandSpec {
        group: "server",
        summary: "Returns the parameters that tools for Redis read",
        usage: "CONFIG GET parameter [parameter ...]",
        ..about_connections(ConnectionCommand::Config, "config", -2)
    },
    CommandSpec {
        summary: "Returns its argument",
        usage: "ECHO message",
        ..about_connections(ConnectionCommand::Echo, "echo", 2)
    },
    CommandSpec {
        summary: "Selects the version of the protocol",
        usage: "HELLO [2|3 [AUTH username password] [SETNAME name]]",
        ..about_connections(ConnectionCommand::Hello, "hello", -1)
    },
    CommandSpec {
        group: "server",
        summary: "Describes this server",
        usage: "INFO [section ...]",
        ..about_connections(ConnectionCommand::Info, "info", -1)
    },
    CommandSpec {
        summary: "Returns PONG, or its argument",
        usage: "PING [message]",
        ..about_connections(ConnectionCommand::Ping, "ping", -1)
    },
    CommandSpec {
        summary: "Closes the connection",
        usage: "QUIT",
        ..about_connections(ConnectionCommand::Quit, "quit", -1)
    },
    CommandSpec {
        summary: "Resets the connection to its initial state",
        usage: "RESET",
        ..about_connections(ConnectionCommand::Reset, "reset", 1)
    },
    CommandSpec {
        summary: "Selects database 0, the only one",
        usage: "SELECT 0",
        ..about_connections(ConnectionCommand::Select, "select", 2)
    },
];

impl CommandSpec {
    /// Command with this name. Case does not matter.
    #[inline]
    pub(crate) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|known| known.text.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Label of the command in metrics.
    pub(crate) fn kind(&self) -> CommandKind {
        match self.name {
            Name::Throttle => CommandKind::Throttle,
            Name::Check => CommandKind::Check,
            Name::Take => CommandKind::Take,
            Name::Refund => CommandKind::Refund,
            Name::Connection(_) => CommandKind::Other,
        }
    }

    /// Right that the command needs; `None` if it concerns the connection or the server.
    #[inline]
    pub(crate) fn right(&self) -> Option<Right> {
        match self.name {
            Name::Throttle | Name::Take => Some(Right::Take),
            Name::Refund => Some(Right::Refund),
            Name::Check => Some(Right::Check),
            Name::Connection(_) => None,
        }
    }

    /// Returns whether the number of arguments, including the name, is valid.
    #[inline]
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arguments = i64::try_from(arguments).unwrap_or(i64::MAX);
        if self.arity < 0 { arguments >= -self.arity } else { arguments == self.arity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        for known in &COMMANDS {
            let found = CommandSpec::find(known.text.to_ascii_uppercase().as_bytes()).unwrap();
            assert_eq!(found.name, known.name);
            assert!(known.usage.starts_with(&known.text.to_ascii_uppercase()), "{known:?}");
            assert!(!known.summary.is_empty(), "{known:?}");
        }
    }
}
