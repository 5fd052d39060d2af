//! A separate database for each test, in both dialects.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::rules::RuleSpec;
use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{Author, Database, Page};
use sluicegate_tests::postgres::Postgres;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;

/// Timeout of every call. Generous: machines are slow.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// First page of a list, with 100 entries.
pub(crate) const FIRST: Page = Page { after: None, limit: 100 };

/// Database of a test.
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres { server: Arc<Postgres>, name: String },
}

impl Place {
    /// SQLite file that does not exist yet.
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::with_prefix("sluicegate-database-").unwrap())
    }

    /// Empty database on a PostgreSQL server shared by concurrent tests.
    pub(crate) fn postgres() -> Self {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let server = {
            let mut shared = SHARED.lock();
            shared.upgrade().unwrap_or_else(|| {
                let server = Arc::new(Postgres::start());
                *shared = Arc::downgrade(&server);
                server
            })
        };
        Self::on(server)
    }

    /// Empty database on this server.
    pub(crate) fn on(server: Arc<Postgres>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.create(&name);
        Self::Postgres { server, name }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        let text = match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("t.db").display()),
            Self::Postgres { server, name } => server.url(name),
        };
        DatabaseUrl::parse(&text).unwrap().unwrap()
    }

    /// Opens another connection, like another process.
    pub(crate) async fn open(&self) -> Database {
        Database::open(&self.url(), TIMEOUT).await.unwrap()
    }

    /// Opens a connection and applies all migrations.
    pub(crate) async fn migrated(&self) -> Database {
        let database = self.open().await;
        database.migrate().await.unwrap();
        database
    }

    /// Runs SQL on a separate connection, like an operator.
    pub(crate) async fn by_hand(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.path().join("t.db"));
                let mut connection = options.connect().await.unwrap();
                let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
                done.map(drop).map_err(|error| error.to_string())
            }
            Self::Postgres { server, name } => server.try_sql(name, sql).map(drop),
        }
    }

    /// Number that a query returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.path().join("t.db"));
                let mut connection = options.connect().await.unwrap();
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await.unwrap()
            }
            Self::Postgres { server, name } => server.sql(name, sql).parse().unwrap(),
        }
    }

    /// Query plan of the database.
    pub(crate) async fn plan(&self, select: &str) -> String {
        match self {
            Self::Sqlite(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.path().join("t.db"));
                let mut connection = options.connect().await.unwrap();
                let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {select}"));
                let rows = sqlx::raw_sql(explain).fetch_all(&mut connection).await.unwrap();
                let lines = rows.iter().map(|row| row.get::<String, _>("detail"));
                lines.collect::<Vec<_>>().join("\n")
            }
            Self::Postgres { server, name } => {
                // Disables full scans, which the planner prefers for small tables.
                server.sql(name, &format!("SET enable_seqscan = off; EXPLAIN {select}"))
            }
        }
    }
}

/// Author of changes.
pub(crate) fn by(name: &str) -> Author {
    Author::new(name)
}

/// Rule of ten requests per second.
pub(crate) fn spec(key_pattern: &str) -> RuleSpec {
    RuleSpec {
        key_pattern: key_pattern.into(),
        tokens: Some(10),
        period: Some(Duration::from_secs(1)),
        ..RuleSpec::default()
    }
}

/// Defines each of these functions as a test on both databases.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::database::common::Place::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($crate::database::common::Place::postgres()).await;
            })*
        }
    };
}
pub(crate) use on_both;
