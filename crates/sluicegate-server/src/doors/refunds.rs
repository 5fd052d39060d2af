//! Records of refunds over the data doors.

use std::net::IpAddr;

use serde_json::json;
use sluicegate::{Override, Tier, Verdict};

use crate::app::App;
use crate::auth::admission::Asker;
use crate::data::{Act, Author, DataError};
use crate::observe::history::{Failed, Receipt, Recorded};
use crate::observe::metrics::refunds::RefundDoor;

/// Origin of a request that may refund tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefundSource<'a> {
    pub(crate) asker: &'a Asker,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) door: RefundDoor,
}

/// Record of the refunds of one request. Those of an administrator are an act of the administration, recorded before
/// they are made; others are added up as they are made.
#[must_use]
pub(crate) struct RefundRecord<'a> {
    app: &'a App,
    source: RefundSource<'a>,
    receipt: Option<Receipt>,
    given: u64,
}

impl<'a> RefundRecord<'a> {
    /// Begins a record of refunds of this many tokens, to a key or to the buckets of rules.
    ///
    /// # Errors
    ///
    /// The act cannot be recorded, and must not be done.
    pub(crate) async fn begin(
        app: &'a App,
        source: RefundSource<'a>,
        key: Option<&str>,
        tokens: u64,
    ) -> Result<Self, DataError> {
        let receipt = match source.asker {
            Asker::Administrator(name) => {
                let by = Author { address: source.peer, ..Author::new(&**name) };
                let pseudonyms = app.audit.pseudonyms();
                let recorded = Recorded {
                    act: Act::BucketRefund,
                    rule_id: None,
                    subject: None,
                    target: key.map(|key| pseudonyms.subject(None, key).into_owned()),
                    before: None,
                    after: Some(json!({"tokens": tokens})),
                };
                Some(app.history.record(&by, recorded).await?)
            }
            Asker::Anonymous | Asker::Caller(_) => None,
        };
        Ok(Self { app, source, receipt, given: 0 })
    }

    /// Adds a refund that was made.
    pub(crate) fn note(&mut self, tokens: u64) {
        let RefundSource { asker, door, .. } = self.source;
        self.given = self.given.saturating_add(tokens);
        match self.receipt {
            Some(_) => self.app.metrics.refunds.refunded(door),
            None => self.app.note_refund(door, asker.caller(), tokens),
        }
    }

    /// Records the result, if the refunds are an act of the administration.
    pub(crate) async fn end(self) {
        let Some(receipt) = self.receipt else { return };
        let result = if self.given > 0 { Ok(json!({"tokens": self.given})) } else { Err(Failed) };
        self.app.history.settle(receipt, result).await;
    }
}

/// True if a refund to the buckets of rules found one: some rule limits the request, and it is not blocked.
pub(crate) fn has_bucket(verdict: &Verdict) -> bool {
    let is_blocked = |tier: Tier<'_>| matches!(tier.overridden, Some(Override::Blocked));
    verdict.is_allowed() && verdict.tiers().any(|tier| !is_blocked(tier))
}
