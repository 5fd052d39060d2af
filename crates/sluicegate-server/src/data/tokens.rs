//! Tokens as rows.

use super::history::{Change, record, token_json};
use super::row::row;
use super::session::{Session, on};
use super::values::{BY_BYTES_MAX, Time, clipped, named, unsigned};
use super::{Act, Author, DataError, Role, StoredToken, TOKEN_NAME_BYTES_MAX, TOKENS_MAX};
use crate::time::Timestamp;

row! {
    struct TokenRow {
        token_id: i64,
        name: String,
        role: String,
        hash: Vec<u8>,
        created_by: String,
        created_at: Time,
    }
}

/// All tokens.
pub(super) async fn all(session: &mut Session) -> Result<Vec<StoredToken>, DataError> {
    let select = "SELECT token_id, name, role, hash, created_by, created_at \
                  FROM rate_limit_tokens ORDER BY token_id";
    let rows: Vec<TokenRow> =
        on!(session, connection => sqlx::query_as(select).fetch_all(connection).await)?;
    rows.into_iter().map(TokenRow::stored).collect()
}

/// Stores a token.
pub(super) async fn create(
    session: &mut Session,
    name: &str,
    role: Role,
    hash: &[u8; 32],
    by: &Author,
) -> Result<StoredToken, DataError> {
    if name.is_empty() || name.len() > TOKEN_NAME_BYTES_MAX || name.contains(char::is_control) {
        let most =
            format!("has 1 to {TOKEN_NAME_BYTES_MAX} bytes, none of them a control character");
        return Err(DataError::field("name", most));
    }
    let others = all(session).await?;
    if others.iter().any(|other| other.name == name) {
        let detail = format!("a token called `{name}` exists already");
        return Err(DataError::Conflict { field: "name", detail, rule_id: None });
    }
    if others.len() >= TOKENS_MAX {
        let reason = format!("the maximum of {TOKENS_MAX} tokens is reached: revoke one first");
        return Err(DataError::field("name", reason));
    }
    let insert = "INSERT INTO rate_limit_tokens (name, role, hash, created_by, created_at) \
                  VALUES ($1, $2, $3, $4, $5) \
                  RETURNING token_id, name, role, hash, created_by, created_at";
    let row: TokenRow = on!(session, connection => sqlx::query_as(insert)
        .bind(name)
        .bind(role.name())
        .bind(&hash[..])
        .bind(clipped(&by.name, BY_BYTES_MAX))
        .bind(Time::from(Timestamp::now()))
        .fetch_one(connection)
        .await)?;
    let token = row.stored()?;
    let change = Change::new(Act::TokenCreate, None, Some(token_json(&token)));
    record(session, by, vec![Change { target: Some(token.name.clone()), ..change }]).await?;
    Ok(token)
}

/// Revokes the token of this name.
pub(super) async fn delete(
    session: &mut Session,
    name: &str,
    by: &Author,
) -> Result<StoredToken, DataError> {
    let delete = "DELETE FROM rate_limit_tokens WHERE name = $1 \
                  RETURNING token_id, name, role, hash, created_by, created_at";
    let row: Option<TokenRow> = on!(session, connection => {
        sqlx::query_as(delete).bind(clipped(name, usize::MAX)).fetch_optional(connection).await
    })?;
    let token = row.ok_or(DataError::NotFound("token"))?.stored()?;
    let change = Change::new(Act::TokenRevoke, Some(token_json(&token)), None);
    record(session, by, vec![Change { target: Some(token.name.clone()), ..change }]).await?;
    Ok(token)
}

impl TokenRow {
    fn stored(self) -> Result<StoredToken, DataError> {
        let hash = self.hash.try_into().map_err(|_| {
            DataError::Unexpected(format!("token {}: its hash must have 32 bytes", self.token_id))
        })?;
        Ok(StoredToken {
            token_id: unsigned("token_id", self.token_id)?,
            role: named("role", &self.role)?,
            name: self.name,
            hash,
            created_by: self.created_by,
            created_at: self.created_at.into(),
        })
    }
}
