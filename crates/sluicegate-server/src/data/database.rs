//! The repository: every question to the database, in both dialects.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::rules::RuleSpec;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::open::{self, Opened};
use super::session::{Aim, Session};
use super::{
    Changes, DataError, Loaded, OverrideFilter, OverrideSpec, Page, Replaced, Role, RuleChange,
    RuleFilter, StoredOverride, StoredRule, StoredToken, TopOffender, Violation, ViolationBatch,
    ViolationFilter, ViolationOrder, change_rules, migrate, overrides, rules, tokens, violations,
};
use crate::config::DatabaseUrl;
use crate::time::Timestamp;

/// A database: a file of SQLite, or PostgreSQL 15 or newer. Clones are the same one.
///
/// Every call is one transaction: what it reads is of one moment, what it writes is written whole or not at all.
/// Every call ends, after about the timeout at the latest: with [`DataError::Unavailable`] where the database
/// does not answer, is locked or is full. Nothing has to be done to make it work again when the database is back.
/// A call may be dropped at any time; whether something it was just writing is written, nobody knows then.
///
/// Changes of rules, overrides and tokens are made one at a time, whoever makes them, also on several nodes. Each
/// moves the [generation](Self::generation), by triggers, so that changes by hand do so too.
#[derive(Clone, Debug)]
pub struct Database {
    opened: Opened,
    timeout: Duration,
    /// Changes of rules and overrides are rolled back.
    is_dry_run: bool,
    /// Turns of those who look through violations.
    surveys: Arc<Semaphore>,
}

/// How long it may take to load everything that decides, which nobody who asks for a verdict waits for.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// So many may look through violations at once, and others wait: that can take long, and must leave connections to
/// those who change rules, keep up with them, and record.
const SURVEYS_MAX: usize = 2;

/// Somebody who looks through violations.
struct Survey {
    _turn: OwnedSemaphorePermit,
    /// When it has taken too long.
    deadline: Instant,
    /// The database has answered: from here on it is the question that takes its time.
    has_begun: bool,
}

/// A migration, and whether it is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number.
    pub version: i64,
    /// What it does.
    pub description: String,
    /// Whether it has been applied.
    pub is_applied: bool,
}

/// The column by which violations are summed up.
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
        // On the heap: futures of drivers are large, and callers hold many.
        within(
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

// ===== opening, migrating =====

impl Database {
    /// Connects, within the timeout, which also bounds every later call. Does not migrate. A file that is not
    /// there is made, for its owner only; its folder has to be there.
    ///
    /// # Errors
    ///
    /// [`DataError::Unavailable`] if it cannot be reached, [`DataError::Unexpected`] if it is too old or no
    /// database. What they say has no password in it.
    pub async fn open(url: &DatabaseUrl, timeout: Duration) -> Result<Self, DataError> {
        let opened = within(timeout, open::open(url, timeout)).await?;
        let surveys = Arc::new(Semaphore::new(SURVEYS_MAX));
        Ok(Self { opened, timeout, is_dry_run: false, surveys })
    }

    /// A handle for dry runs: a change of a rule, an override or a token runs as one that is saved, with the same
    /// answer or error, and is then rolled back. The generation and the history stay as they are.
    ///
    /// PostgreSQL does not roll back sequences: a dry run that would make an override uses up an `override_id`.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { is_dry_run: true, ..self.clone() }
    }

    /// Applies what is missing, whoever else does so at the same time, and says what that was. What a newer
    /// version has applied is left alone.
    ///
    /// # Errors
    ///
    /// As every call; nothing is changed then.
    pub async fn migrate(&self) -> Result<Vec<Migration>, DataError> {
        // Mostly there is nothing to do, and nobody to be waited for.
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

    /// Takes back every migration above `version`, newest first, and says what that was. What they had made is
    /// gone, with everything in it.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::Unexpected`] if one of them is not known to this version; nothing is
    /// changed then.
    pub async fn migrate_down(&self, version: i64) -> Result<Vec<Migration>, DataError> {
        self.migrating(Box::pin(async {
            let mut session = self.begin_long(Aim::Write).await?;
            let done = migrate::down(&mut session, version).await;
            session.end(done).await
        }))
        .await
    }

    /// Every migration that this version knows.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn migrations(&self) -> Result<Vec<Migration>, DataError> {
        transaction!(self, Aim::Read, session => migrate::list(session))
    }
}

// ===== what decides =====

impl Database {
    /// Everything that decides, in one read.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::Unexpected`] with which row it is and why, if one of them makes no sense:
    /// it must have been made by hand.
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

