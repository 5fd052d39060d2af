//! History of the administration: acts with their authors, before and after.
//!
//! Changes of rules, overrides, tokens and callers are recorded in their own transaction ([`record`]). Triggers
//! record changes by hand, which carry no mark of the service (see `Session::take_turn`).

mod read;
mod retain;
mod rows;
mod shown;
mod write;

pub use self::rows::{
    Act, HistoryBatch, HistoryEntry, HistoryFilter, HistoryKind, HistoryOrder, HistoryRow, Outcome,
    Recording,
};
pub(super) use self::shown::{caller_json, override_json, token_json};
pub(super) use self::write::{Change, record};

use serde_json::Value;

use super::database::transaction;
use super::session::Aim;
use super::{DataError, Database};

impl Database {
    /// Acts, newest first.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::TooSlow`] if the query takes too long.
    pub async fn history(
        &self,
        filter: &HistoryFilter,
        after: Option<HistoryOrder>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, DataError> {
        let mut survey = self.survey().await?;
        let found = transaction!(self, Aim::Read, session => {
            survey.has_begun = true;
            read::list(session, filter, after, limit)
        });
        found.map_err(|error| survey.said(error))
    }

    /// Records an act that is about to be done outside this transaction, and returns the id of the row. Its outcome is
    /// [`Outcome::Started`] until [`record_result`](Self::record_result).
    ///
    /// # Errors
    ///
    /// As every call. Then nothing is recorded, unless only the confirmation was lost.
    pub async fn record_act(&self, row: &HistoryRow) -> Result<u64, DataError> {
        transaction!(self, Aim::Write, session => write::one(session, row))
    }

    /// Completes a recorded act with the state after it; `None` if it failed.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn record_result(
        &self,
        history_id: u64,
        after: Option<&Value>,
    ) -> Result<(), DataError> {
        transaction!(self, Aim::Write, session => write::result(session, history_id, after))
    }

    /// Writes a batch atomically and idempotently, as [`write_violations`](Self::write_violations) does.
    ///
    /// # Errors
    ///
    /// As every call. Then send the same batch again.
    pub async fn write_history(&self, batch: &HistoryBatch) -> Result<(), DataError> {
        transaction!(self, Aim::Write, session => write::batch(session, batch))
    }

    /// Position of the newest row of this kind that is too many if `keep` rows are kept; `None` if none is. Reads
    /// `keep` entries of an index, and has the time limit of [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn history_excess(
        &self,
        kind: HistoryKind,
        keep: u64,
    ) -> Result<Option<HistoryOrder>, DataError> {
        let patient = self.patient();
        transaction!(patient, Aim::Read, session => retain::excess(session, kind, keep))
    }

    /// Deletes at most `limit` rows up to and including this position, oldest first, and returns their number. Without
    /// a kind, rows of both.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn delete_history(
        &self,
        kind: Option<HistoryKind>,
        until: HistoryOrder,
        limit: usize,
    ) -> Result<u64, DataError> {
        transaction!(self, Aim::Write, session => retain::delete(session, kind, until, limit))
    }

    /// Applies the privacy setting to at most `limit` rows that were written without it, and returns their number.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn mask_history(&self, limit: usize) -> Result<u64, DataError> {
        transaction!(self, Aim::Write, session => retain::mask(session, limit))
    }
}
