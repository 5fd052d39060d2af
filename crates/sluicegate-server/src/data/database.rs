//! The repository: every query, in both dialects.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::rules::{RuleSpec, TIERS_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::open::{self, Opened};
use super::session::{Aim, Session};
use super::{
    Author, Changes, DataError, Loaded, OverrideFilter, OverrideSpec, Page, Recording, Replaced,
    Role, RuleChange, RuleFilter, StoredOverride, StoredRule, StoredToken, TopOffender, Violation,
    ViolationBatch, ViolationFilter, ViolationOrder, change_rules, migrate, overrides, rules,
    tokens, violations,
};
use crate::config::DatabaseUrl;
use crate::time::Timestamp;

/// A database: a SQLite file, or PostgreSQL 15 or newer. Clones share its connections.
///
/// Every call is one transaction: its reads are consistent, its writes are atomic. Every call ends after about the
/// timeout at the latest: with [`DataError::Unavailable`] if the database does not answer, is locked or is full. It
/// recovers automatically when the database is back. A call may be dropped at any time; a write in progress may then
/// be committed or not.
///
/// Changes of rules, overrides, tokens and callers are serialised over all processes. Triggers increase the
/// [generation](Self::generation) with each, including changes by hand.
#[derive(Clone, Debug)]
pub struct Database {
    opened: Opened,
    pub(super) timeout: Duration,
    /// Changes of rules and overrides are rolled back.
    is_dry_run: bool,
    /// Maximum number of rules that one request may meet: a set of which every request meets more is refused.
    tiers_max: usize,
    /// Permits of queries on violations and the history.
    surveys: Arc<Semaphore>,
    /// Privacy setting of the history; `None` if it is not known here.
    recording: Option<Arc<dyn Recording>>,
}

/// Maximum time to load rules, overrides, tokens and callers, and to count the history. No check waits for it.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// Maximum number of concurrent queries on violations and the history; others wait. They can be slow, and must leave connections to
/// changes, reloads and the audit.
const SURVEYS_MAX: usize = 2;

/// A query on violations or the history.
pub(super) struct Survey {
    _turn: OwnedSemaphorePermit,
    /// End of its time limit.
    deadline: Instant,
    /// True once the transaction has begun: from then on a timeout is due to the query, not to the database.
    pub(super) has_begun: bool,
}

/// A migration and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Number of the migration.
    pub version: i64,
    /// Short description.
    pub description: String,
    /// True if it has been applied.
    pub is_applied: bool,
}

/// Column by which violations are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub enum TopBy {
    UserId,
    IpAddress,
    Endpoint,
    BucketKey,
}

/// Runs one function of a session in a transaction, within the timeout.
macro_rules! transaction {
    ($database:expr, $aim:expr, $session:ident => $work:expr) => {
        // Boxed: futures of drivers are large, and callers hold many.
        $crate::data::database::within(
            $database.timeout,
            Box::pin(async {
                let mut begun = $database.begin($aim).await?;
                let $session = &mut begun;
                let result = $work.await;
                begun.end(result).await
            }),
        )
        .await
    };
}
pub(super) use transaction;

// ===== opening, migrating =====

impl Database {
    /// Connects within the timeout, which also limits every later call. Does not migrate. A missing file is created,
    /// readable by its owner only; its folder must exist.
    ///
    /// # Errors
    ///
    /// [`DataError::Unavailable`] if it cannot be reached, [`DataError::Unexpected`] if it is too old or not a
    /// database. The messages contain no password.
    pub async fn open(url: &DatabaseUrl, timeout: Duration) -> Result<Self, DataError> {
        let opened = within(timeout, open::open(url, timeout)).await?;
        let surveys = Arc::new(Semaphore::new(SURVEYS_MAX));
        let (is_dry_run, tiers_max, recording) = (false, TIERS_MAX, None);
        Ok(Self { opened, timeout, is_dry_run, tiers_max, surveys, recording })
    }

    /// A handle with another bound than [`TIERS_MAX`] for the rules that one request may meet.
    #[must_use]
    pub fn with_tiers_max(self, tiers_max: usize) -> Self {
        Self { tiers_max, ..self }
    }

    /// A handle that applies a privacy setting to the history. Without one, rows are written as they are, and masked by
    /// a process that knows the setting.
    #[must_use]
    pub fn with_recording(self, recording: Arc<dyn Recording>) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// Maximum number of rules that one request may meet.
    #[must_use]
    pub fn tiers_max(&self) -> usize {
        self.tiers_max
    }

