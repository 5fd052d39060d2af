//! Lists the history.

use sqlx::QueryBuilder;

use super::{HistoryEntry, HistoryFilter, HistoryOrder};
use crate::data::row::row;
use crate::data::session::{Session, on};
use crate::data::values::{BY_BYTES_MAX, Time, clipped, named, rows, signed, unsigned};
use crate::data::{DataError, SUBJECT_BYTES_MAX};

row! {
    struct Row {
        history_id: i64,
        at: Time,
        who: String,
        act: String,
        rule_id: Option<i64>,
        subject: Option<String>,
        target: Option<String>,
        before: Option<String>,
        after: Option<String>,
        address: Option<String>,
        reason: String,
        count: i64,
        outcome: String,
        is_raw: bool,
    }
}

/// Acts, newest first.
pub(super) async fn list(
    session: &mut Session,
    filter: &HistoryFilter,
    after: Option<HistoryOrder>,
    limit: usize,
) -> Result<Vec<HistoryEntry>, DataError> {
    let found: Vec<Row> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "SELECT history_id, at, who, act, rule_id, subject, target, before, after, address, reason, count, \
             outcome, is_raw FROM rate_limit_history WHERE 1 = 1",
        );
        if let Some(act) = filter.act {
            query.push(" AND act = ").push_bind(act.name());
        }
        if let Some(who) = &filter.who {
            query.push(" AND who = ").push_bind(clipped(who, BY_BYTES_MAX));
        }
        if let Some(rule_id) = filter.rule_id {
            query.push(" AND rule_id = ").push_bind(signed(rule_id));
        }
        for (condition, texts) in
            [(" AND subject IN (", &filter.subject), (" AND target IN (", &filter.target)]
        {
            if !texts.is_empty() {
                query.push(condition);
                let mut list = query.separated(", ");
                texts.iter().for_each(|text| _ = list.push_bind(clipped(text, SUBJECT_BYTES_MAX)));
                query.push(")");
            }
        }
        if let Some(from) = filter.from {
            query.push(" AND at >= ").push_bind(Time::from(from));
        }
        if let Some(to) = filter.to {
            query.push(" AND at < ").push_bind(Time::from(to));
        }
        if let Some(after) = after {
            query.push(" AND (at, history_id) < (")
                .push_bind(Time::from(after.at))
                .push(", ")
                .push_bind(signed(after.history_id))
                .push(")");
        }
        query.push(" ORDER BY at DESC, history_id DESC LIMIT ").push_bind(rows(limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    found.into_iter().map(|row| row.entry(session)).collect()
}

impl Row {
    fn entry(self, session: &Session) -> Result<HistoryEntry, DataError> {
        let history_id = unsigned("history_id", self.history_id)?;
        let json = |text: Option<String>| {
            let value = text.map(|text| serde_json::from_str(&text)).transpose();
            value.map_err(|error| DataError::Unexpected(format!("history {history_id}: {error}")))
        };
        let rule_id = self.rule_id.map(|rule_id| unsigned("rule_id", rule_id)).transpose()?;
        let (mut subject, mut address) = (self.subject, self.address);
        if self.is_raw {
            (subject, address) = masked(session, rule_id, subject, address);
        }
        Ok(HistoryEntry {
            history_id,
            at: self.at.into(),
            who: self.who,
            act: self.act,
            rule_id,
            subject,
            target: self.target,
            before: json(self.before)?,
            after: json(self.after)?,
            address,
            reason: self.reason,
            count: unsigned("count", self.count)?,
            outcome: named("outcome", &self.outcome)?,
        })
    }
}

/// Subject and address with the privacy setting applied.
pub(super) fn masked(
    session: &Session,
    rule_id: Option<u64>,
    subject: Option<String>,
    address: Option<String>,
) -> (Option<String>, Option<String>) {
    let Some(recording) = session.recording() else { return (subject, address) };
    let address = address.map(|address| match address.parse() {
        Ok(address) => recording.address(address),
        Err(_) => "?".into(),
    });
    (subject.map(|subject| recording.subject(rule_id, &subject)), address)
}
