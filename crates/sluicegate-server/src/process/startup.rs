//! Startup message on a terminal.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sluicegate::RuleSet;

use crate::config::{Address, Door, StoreUrl};
use crate::doors::http::page::assets;
use crate::rules::source::RulesSource;

/// Contents of the startup message.
#[derive(Clone, Copy, Debug)]
pub struct Startup<'a> {
    /// The listeners.
    pub listeners: &'a [Announced<'a>],
    /// Source of the rules.
    pub source: &'a RulesSource,
    /// Rules in force.
    pub rules: &'a RuleSet,
    /// Address of the store.
    pub store: &'a StoreUrl,
    /// Maximum number of buckets in this process's memory.
    pub max_buckets: usize,
    /// The administration requires a token.
    pub has_token: bool,
}

/// A listener in the startup message.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
pub struct Announced<'a> {
    pub door: Door,
    pub address: &'a Address,
    pub is_tls: bool,
    /// It answers `/readyz`.
    pub has_health: bool,
    /// It answers `/metrics`.
    pub has_metrics: bool,
}

/// A request that the starter rules allow five times a minute: of six in a row the last is denied,
/// however long ago the first request was.
const LOGIN: (&str, &str) = ("/v1/check", r#"{"ip":"203.0.113.9","endpoint":"/login"}"#);
/// A request that is allowed five times under any rules, and then once a minute.
const TAKE: (&str, &str) =
    ("/v1/take", r#"{"key":"hello","capacity":5,"refill_rate":1,"refill_interval":60}"#);

impl Startup<'_> {
    /// The message, in whole lines.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = String::new();
        let doors: Vec<_> = self.listeners.iter().map(Announced::shown).collect();
        let count = self.rules.rules().len();
        let is_starter = self.rules.rules() == RuleSet::starter().rules();
        let rules = match self.source {
            RulesSource::Starter => {
                format!("the {count} starter rules, because no rules were given (--rules FILE)")
            }
            RulesSource::File(path) => {
                format!("{count} from {}, reloaded when it changes", path.display())
            }
            RulesSource::Database(url) if is_starter => {
                format!(
                    "the {count} starter rules in {url}, changed while it runs (sluicegate rules)"
                )
            }
            RulesSource::Database(url) => {
                format!("{count} in {url}, changed while it runs (sluicegate rules)")
            }
        };
        let store = match self.store {
            StoreUrl::Memory => format!("in memory, at most {} buckets", self.max_buckets),
            StoreUrl::Redis(url) => format!("{url}, shared by all replicas that use it"),
        };
        let admin = if self.has_token { "requires a token" } else { "open to this machine" };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\
sluicegate {version} serves {doors}

  rules    {rules}
  store    {store}
  admin    {admin}
",
            version = env!("CARGO_PKG_VERSION"),
            doors = doors.join(", "),
        );
        let find = |door| self.listeners.iter().find(|it| it.door == door);
        let (http, admin) = (find(Door::Http), find(Door::Admin));
        if let Some(page) = admin.or(http) {
            text.push_str(&page.paths());
        }
        if let Some(data) = http.or(admin) {
            text.push_str(&data.try_it(is_starter));
        }
        text.push_str("\nPress Ctrl-C to stop.\n");
        text
    }
}

impl Announced<'_> {
    /// Protocol and address.
    fn shown(&self) -> String {
        let address = self.reachable();
        match self.door {
            Door::Http if matches!(self.address, Address::Tcp(_)) => self.url(),
            Door::Http => format!("HTTP on {address}"),
            Door::Admin => format!("the administration on {address}"),
            Door::Grpc => format!("gRPC on {address}"),
            Door::Resp => format!("the Redis protocol on {address}"),
        }
    }

    /// Address that this machine reaches it under.
    fn reachable(&self) -> Address {
        match self.address {
            Address::Tcp(address) => Address::Tcp(reachable(*address)),
            unix @ Address::Unix(_) => unix.clone(),
        }
    }

    /// Base URL for HTTP. The host of a Unix socket is any.
    fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        match self.reachable() {
            Address::Tcp(address) => format!("{scheme}://{address}"),
            Address::Unix(_) => format!("{scheme}://localhost"),
        }
    }

    /// Addresses to open.
    fn paths(&self) -> String {
        let url = self.url();
        let page = match self.address {
            Address::Tcp(_) => format!("{url}/{}", page_note()),
            Address::Unix(_) => format!("{url}/, through a proxy or tunnel to {}", self.address),
        };
        let health = if self.has_health { "  /readyz?verbose" } else { "" };
        let metrics = if self.has_metrics { "  /metrics" } else { "" };
        format!("  page     {page}\n  more     {url}/openapi.json{health}{metrics}\n")
    }

    /// Two commands to try.
    fn try_it(&self, is_starter: bool) -> String {
        let (path, body) = if is_starter { LOGIN } else { TAKE };
        let curl = match self.address {
            Address::Tcp(_) => "curl -s".to_owned(),
            Address::Unix(unix) => format!("curl -s --unix-socket {}", unix.path.display()),
        };
        let url = self.url();
        let ask = format!("{curl} {url}{path} -H 'content-type: application/json' -d '{body}'");
        format!(
            "
Try it. One request is allowed:

  {ask}

and of six more the last is denied, and says exactly how long to wait:

  for i in 1 2 3 4 5 6; do {ask}; echo; done
"
        )
    }
}

fn page_note() -> &'static str {
    if assets::is_built() { "" } else { "  (not in this build: open it for instructions)" }
}

/// Address that this machine reaches itself under: "any" is not connectable.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
