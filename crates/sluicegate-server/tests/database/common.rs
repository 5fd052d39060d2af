//! A database of its own for each test, in both dialects.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::rules::RuleSpec;
use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{Database, Page};
use sluicegate_tests::postgres::Postgres;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;

/// The timeout of every call. Generous: machines are slow.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// The first hundred of a list.
pub(crate) const FIRST: Page = Page { after: None, limit: 100 };

/// Where a test has its database.
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres { server: Arc<Postgres>, name: String },
}

impl Place {
    /// A file that is not there yet.
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::with_prefix("sluicegate-database-").unwrap())
    }

    /// An empty database on the server that all tests share while one of them runs.
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

    /// An empty database on this server.
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

    /// Another connection to it, as another process has.
    pub(crate) async fn open(&self) -> Database {
        Database::open(&self.url(), TIMEOUT).await.unwrap()
    }

    /// A connection to it, with the schema of this version.
    pub(crate) async fn migrated(&self) -> Database {
        let database = self.open().await;
        database.migrate().await.unwrap();
        database
    }

    /// Runs SQL as an operator would.
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

    /// The one number that a question is answered with.
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

    /// How the database would answer a question.
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
                // A small table is read whole, whatever indexes it has.
                server.sql(name, &format!("SET enable_seqscan = off; EXPLAIN {select}"))
            }
        }
    }
}

/// A rule of ten a second.
pub(crate) fn spec(key_pattern: &str) -> RuleSpec {
    RuleSpec {
        key_pattern: key_pattern.into(),
        tokens: Some(10),
        period: Some(Duration::from_secs(1)),
        ..RuleSpec::default()
    }
}

/// Each of these functions as a test of both databases.
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
