//! What decides, in one read, and whose turn it is to change it.

use super::session::{Session, on};
use super::values::unsigned;
use super::{DataError, Loaded, StoredRule, overrides, rules, tokens};

/// Everything that decides.
pub(super) async fn load(session: &mut Session) -> Result<Loaded, DataError> {
    let generation = generation(session).await?;
    let rules = rules::all(session).await?;
    rules.iter().try_for_each(check)?;
    let overrides = overrides::all(session).await?;
    let tokens = tokens::all(session).await?;
    Ok(Loaded { generation, rules, overrides, tokens })
}

/// Does a rule make sense? Somebody may have written it by hand.
fn check(rule: &StoredRule) -> Result<(), DataError> {
    rule.spec.build().map(drop).map_err(|errors| {
        let wrong = DataError::Refused(errors);
        DataError::Unexpected(format!("rule {}: {wrong}", rule.spec.rule_id))
    })
}

/// The number that every change moves.
pub(super) async fn generation(session: &mut Session) -> Result<u64, DataError> {
    let select = "SELECT generation FROM rate_limit_generation";
    let generation: i64 =
        on!(session, connection => sqlx::query_scalar(select).fetch_one(connection).await)?;
    unsigned("generation", generation)
}

/// Waits until nobody else changes rules, overrides or tokens. SQLite's transaction has waited for that already.
pub(super) async fn take_turn(session: &mut Session) -> Result<(), DataError> {
    if session.is_postgres() {
        let lock = "SELECT generation FROM rate_limit_generation FOR UPDATE";
        on!(session, connection => sqlx::query(lock).execute(connection).await.map(drop))?;
    }
    Ok(())
}