    /// Grows with every change of a rule, an override or a token, whoever makes it.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn generation(&self) -> Result<u64, DataError> {
        transaction!(self, Aim::Read, session => super::generation(session))
    }

    /// From now on, tells when something may have changed. Ask for this first and [`load`](Self::load) then, so
    /// that nothing is missed in between.
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
    /// Rules by id. A plan of `""` asks for those for every plan.
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

    /// Makes a rule; id 0 takes the next one.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if it makes no sense, and [`DataError::Conflict`] if another has its
    /// id, or its key pattern and plan.
    pub async fn create_rule(&self, spec: &RuleSpec, by: &str) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => change_rules::create(session, spec, by))
    }

    /// Changes a rule, if it has this version. One that stays as it is keeps its version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), [`DataError::NotFound`], and [`DataError::Stale`] if it has another
    /// version.
    pub async fn update_rule(
        &self,
        spec: &RuleSpec,
        version: Option<u64>,
        by: &str,
    ) -> Result<StoredRule, DataError> {
        let changed = |current: &StoredRule| {
            change_rules::is_current(current.version, version)?;
            Ok(spec.clone())
        };
        self.change_rule(spec.rule_id, by, changed).await
    }

    /// Changes a rule to what a function makes of it, in one transaction. One that stays as it is keeps its version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), [`DataError::NotFound`], and what the function returns.
    pub async fn change_rule(
        &self,
        rule_id: u64,
        by: &str,
        changed: impl FnOnce(&StoredRule) -> Result<RuleSpec, DataError>,
    ) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::update(session, rule_id, by, changed)
        })
    }

    /// Deletes a rule, if it has this version, and its overrides with it. Its id is never used again.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::NotFound`], and [`DataError::Stale`] if it has another version.
    pub async fn delete_rule(
        &self,
        rule_id: u64,
        version: Option<u64>,
        by: &str,
    ) -> Result<StoredRule, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::delete(session, rule_id, version, by)
        })
    }

    /// Makes these the rules, all or none, if nothing has changed since `generation`. One with id 0 takes the
    /// place of the rule with its key pattern and plan, if there is one. Rules that do not change keep their version.
    ///
    /// # Errors
    ///
    /// As [`create_rule`](Self::create_rule), and [`DataError::Stale`] with the current generation.
    pub async fn replace_rules(
        &self,
        specs: &[RuleSpec],
        generation: Option<u64>,
        by: &str,
    ) -> Result<Replaced, DataError> {
        transaction!(self, Aim::Change, session => {
            change_rules::replace(session, specs, generation, by)
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

    /// Makes an override, or puts it in the place of the one of the same rule and subject, if that has this
    /// version; `true` if there was none. Whether there is such a rule is not looked at: it may be in a file.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if a text is too long or there are too many,
    /// [`DataError::NotFound`] if there is none to have a version, and [`DataError::Stale`] if it has another.
    pub async fn put_override(
        &self,
        spec: &OverrideSpec,
        version: Option<u64>,
        by: &str,
    ) -> Result<(StoredOverride, bool), DataError> {
        transaction!(self, Aim::Change, session => overrides::put(session, spec, version, by))
    }

    /// Deletes an override, if it has this version.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::NotFound`], and [`DataError::Stale`] if it has another version.
    pub async fn delete_override(
        &self,
        override_id: u64,
        version: Option<u64>,
    ) -> Result<StoredOverride, DataError> {
        transaction!(self, Aim::Change, session => overrides::delete(session, override_id, version))
    }

    /// Deletes overrides that expired before this time, so many at most, and says how many.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn delete_expired_overrides(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, DataError> {
        // Most of the time there are none: nobody has to wait for that, nor to load everything again.
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

    /// Keeps a token.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if its name cannot be one or there are too many, and
    /// [`DataError::Conflict`] if another has it.
    pub async fn create_token(
        &self,
        name: &str,
        role: Role,
        hash: &[u8; 32],
        by: &str,
    ) -> Result<StoredToken, DataError> {
        transaction!(self, Aim::Change, session => tokens::create(session, name, role, hash, by))
    }

    /// Revokes the token of this name.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::NotFound`].
    pub async fn delete_token(&self, name: &str) -> Result<StoredToken, DataError> {
        transaction!(self, Aim::Change, session => tokens::delete(session, name))
    }
}

// ===== violations =====

impl Database {
    /// Writes a batch, all or nothing, and once: one that was written already, though its writer may not know, is
    /// not written again. Texts that are too long are cut.
    ///
    /// # Errors
    ///
    /// As every call. Send the same batch again then.
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

    /// Who was denied most, most first: in the day before `to`, or now, if the filter does not say from when.
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

    /// Waits for a turn.
    async fn survey(&self) -> Result<Survey, DataError> {
        let turn = timeout(self.timeout, Arc::clone(&self.surveys).acquire_owned()).await;
        // Nobody closes the semaphore.
        let Ok(Ok(turn)) = turn else { return Err(DataError::TooSlow) };
        let deadline = Instant::now() + self.timeout;
        Ok(Survey { _turn: turn, deadline, has_begun: false })
    }

    /// Deletes violations, oldest first, so many at most, and says how many. A filter without anything in it
    /// deletes nothing.
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
    /// What went wrong: whoever asked too much is told so, whichever of the two noticed first.
    fn said(&self, error: DataError) -> DataError {
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
    async fn begin(&self, aim: Aim) -> Result<Session, DataError> {
        let mut session =
            Session::begin(&self.opened.pool, aim, &limits(self.timeout, self.timeout)).await?;
        if aim == Aim::Change {
            super::take_turn(&mut session).await?;
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

/// What PostgreSQL is told at the beginning of each transaction about how long anything may take in it. Behind a
/// pooler that hands connections round, nothing else would hold.
fn limits(limit: Duration, lock: Duration) -> String {
    let millis = |limit: Duration| limit.as_millis().clamp(1, 3_600_000);
    let (limit, lock) = (millis(limit), millis(lock));
    format!(
        "SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {limit}"
    )
}

async fn within<T>(
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
