//! Metrics of the Redis protocol.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Metrics of the Redis protocol. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct RespMetrics {
    by_kind: Family<CommandLabels, Counter>,
    /// Counters of `by_kind`, in the order of [`CommandKind::ALL`] and [`OUTCOMES`].
    commands: [[Counter; 3]; 5],
    /// Connections closed because of a protocol error.
    pub(crate) protocol_errors: Counter,
    /// Wrong passwords.
    pub(crate) auth_failures: Counter,
    /// Attempts to authenticate that waited.
    pub(crate) auth_delayed: Counter,
    /// Attempts to authenticate that were not checked.
    pub(crate) auth_refused: Counter,
}

/// A kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// `CL.THROTTLE`
    Throttle,
    /// `SG.CHECK`
    Check,
    /// `SG.TAKE`
    Take,
    /// `SG.REFUND`
    Refund,
    /// A command about the connection, or an unknown one.
    Other,
}

/// Commands to be counted together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommandCounts([[u64; 3]; 5]);

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// Granted, or done.
    Ok,
    /// It was denied.
    Denied,
    /// It was answered with an error.
    Error,
}

const OUTCOMES: [&str; 3] = ["ok", "denied", "error"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabels {
    command: &'static str,
    outcome: &'static str,
}

impl CommandKind {
    const ALL: [Self; 5] = [Self::Throttle, Self::Check, Self::Take, Self::Refund, Self::Other];

    const fn name(self) -> &'static str {
        match self {
            Self::Throttle => "cl.throttle",
            Self::Check => "sg.check",
            Self::Take => "sg.take",
            Self::Refund => "sg.refund",
            Self::Other => "other",
        }
    }
}

impl CommandCounts {
    /// Counts a command.
    #[inline]
    pub(crate) fn note(&mut self, kind: CommandKind, outcome: CommandOutcome) {
        self.0[kind as usize][outcome as usize] += 1;
    }
}

impl Default for RespMetrics {
    fn default() -> Self {
        let by_kind = Family::<CommandLabels, Counter>::default();
        // Every series exists from the start, so that rates are right from the first command on.
        let commands = CommandKind::ALL.map(|kind| {
            OUTCOMES.map(|outcome| {
                by_kind.get_or_create_owned(&CommandLabels { command: kind.name(), outcome })
            })
        });
        Self {
            by_kind,
            commands,
            protocol_errors: Counter::default(),
            auth_failures: Counter::default(),
            auth_delayed: Counter::default(),
            auth_refused: Counter::default(),
        }
    }
}

impl RespMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "resp_commands",
            "Commands of the Redis protocol by outcome",
            self.by_kind.clone(),
        );
        registry.register(
            "resp_protocol_errors",
            "Connections closed because of a protocol error",
            self.protocol_errors.clone(),
        );
        registry.register(
            "resp_auth_failures",
            "Wrong passwords sent over the Redis protocol",
            self.auth_failures.clone(),
        );
        registry.register(
            "resp_auth_delayed",
            "Attempts to authenticate that waited because of wrong passwords of their address",
            self.auth_delayed.clone(),
        );
        registry.register(
            "resp_auth_refused",
            "Attempts to authenticate refused unchecked because too many of them wait",
            self.auth_refused.clone(),
        );
    }

    /// Counts commands.
    pub(crate) fn count(&self, counts: &CommandCounts) {
        let both = self.commands.iter().flatten().zip(counts.0.iter().flatten());
        for (counter, count) in both.filter(|(_, count)| **count > 0) {
            counter.inc_by(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_their_order() {
        for (position, kind) in CommandKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
    }
}
