//! One connection to one server, ready for use, and the server's `INFO`.
//!
//! A connection needs few commands, so that a user with few permissions can connect: `AUTH` with credentials,
//! `SELECT` for a database other than 0, `INFO`. redis-rs sends none of its own: it would repeat a refused
//! `AUTH` as the default user, and hide the reason of the refusal.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, ProtocolVersion, RedisConnectionInfo,
    RedisFuture, Value,
};
use thiserror::Error;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::classify::classify;
use super::dial::dial;
use super::settings::{CONNECT_TIMEOUT, OnEviction, PIPELINE_MAX, Settings};
use super::trouble::{Trouble, TroubleKind};
use super::url::{Address, Credentials};

/// Oldest supported version: the first with `SET ... PXAT`.
const VERSION_MIN: Version = Version { major: 6, minor: 2, patch: 0 };

/// A connection, and its server.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) connection: Wire,
    pub(super) server: ServerInfo,
}

/// A multiplexed connection. Closed when its last clone is dropped, even with replies pending. It has no
/// timeout of its own: callers have.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    connection: MultiplexedConnection,
    _driver: Arc<Driver>,
}

/// The task that writes and reads, aborted with the last clone of the connection: by itself it would wait for
/// all pending replies, and so for ever if the server hangs.
#[derive(Debug)]
struct Driver(AbortHandle);

/// Fields of a server's `INFO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerInfo {
    /// Version of Redis; of a Valkey, that of the Redis it is compatible with.
    pub(super) version: Version,
    pub(super) is_valkey: bool,
    /// Changes with every start of the server; empty if absent.
    pub(super) run_id: String,
    pub(super) role: Role,
    /// In bytes; zero: unlimited.
    pub(super) maxmemory: u64,
    /// Empty if absent.
    pub(super) maxmemory_policy: String,
    pub(super) is_cluster: bool,
}

/// Replication role of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes writes.
    Master,
    /// Replicates a master.
    Replica,
}

/// Version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

/// Reason why a server cannot hold buckets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The version is too old.
    #[error("the server has Redis {version}: {VERSION_MIN} or later is needed")]
    TooOld {
        /// Version of the server.
        version: Version,
    },
    /// The server may evict buckets before they are full.
    #[error("{}", evicts(policy))]
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
}

/// Connects to a server and reads its `INFO`.
///
/// # Time
///
/// At most [`CONNECT_TIMEOUT`].
///
/// # Cancel safety
///
/// Dropping the future closes the connection.
///
/// # Errors
///
/// - `Connection`: it cannot be reached, did not reply in time, or has too many clients.
/// - `Tls`: the handshake failed, or a file for it cannot be used.
/// - `Auth`: wrong credentials, or no permission for `INFO` (or `SELECT`, with a database other than 0).
/// - `Loading`: it is not ready yet. `Unexpected`: it is not a Redis, or it is a sentinel.
pub(super) async fn connect(settings: &Settings, address: &Address) -> Result<Connected, Trouble> {
    within(CONNECT_TIMEOUT, address, async {
        let (credentials, db) = (settings.url.credentials(), settings.url.db());
        let info = redis::cmd("INFO");
        let (connection, text): (_, String) =
            open(settings, address, credentials, db, &info).await?;
        Ok(Connected { connection, server: ServerInfo::parse(&text)? })
    })
    .await
}

/// Checks that a server can hold buckets. Returns warnings, to be logged once.
///
/// # Errors
///
/// A server that is too old, and one that evicts if that is to be refused.
pub(super) fn check(info: &ServerInfo, on_eviction: OnEviction) -> Result<Vec<String>, Unfit> {
    if info.version < VERSION_MIN {
        return Err(Unfit::TooOld { version: info.version });
    }
    let policy = info.maxmemory_policy.as_str();
    // Without a limit nothing is evicted under any policy. With `volatile-ttl` the buckets that are full
    // soonest are evicted first: a flood of keys of a slow rule would still evict the buckets of a fast one.
    if info.maxmemory == 0 || policy == "noeviction" {
        return Ok(Vec::new());
    }
    match on_eviction {
        OnEviction::Warn => Ok(vec![evicts(policy)]),
        OnEviction::Refuse => Err(Unfit::Evicts { policy: policy.into() }),
    }
}