    /// A handle for dry runs: a change of a rule, an override, a token or a caller runs as one that is saved, with the same
    /// answer or error, and is then rolled back. The generation and the history stay as they are.
    ///
    /// PostgreSQL does not roll back sequences: a dry run that would make an override uses up an `override_id`.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { is_dry_run: true, ..self.clone() }
    }

    /// Applies pending migrations and returns them. Safe to run concurrently. Migrations of a newer version are left
    /// alone.
    ///
    /// # Errors
    ///
    /// As every call; then nothing is changed.
    pub async fn migrate(&self) -> Result<Vec<Migration>, DataError> {
        // Usually nothing is pending, and no lock is needed.
        if self.migrations().await?.iter().all(|migration| migration.is_applied) {
            return Ok(Vec::new());
        }
        self.migrating(Box::pin(async {
            let mut session = self.begin_long(Aim::Write).await?;
            let done = migrate::up(&mut session).await;
            session.end(done).await
        }))
        .await
    }

    /// Reverts every migration above `version`, newest first, and returns them. Their tables are dropped with all rows.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::Unexpected`] if this version does not know one of them; then nothing is
    /// changed.
    pub async fn migrate_down(&self, version: i64) -> Result<Vec<Migration>, DataError> {
        self.migrating(Box::pin(async {
            let mut session = self.begin_long(Aim::Write).await?;
            let done = migrate::down(&mut session, version).await;
            session.end(done).await
        }))
        .await
    }

    /// All migrations that this version knows.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn migrations(&self) -> Result<Vec<Migration>, DataError> {
        transaction!(self, Aim::Read, session => migrate::list(session))
    }
}

// ===== loading =====

impl Database {
    /// Loads rules, overrides, tokens and callers in one transaction.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::Unexpected`] with the row and the reason if a row is invalid, as after a change
    /// by hand.
    pub async fn load(&self) -> Result<Loaded, DataError> {
        let limit = self.timeout.max(LOAD_LIMIT);
        let load = async {
            let mut session =
                Session::begin(&self.opened.pool, Aim::Read, &limits(limit, self.timeout)).await?;
            let loaded = super::load(&mut session).await;
            session.end(loaded).await
        };
        within(limit, Box::pin(load)).await
    }

    /// A handle whose calls may take as long as loading does, for background work that reads many rows.
    pub(super) fn patient(&self) -> Self {
        Self { timeout: self.timeout.max(LOAD_LIMIT), ..self.clone() }
    }

    /// Generation: grows with every change of a rule, an override, a token or a caller, also by hand.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn generation(&self) -> Result<u64, DataError> {
        transaction!(self, Aim::Read, session => super::generation(session))
    }

    /// Starts watching for changes. Call it before [`load`](Self::load), so that no change in between is missed.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn changes(&self) -> Result<Changes, DataError> {
        Changes::new(self.clone(), self.opened.listening.clone()).await
    }
}

// ===== rules =====

impl Database {
    /// Rules by id. The plan `""` selects rules for every plan.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn rules(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<Vec<StoredRule>, DataError> {
        transaction!(self, Aim::Read, session => rules::list(session, filter, page))
    }

    /// One rule.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::NotFound`].
    pub async fn rule(&self, rule_id: u64) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Read, session => rules::get(session, rule_id))
    }

    /// Creates a rule; id 0 takes the next one.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if it is invalid, and [`DataError::Conflict`] if another rule has its id,
    /// or its key pattern and plan.
    pub async fn create_rule(&self, spec: &RuleSpec, by: &Author) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => change_rules::create(session, spec, self.tiers_max, by))
    }

    /// Changes a rule if it has this version. A rule without a difference keeps its version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), [`DataError::NotFound`], and [`DataError::Stale`] if it has another
    /// version.
    pub async fn update_rule(
        &self,
        spec: &RuleSpec,
        version: Option<u64>,
        by: &Author,
    ) -> Result<StoredRule, DataError> {
        let changed = |current: &StoredRule| {
            change_rules::is_current(current.version, version)?;
            Ok(spec.clone())
        };
        self.change_rule(spec.rule_id, by, changed).await
    }

    /// Changes a rule by a function, in one transaction. A rule without a difference keeps its version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), [`DataError::NotFound`], and the function's error.
    pub async fn change_rule(
        &self,
        rule_id: u64,
        by: &Author,
        changed: impl FnOnce(&StoredRule) -> Result<RuleSpec, DataError>,
    ) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::update(session, rule_id, self.tiers_max, by, changed)
        })
    }

    /// Deletes a rule and its overrides if it has this version. Its id is not reused.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::NotFound`], and [`DataError::Stale`] if it has another version.
    pub async fn delete_rule(
        &self,
        rule_id: u64,
        version: Option<u64>,
        by: &Author,
    ) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::delete(session, rule_id, version, by)
        })
    }

    /// Replaces all rules atomically if nothing has changed since `generation`. A rule with id 0 replaces the rule with
    /// its key pattern and plan, if there is one. Rules without a difference keep their version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), and [`DataError::Stale`] with the current generation.
    pub async fn replace_rules(
        &self,
        specs: &[RuleSpec],
        generation: Option<u64>,
        by: &Author,
    ) -> Result<Replaced, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::replace(session, specs, generation, self.tiers_max, by)
        })
    }

    /// Changes of rules, newest first.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn rule_changes(
        &self,
        rule_id: Option<u64>,
        page: Page,
    ) -> Result<Vec<RuleChange>, DataError> {
        transaction!(self, Aim::Read, session => rules::history(session, rule_id, page))
    }
}

