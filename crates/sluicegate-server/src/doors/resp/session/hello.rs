//! `HELLO`: selects the protocol version, authenticates and names the connection.

use super::{ClientSession, Next, WRONG_PASSWORD};
use crate::doors::resp::error::{Fault, shown};
use crate::doors::resp::parser::Command;
use crate::doors::resp::reply::{Protocol, Replies};
use crate::doors::resp::session::SharedConfig;

/// Version of Redis that clients adapt their handshake to.
pub(super) const REDIS_VERSION: &str = "7.2.0";

impl ClientSession {
    /// `HELLO [2|3 [AUTH username password] [SETNAME name]]`
    pub(super) fn hello(
        &mut self,
        command: &Command<'_, '_>,
        shared_config: &SharedConfig,
        replies: &mut Replies,
    ) -> Result<Next, Fault> {
        let protocol = match command.argument(1) {
            _ if command.len() == 1 => self.protocol,
            b"2" => Protocol::Resp2,
            b"3" => Protocol::Resp3,
            other if other.iter().all(u8::is_ascii_digit) => {
                return Err(Fault::new("NOPROTO unsupported protocol version"));
            }
            _ => {
                return Err(Fault::new("ERR Protocol version is not an integer or out of range"));
            }
        };
        // All arguments are validated before anything changes.
        let (mut shown_password, mut name) = (None, None);
        let mut position = 2;
        while position < command.len() {
            let (option, left) = (command.argument(position), command.len() - position - 1);
            if option.eq_ignore_ascii_case(b"auth") && left >= 2 {
                shown_password =
                    Some((command.argument(position + 1), command.argument(position + 2)));
                position += 3;
            } else if option.eq_ignore_ascii_case(b"setname") && left >= 1 {
                name = Some(Self::name(command.argument(position + 1))?);
                position += 2;
            } else {
                return Err(Fault::field("Syntax error in HELLO option", shown(option)));
            }
        }
        if let Some((user, password)) = shown_password {
            if let Some(delay) = self.delay(user, shared_config) {
                return Ok(Next::Wait(delay));
            }
            if !self.authenticate(user, password, shared_config) {
                replies.error(WRONG_PASSWORD);
                return Ok(self.next());
            }
        }
        if !self.is_trusted() {
            return Err(MUST_AUTH);
        }
        if let Some(name) = name {
            self.name = name;
        }
        self.protocol = protocol;
        replies.protocol = protocol;
        self.greet(replies);
        Ok(Next::Continue)
    }

    fn greet(&self, replies: &mut Replies) {
        replies.map(7);
        for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
            replies.bulk(name);
            replies.bulk(value);
        }
        replies.bulk("proto");
        replies.integer(match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        });
        replies.bulk("id");
        replies.unsigned(self.id);
        for (name, value) in [("mode", "standalone"), ("role", "master")] {
            replies.bulk(name);
            replies.bulk(value);
        }
        replies.bulk("modules");
        replies.array(0);
    }
}

const MUST_AUTH: Fault = Fault::new(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
     <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
);
