//! Loads rules, overrides, tokens and callers in one transaction.

use super::session::{Session, on};
use super::values::unsigned;
use super::{DataError, Loaded, StoredRule, callers, overrides, rules, tokens};

/// Loads rules, overrides, tokens and callers.
pub(super) async fn load(session: &mut Session) -> Result<Loaded, DataError> {
    let generation = generation(session).await?;
    let rules = rules::all(session).await?;
    rules.iter().try_for_each(check)?;
    let overrides = overrides::all(session).await?;
    let tokens = tokens::all(session).await?;
    let callers = callers::all(session).await?;
    Ok(Loaded { generation, rules, overrides, tokens, callers })
}

/// Validates a rule, which may have been written by hand.
fn check(rule: &StoredRule) -> Result<(), DataError> {
    rule.spec.build().map(drop).map_err(|errors| {
        let wrong = DataError::Refused(errors);
        DataError::Unexpected(format!("rule {}: {wrong}", rule.spec.rule_id))
    })
}

/// Generation, which every change increases.
pub(super) async fn generation(session: &mut Session) -> Result<u64, DataError> {
    let select = "SELECT generation FROM rate_limit_generation";
    let generation: i64 =
        on!(session, connection => sqlx::query_scalar(select).fetch_one(connection).await)?;
    unsigned("generation", generation)
}