// ===== overrides =====

impl Database {
    /// Overrides by id.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn overrides(
        &self,
        filter: &OverrideFilter,
        page: Page,
    ) -> Result<Vec<StoredOverride>, DataError> {
        transaction!(self, Aim::Read, session => overrides::list(session, filter, page))
    }

    /// One override.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::NotFound`].
    pub async fn get_override(&self, override_id: u64) -> Result<StoredOverride, DataError> {
        transaction!(self, Aim::Read, session => overrides::get(session, override_id))
    }

    /// Creates an override, or replaces that of the same rule and subject if it has this version; `true` if it was
    /// created. The rule is not checked: it may be in a file.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if a text is too long or there are too many overrides,
    /// [`DataError::NotFound`] if a version is given and there is no override, and [`DataError::Stale`] if it has
    /// another version.
    pub async fn put_override(
        &self,
        spec: &OverrideSpec,
        version: Option<u64>,
        by: &Author,
    ) -> Result<(StoredOverride, bool), DataError> {
        transaction!(self, Aim::Change, session => overrides::put(session, spec, version, by))
    }

    /// Creates an override, unless the subject has one. Of two calls at the same time, also of two processes, one fails.
    /// The rule is not checked.
    ///
    /// # Errors
    ///
    /// As [`put_override`](Self::put_override) without a version, and [`DataError::Exists`].
    pub async fn create_override(
        &self,
        spec: &OverrideSpec,
        by: &Author,
    ) -> Result<StoredOverride, DataError> {
        transaction!(self, Aim::Change, session => overrides::create(session, spec, by))
    }

    /// Deletes an override if it has this version.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::NotFound`], and [`DataError::Stale`] if it has another version.
    pub async fn delete_override(
        &self,
        override_id: u64,
        version: Option<u64>,
        by: &Author,
    ) -> Result<StoredOverride, DataError> {
        transaction!(self, Aim::Change, session => overrides::delete(session, override_id, version, by))
    }

    /// Deletes at most `limit` overrides that expired before this time, and returns their number.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn delete_expired_overrides(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, DataError> {
        // Usually there are none: this read takes no lock and causes no reload.
        let has_expired: Result<bool, DataError> =
            transaction!(self, Aim::Read, session => overrides::has_expired(session, before));
        if !has_expired? {
            return Ok(0);
        }
        transaction!(self, Aim::Change, session => overrides::delete_expired(session, before, limit))
    }
}

// ===== tokens =====

impl Database {
    /// All tokens.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn tokens(&self) -> Result<Vec<StoredToken>, DataError> {
        transaction!(self, Aim::Read, session => tokens::all(session))
    }

    /// Stores a token.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if its name is invalid or there are too many tokens, and
    /// [`DataError::Conflict`] if another token has its name.
    pub async fn create_token(
        &self,
        name: &str,
        role: Role,
        hash: &[u8; 32],
        by: &Author,
    ) -> Result<StoredToken, DataError> {
        transaction!(self, Aim::Change, session => tokens::create(session, name, role, hash, by))
    }

    /// Revokes the token of this name.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::NotFound`].
    pub async fn delete_token(&self, name: &str, by: &Author) -> Result<StoredToken, DataError> {
        transaction!(self, Aim::Change, session => tokens::delete(session, name, by))
    }
}

// ===== violations =====

