//! A separate database for each test, in both dialects, with the manual SQL of an operator.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{Author, Database, Role};
use sluicegate_server::tokens;
use sluicegate_tests::postgres::Postgres;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::common::{Launch, PATIENCE};

/// Database of a test.
#[derive(Debug)]
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres { server: Arc<Postgres>, name: String },
}

/// Rule that allows every user three requests.
pub(crate) const BY_USER: u64 = 101;
/// Rule that allows every address two requests; tests change it.
pub(crate) const BY_IP: u64 = 102;

/// Inserts these two rules in place of the default ones.
const RULES: &str = "DELETE FROM rate_limit_rules;
    INSERT INTO rate_limit_rules (rule_id, key_pattern, scope, tokens, period, burst_capacity) VALUES
        (101, 'user:{user_id}', 'user', 1, 86400000000, 3),
        (102, 'ip:{ip}', 'ip', 1, 86400000000, 2)";

impl Place {
    /// SQLite file with the two rules above.
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::with_prefix("sluicegate-trouble-").unwrap()).prepared()
    }

    /// PostgreSQL database with the two rules above, on a server shared by concurrent tests. For tests that do not
    /// stop the server.
    pub(crate) fn postgres() -> Self {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        let server = shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Postgres::start());
            *shared = Arc::downgrade(&server);
            server
        });
        drop(shared);
        Self::on(server)
    }

    /// PostgreSQL database on a separate server.
    pub(crate) fn own_postgres() -> (Arc<Postgres>, Self) {
        let server = Arc::new(Postgres::start());
        (Arc::clone(&server), Self::on(server))
    }

    fn on(server: Arc<Postgres>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("trouble{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.create(&name);
        Self::Postgres { server, name }.prepared()
    }

    fn prepared(self) -> Self {
        let done = Launch::new(&["migrate", "--database", &self.url()]).run();
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        self.sql(RULES);
        self
    }

    pub(crate) fn dialect(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres { .. } => "PostgreSQL",
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("t.db").display()),
            Self::Postgres { server, name } => server.url(name),
        }
    }

    /// URL of the same database through another port.
    pub(crate) fn url_through(&self, port: u16) -> String {
        match self {
            Self::Sqlite(_) => panic!("a file has no port"),
            Self::Postgres { server, name } => {
                server.url(name).replace(&server.port().to_string(), &port.to_string())
            }
        }
    }

    /// Service on this database, with additional arguments.
    pub(crate) fn launch(&self, arguments: &[&str]) -> Launch {
        Launch::serve(arguments).env("SLUICEGATE_DATABASE_URL", &self.url())
    }

    /// Runs SQL on a new connection.
    pub(crate) fn sql(&self, sql: &str) {
        if let Err(error) = self.try_sql(sql) {
            panic!("{sql}: {error}");
        }
    }

    /// Like [`sql`](Self::sql), but returns the error.
    pub(crate) fn try_sql(&self, sql: &str) -> Result<(), String> {
        let mut hand = self.hand();
        hand.try_sql(sql)
    }

    /// Number that a query returns.
    pub(crate) fn number(&self, sql: &str) -> u64 {
        self.hand().number(sql)
    }

    /// Opens a connection that stays open: transactions last until they are ended.
    pub(crate) fn hand(&self) -> Hand {
        let runtime = runtime();
        let connection = runtime.block_on(async {
            match self {
                Self::Sqlite(folder) => {
                    let options = SqliteConnectOptions::new().filename(folder.path().join("t.db"));
                    let options = options.busy_timeout(PATIENCE);
                    OperatorConnection::Sqlite(Box::new(options.connect().await.unwrap()))
                }
                Self::Postgres { .. } => {
                    let options: PgConnectOptions = self.url().parse().unwrap();
                    OperatorConnection::Postgres(Box::new(options.connect().await.unwrap()))
                }
            }
        });
        Hand { runtime, connection }
    }

    /// Creates a token and returns its secret.
    pub(crate) fn make_token(&self, name: &str, role: Role) -> String {
        let (token, hash) = tokens::mint().unwrap();
        let url = DatabaseUrl::parse(&self.url()).unwrap().unwrap();
        let made = async {
            let database = Database::open(&url, PATIENCE).await?;
            database.create_token(name, role, &hash, &Author::new("test")).await
        };
        runtime().block_on(made).unwrap();
        token.expose().to_owned()
    }

    /// Revokes a token.
    pub(crate) fn revoke_token(&self, name: &str) {
        self.sql(&format!("DELETE FROM rate_limit_tokens WHERE name = '{name}'"));
    }

    /// Generation counter, which every change increments.
    pub(crate) fn generation(&self) -> u64 {
        self.number("SELECT generation FROM rate_limit_generation")
    }

    /// Sets the capacity of the rule for addresses.
    pub(crate) fn set_by_ip(&self, capacity: u64) {
        self.sql(&set_by_ip(capacity));
    }
}

/// SQL that sets the capacity of the rule for addresses.
pub(crate) fn set_by_ip(capacity: u64) -> String {
    format!("UPDATE rate_limit_rules SET burst_capacity = {capacity} WHERE rule_id = {BY_IP}")
}

/// Database connection of an operator.
pub(crate) struct Hand {
    runtime: Runtime,
    connection: OperatorConnection,
}

enum OperatorConnection {
    Sqlite(Box<sqlx::SqliteConnection>),
    Postgres(Box<sqlx::PgConnection>),
}

impl Hand {
    /// Runs SQL; panics on an error.
    pub(crate) fn sql(&mut self, sql: &str) {
        if let Err(error) = self.try_sql(sql) {
            panic!("{sql}: {error}");
        }
    }

    fn try_sql(&mut self, sql: &str) -> Result<(), String> {
        let sql = AssertSqlSafe(sql.to_owned());
        let done = match &mut self.connection {
            OperatorConnection::Sqlite(connection) => {
                within(&self.runtime, sqlx::raw_sql(sql).execute(&mut **connection)).map(drop)
            }
            OperatorConnection::Postgres(connection) => {
                within(&self.runtime, sqlx::raw_sql(sql).execute(&mut **connection)).map(drop)
            }
        };
        done.map_err(|error| error.to_string())
    }

    /// Number that a query returns.
    pub(crate) fn number(&mut self, sql: &str) -> u64 {
        let sql = AssertSqlSafe(sql.to_owned());
        let number: i64 = match &mut self.connection {
            OperatorConnection::Sqlite(connection) => {
                within(&self.runtime, sqlx::query_scalar(sql).fetch_one(&mut **connection))
            }
            OperatorConnection::Postgres(connection) => {
                within(&self.runtime, sqlx::query_scalar(sql).fetch_one(&mut **connection))
            }
        }
        .unwrap();
        u64::try_from(number).unwrap()
    }
}

fn within<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let limit = PATIENCE + Duration::from_secs(20);
    let limited = async { tokio::time::timeout(limit, future).await };
    runtime.block_on(limited).expect("an answer of the database")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
