//! Privacy setting of the history.

use std::net::IpAddr;

use sluicegate::{AnyStore, Limiter};

use crate::data::Recording;
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::history::HistoryMetrics;

/// Applies the privacy setting of the audit, by the attribute that is the subject of a rule in force.
#[derive(Debug)]
pub(super) struct Private {
    pseudonyms: Pseudonyms,
    limiter: Limiter<AnyStore>,
    metrics: HistoryMetrics,
}

impl Private {
    pub(super) fn new(
        pseudonyms: Pseudonyms,
        limiter: Limiter<AnyStore>,
        metrics: HistoryMetrics,
    ) -> Self {
        Self { pseudonyms, limiter, metrics }
    }
}

impl Recording for Private {
    fn subject(&self, rule_id: Option<u64>, subject: &str) -> String {
        let rules = self.limiter.rules();
        let rule = rule_id.and_then(|rule_id| rules.get(rule_id));
        self.pseudonyms.subject(rule, subject).into_owned()
    }

    fn address(&self, address: IpAddr) -> String {
        self.pseudonyms.ip(&address.to_string()).into_owned()
    }

    fn wrote(&self, rows: u64) {
        self.metrics.wrote(rows);
    }
}