impl Database {
    /// Writes a batch atomically and idempotently: a batch that was written already, although its confirmation was
    /// lost, is not written again. Oversized text is truncated.
    ///
    /// # Errors
    ///
    /// As every call. Then send the same batch again.
    pub async fn write_violations(&self, batch: &ViolationBatch) -> Result<(), DataError> {
        transaction!(self, Aim::Write, session => violations::write(session, batch))
    }

    /// Violations, newest first.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn violations(
        &self,
        filter: &ViolationFilter,
        after: Option<ViolationOrder>,
        limit: usize,
    ) -> Result<Vec<Violation>, DataError> {
        let mut survey = self.survey().await?;
        let found = transaction!(self, Aim::Read, session => {
            survey.has_begun = true;
            violations::list(session, filter, after, limit)
        });
        found.map_err(|error| survey.said(error))
    }

    /// Values with the most denials, in descending order. Without `from`, the day before `to`, or before now.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn top_offenders(
        &self,
        filter: &ViolationFilter,
        by: TopBy,
        limit: usize,
    ) -> Result<Vec<TopOffender>, DataError> {
        let mut survey = self.survey().await?;
        let found = transaction!(self, Aim::Read, session => {
            survey.has_begun = true;
            violations::top(session, filter, by, limit)
        });
        found.map_err(|error| survey.said(error))
    }

    /// Waits for a permit.
    pub(super) async fn survey(&self) -> Result<Survey, DataError> {
        let turn = timeout(self.timeout, Arc::clone(&self.surveys).acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(turn)) = turn else { return Err(DataError::TooSlow) };
        let deadline = Instant::now() + self.timeout;
        Ok(Survey { _turn: turn, deadline, has_begun: false })
    }

    /// Deletes at most `limit` violations, oldest first, and returns their number. An empty filter deletes nothing.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn delete_violations(
        &self,
        filter: &ViolationFilter,
        limit: usize,
    ) -> Result<u64, DataError> {
        transaction!(self, Aim::Write, session => violations::delete(session, filter, limit))
    }
}

impl Survey {
    /// Converts an error: a timeout of a slow query is [`DataError::TooSlow`], whether the service or the database
    /// noticed it first.
    pub(super) fn said(&self, error: DataError) -> DataError {
        match error {
            DataError::Unavailable(_) if self.has_begun && Instant::now() >= self.deadline => {
                DataError::TooSlow
            }
            error => error,
        }
    }
}

// ===== transactions =====

impl Database {
    pub(super) async fn begin(&self, aim: Aim) -> Result<Session, DataError> {
        let mut session =
            Session::begin(&self.opened.pool, aim, &limits(self.timeout, self.timeout)).await?;
        session.set_recording(self.recording.clone());
        if aim == Aim::Change {
            session.take_turn().await?;
            if self.is_dry_run {
                session = session.into_dry_run();
            }
        }
        Ok(session)
    }

    async fn begin_long(&self, aim: Aim) -> Result<Session, DataError> {
        Session::begin(
            &self.opened.pool,
            aim,
            &limits(migrate::MIGRATE_LIMIT, migrate::MIGRATE_LIMIT),
        )
        .await
    }

    async fn migrating<T>(
        &self,
        work: impl Future<Output = Result<T, DataError>>,
    ) -> Result<T, DataError> {
        within(migrate::MIGRATE_LIMIT, work).await
    }
}

/// SQL that sets the time limits of PostgreSQL for a transaction. Settings of a session would not hold behind a
/// connection pooler.
fn limits(limit: Duration, lock: Duration) -> String {
    let millis = |limit: Duration| limit.as_millis().clamp(1, 3_600_000);
    let (limit, lock) = (millis(limit), millis(lock));
    format!(
        "SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {limit}"
    )
}

pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, DataError>>,
) -> Result<T, DataError> {
    let in_vain = || DataError::Unavailable(format!("no answer within {limit:?}"));
    timeout(limit, work).await.unwrap_or_else(|_| Err(in_vain()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_question_that_was_asked_can_take_too_long() {
        let down = || DataError::Unavailable("no answer within 2s".into());
        let said = |has_begun, late: Duration| {
            let turn = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            let deadline = Instant::now() + Duration::from_secs(9) - late;
            Survey { _turn: turn, deadline, has_begun }.said(down())
        };
        let (soon, late) = (Duration::ZERO, Duration::from_secs(9));
        assert_eq!(said(true, late), DataError::TooSlow);
        assert_eq!(said(true, soon), down());
        assert_eq!(said(false, late), down());
    }
}
