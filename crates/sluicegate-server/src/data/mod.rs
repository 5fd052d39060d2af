//! Rules, overrides, tokens, callers and violations in SQL: SQLite embedded, PostgreSQL in production.
//!
//! [`Database`] is the public interface. Each call runs in a `session`: a transaction on either database. The files
//! named after tables contain the SQL, one text for both dialects wherever they agree.

mod author;
mod callers;
mod change_rules;
mod changes;
mod database;
mod error;
mod handle;
mod history;
mod load;
mod migrate;
mod open;
mod overrides;
mod rights;
mod row;
mod rows;
mod rules;
mod session;
mod tokens;
mod values;
mod violations;

pub use self::author::Author;
pub(crate) use self::callers::require_plain;
pub use self::changes::Changes;
pub use self::database::{Database, Migration, TopBy};
pub use self::error::DataError;
pub use self::handle::DatabaseHandle;
pub use self::history::{
    Act, HistoryBatch, HistoryEntry, HistoryFilter, HistoryKind, HistoryOrder, HistoryRow, Outcome,
    Recording,
};
use self::load::{generation, load};
pub use self::rights::{Right, Rights};
pub use self::rows::{
    CALLERS_MAX, CERTIFICATE_BYTES_MAX, CallerSpec, CursorError, Loaded, NAME_BYTES_MAX,
    OverrideFilter, OverrideKind, OverrideSpec, Page, REASON_BYTES_MAX, Replaced, Role, RuleChange,
    RuleFilter, SUBJECT_BYTES_MAX, StoredCaller, StoredOverride, StoredRule, StoredToken,
    TOKEN_NAME_BYTES_MAX, TOKENS_MAX, TopOffender, Violation, ViolationBatch, ViolationFilter,
    ViolationOrder, ViolationRow,
};
pub use self::rules::rule_json;