fn evicts(policy: &str) -> String {
    let policy = if policy.is_empty() { "unknown" } else { policy };
    format!(
        "the server's maxmemory-policy is {policy}, which may drop buckets that are not full, and so grant more \
         than the limits: set it to noeviction"
    )
}

// ===== connecting =====

/// Adds a timeout to work with a server, and the server's address to its error.
pub(super) async fn within<T>(
    limit: Duration,
    address: &Address,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    // Boxed, because the futures of TLS are large.
    let trouble = match timeout(limit, Box::pin(work)).await {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(trouble)) => trouble,
        Err(_) => Trouble::new(TroubleKind::Connection, format!("not ready within {limit:?}")),
    };
    Err(Trouble::new(trouble.kind(), format!("{address}: {}", trouble.detail())))
}

/// Connects without a timeout, authenticates, selects the database, and sends a first command.
pub(super) async fn open<T: FromRedisValue>(
    settings: &Settings,
    address: &Address,
    credentials: &Credentials,
    db: u16,
    question: &Cmd,
) -> Result<(Wire, T), Trouble> {
    let stream = dial(settings, address).await?;
    // Without credentials and a name, redis-rs sends no commands of its own.
    let silent =
        RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(PIPELINE_MAX);
    let (connection, driver) = MultiplexedConnection::new_with_config(&silent, stream, config)
        .await
        .map_err(|error| classify(&error).into_trouble())?;
    let mut wire = Wire::new(connection, driver);
    authenticate(&mut wire, credentials).await?;
    if db != 0 {
        ask::<()>(&mut wire, redis::cmd("SELECT").arg(db)).await?;
    }
    let answer = ask(&mut wire, question).await?;
    Ok((wire, answer))
}

async fn ask<T: FromRedisValue>(wire: &mut Wire, command: &Cmd) -> Result<T, Trouble> {
    command.query_async(wire).await.map_err(|error| classify(&error).into_trouble())
}

async fn authenticate(wire: &mut Wire, credentials: &Credentials) -> Result<(), Trouble> {
    let Some(password) = &credentials.password else { return Ok(()) };
    let mut command = redis::cmd("AUTH");
    command.arg(credentials.username.as_deref()).arg(password.expose());
    ask::<()>(wire, &command).await.map_err(|trouble| {
        let kind = match trouble.kind() {
            // Any other error reply to `AUTH` is a refusal too.
            TroubleKind::Unexpected => TroubleKind::Auth,
            kind => kind,
        };
        Trouble::new(kind, without(trouble.detail(), password.expose()))
    })
}

/// Redacts a secret, in case a server or a proxy has repeated it.
fn without(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.into() } else { text.replace(secret, "***") }
}

// ===== the connection =====

