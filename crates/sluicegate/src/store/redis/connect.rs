//! One connection to one server, ready for use, and what that server is.
//!
//! The commands of a connection are few, so that a user who may do little can connect: `AUTH` with
//! credentials, `SELECT` for a database other than 0, `INFO`. redis-rs sends none of its own: it would
//! repeat a refused `AUTH` as the default user, and does not say why it was refused.

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

/// The oldest server: the first with `SET ... PXAT`.
const VERSION_MIN: Version = Version { major: 6, minor: 2, patch: 0 };

/// A connection, and the server at its other end.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) connection: Wire,
    pub(super) server: ServerInfo,
}

/// A connection that many can use at once. It is closed when its last clone is dropped, whatever is still
/// on its way. It has no time limit of its own: callers have.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    connection: MultiplexedConnection,
    _driver: Arc<Driver>,
}

/// The task that writes and reads, ended with the last who can use it: by itself it would wait for every
/// answer, and so for ever for those of a server that hangs.
#[derive(Debug)]
struct Driver(AbortHandle);

/// What a server is, as it said itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerInfo {
    /// Of Redis, or of the Redis that a Valkey is compatible with.
    pub(super) version: Version,
    pub(super) is_valkey: bool,
    /// Another one after every start; empty if the server does not tell.
    pub(super) run_id: String,
    pub(super) role: Role,
    /// In bytes; zero is without a limit.
    pub(super) maxmemory: u64,
    /// Empty if the server does not tell.
    pub(super) maxmemory_policy: String,
    pub(super) is_cluster: bool,
}

/// Whether a server takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It does.
    Master,
    /// It repeats those of another.
    Replica,
}

/// The version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third.
    pub patch: u32,
}

/// Why a server cannot hold buckets, however well the connection works.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unfit {
    /// It is too old.
    #[error("the server has version {version} of Redis, and {VERSION_MIN} is needed")]
    TooOld {
        /// Its version.
        version: Version,
    },
    /// It may forget buckets before they are full.
    #[error("{}", evicts(policy))]
    Evicts {
        /// Its policy.
        policy: String,
    },
}

/// Connects to a server and asks what it is.
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
/// - `Connection`: it cannot be reached, did not answer in time, or has too many clients.
/// - `Tls`: the handshake failed, or a file for it cannot be used.
/// - `Auth`: wrong credentials, or no permission for `INFO` (or `SELECT`, with a database other than 0).
/// - `Loading`: it is not ready yet. `Unexpected`: it is no Redis, or a sentinel.
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

/// Whether a server can hold buckets: warnings, to be logged once.
///
/// # Errors
///
/// A server that is too old, and one that evicts, if that is to be refused.
pub(super) fn check(info: &ServerInfo, on_eviction: OnEviction) -> Result<Vec<String>, Unfit> {
    if info.version < VERSION_MIN {
        return Err(Unfit::TooOld { version: info.version });
    }
    let policy = info.maxmemory_policy.as_str();
    // Without a limit nothing is evicted, whatever the policy. With `volatile-ttl` those go first that are
    // full soonest: a flood of keys of a slow rule would still free the buckets of a fast one.
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

/// Bounds work with a server, and names the server in its trouble.
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

/// Connects, without a time limit, authenticates, chooses the database, and asks something.
pub(super) async fn open<T: FromRedisValue>(
    settings: &Settings,
    address: &Address,
    credentials: &Credentials,
    db: u16,
    question: &Cmd,
) -> Result<(Wire, T), Trouble> {
    let stream = dial(settings, address).await?;
    // No credentials and no name: then redis-rs sends nothing.
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
            // Whatever else the server says to `AUTH`, it refuses it.
            TroubleKind::Unexpected => TroubleKind::Auth,
            kind => kind,
        };
        Trouble::new(kind, without(trouble.detail(), password.expose()))
    })
}

/// A text without a secret, should a server or something before it have repeated that.
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
    /// Reads the answer to `INFO`. What a server does not tell has a harmless default, but for its version.
    fn parse(text: &str) -> Result<Self, Trouble> {
        let fields: HashMap<&str, &str> =
            text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let field = |name: &str| fields.get(name).copied();
        let unexpected = |text: &str| Trouble::new(TroubleKind::Unexpected, text);
        // Valkey says `server_mode`.
        if field("redis_mode").or(field("server_mode")) == Some("sentinel") {
            return Err(unexpected("it is a sentinel: its URL begins with redis+sentinel://"));
        }
        // Of all commands, `INFO` is answered all the same.
        if field("loading") == Some("1") {
            return Err(Trouble::new(TroubleKind::Loading, "it is reading its data from disk"));
        }
        let version = field("redis_version")
            .and_then(Version::parse)
            .ok_or_else(|| unexpected("its INFO has no redis_version"))?;
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
    /// Reads `7.2.4`, and `7.4-rc1` as 7.4.0.
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
            "the server has version 6.0.16 of Redis, and 6.2.0 is needed"
        );
    }

    #[test]
    fn a_server_that_forgets_buckets_is_told() {
        for (maxmemory, policy) in [(0, "allkeys-lru"), (1, "noeviction")] {
            assert_eq!(check(&server(maxmemory, policy), OnEviction::Refuse), Ok(Vec::new()));
        }
        // Every bucket has an expiry, so `volatile-*` drops them as `allkeys-*` does.
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