impl Wire {
    fn new(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let driver = Driver(tokio::spawn(driver).abort_handle());
        Self { connection, _driver: Arc::new(driver) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Deref for Wire {
    type Target = MultiplexedConnection;

    fn deref(&self) -> &MultiplexedConnection {
        &self.connection
    }
}

impl DerefMut for Wire {
    fn deref_mut(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.connection.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

// ===== INFO =====

impl ServerInfo {
    /// Parses the reply to `INFO`. Absent fields get a harmless default, except the version.
    pub(super) fn parse(text: &str) -> Result<Self, Trouble> {
        let fields: HashMap<&str, &str> =
            text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let field = |name: &str| fields.get(name).copied();
        let unexpected = |text: &str| Trouble::new(TroubleKind::Unexpected, text);
        // Valkey's name of the field is `server_mode`.
        if field("redis_mode").or(field("server_mode")) == Some("sentinel") {
            return Err(unexpected(
                "the server is a sentinel: the URL must begin with redis+sentinel://",
            ));
        }
        // `INFO` is answered while the server loads; other commands are not.
        if field("loading") == Some("1") {
            return Err(Trouble::new(
                TroubleKind::Loading,
                "the server is loading its data from disk",
            ));
        }
        let version = field("redis_version")
            .and_then(Version::parse)
            .ok_or_else(|| unexpected("INFO has no redis_version"))?;
        Ok(Self {
            version,
            is_valkey: field("valkey_version").is_some() || field("server_name") == Some("valkey"),
            run_id: field("run_id").unwrap_or_default().into(),
            role: match field("role") {
                Some("slave" | "replica") => Role::Replica,
                _ => Role::Master,
            },
            maxmemory: field("maxmemory").and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
            maxmemory_policy: field("maxmemory_policy").unwrap_or_default().into(),
            is_cluster: field("cluster_enabled") == Some("1"),
        })
    }
}

impl Version {
    /// Parses `7.2.4`, and `7.4-rc1` as 7.4.0.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse::<u32>().ok()
        });
        let major = numbers.next()??;
        let mut next = || numbers.next().flatten().unwrap_or(0);
        Some(Self { major, minor: next(), patch: next() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALKEY: &str = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n\
        redis_mode:standalone\r\nos:Linux 6.1 x86_64\r\nrun_id:5f0c\r\n\r\n# Memory\r\nmaxmemory:1048576\r\n\
        maxmemory_policy:allkeys-lru\r\n# Replication\r\nrole:master\r\n# Cluster\r\ncluster_enabled:0\r\n";

    fn version(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    fn server(maxmemory: u64, policy: &str) -> ServerInfo {
        ServerInfo {
            maxmemory,
            maxmemory_policy: policy.into(),
            ..ServerInfo::parse(VALKEY).unwrap()
        }
    }

    #[test]
    fn info_is_read() {
        let info = ServerInfo::parse(VALKEY).unwrap();
        assert_eq!(
            info,
            ServerInfo {
                version: version(7, 2, 4),
                is_valkey: true,
                run_id: "5f0c".into(),
                role: Role::Master,
                maxmemory: 1_048_576,
                maxmemory_policy: "allkeys-lru".into(),
                is_cluster: false,
            }
        );
        let replica =
            ServerInfo::parse("redis_version:6.2.0\nrole:slave\ncluster_enabled:1").unwrap();
        assert_eq!(replica.role, Role::Replica);
        assert!(replica.is_cluster && !replica.is_valkey && replica.run_id.is_empty());
    }

    #[test]
    fn strange_answers_are_trouble_and_no_panic() {
        for text in ["", "::::", "redis_version:", "redis_version:x", "\0\r\r\n:", "role:master"] {
            let trouble = ServerInfo::parse(text).unwrap_err();
            assert_eq!(trouble.kind(), TroubleKind::Unexpected, "{text:?}");
        }
        let loading = ServerInfo::parse("redis_version:7.0.0\r\nloading:1").unwrap_err();
        assert_eq!(loading.kind(), TroubleKind::Loading);
        for mode in ["redis_mode", "server_mode"] {
            let text = format!("redis_version:7.0.0\r\n{mode}:sentinel");
            let sentinel = ServerInfo::parse(&text).unwrap_err();
            assert!(sentinel.detail().contains("redis+sentinel://"));
        }
    }

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(Version::parse("7.4-rc1"), Some(version(7, 4, 0)));
        assert_eq!(Version::parse("8"), Some(version(8, 0, 0)));
        assert_eq!(Version::parse("255.255.255"), Some(version(255, 255, 255)));
        assert_eq!(Version::parse("99999999999.1"), None);
        assert!(version(6, 10, 0) > VERSION_MIN);
        let old = ServerInfo { version: version(6, 0, 16), ..server(0, "") };
        assert_eq!(
            check(&old, OnEviction::Warn).unwrap_err().to_string(),
            "the server has Redis 6.0.16: 6.2.0 or later is needed"
        );
    }

    #[test]
    fn a_server_that_evicts_buckets_is_reported() {
        for (maxmemory, policy) in [(0, "allkeys-lru"), (1, "noeviction")] {
            assert_eq!(check(&server(maxmemory, policy), OnEviction::Refuse), Ok(Vec::new()));
        }
        // Every bucket has an expiry, so `volatile-*` evicts them as `allkeys-*` does.
        for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl", ""] {
            let warnings = check(&server(1, policy), OnEviction::Warn).unwrap();
            assert!(warnings[0].contains("noeviction"), "{warnings:?}");
            assert_eq!(
                check(&server(1, policy), OnEviction::Refuse),
                Err(Unfit::Evicts { policy: policy.into() })
            );
        }
    }

    #[test]
    fn a_repeated_secret_is_taken_out() {
        assert_eq!(without("ERR no 'hunter2' here", "hunter2"), "ERR no '***' here");
        assert_eq!(without("WRONGPASS", ""), "WRONGPASS");
    }
}
