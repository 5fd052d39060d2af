//! Startup message on a terminal.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sluicegate::RuleSet;

use crate::config::{Door, StoreUrl};
use crate::doors::http::page::assets;
use crate::rules::source::RulesSource;

/// Contents of the startup message.
#[derive(Clone, Copy, Debug)]
pub struct Startup<'a> {
    /// Listeners and their addresses.
    pub listeners: &'a [(Door, SocketAddr)],
    /// The HTTP listener uses TLS.
    pub is_tls: bool,
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
        let scheme = if self.is_tls { "https" } else { "http" };
        let doors: Vec<_> =
            self.listeners.iter().map(|(door, at)| listener_address(*door, *at, scheme)).collect();
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
        let http = self.listeners.iter().find(|(door, _)| *door == Door::Http);
        if let Some((_, address)) = http {
            let url = format!("{scheme}://{}", reachable(*address));
            text.push_str(&try_it(&url, is_starter));
        }
        text.push_str("\nPress Ctrl-C to stop.\n");
        text
    }
}

/// Protocol and address of a listener.
fn listener_address(door: Door, address: SocketAddr, scheme: &str) -> String {
    let address = reachable(address);
    match door {
        Door::Http => format!("{scheme}://{address}"),
        Door::Grpc => format!("gRPC on {address}"),
        Door::Resp => format!("the Redis protocol on {address}"),
    }
}

/// Addresses to open, and two commands to try.
fn try_it(url: &str, is_starter: bool) -> String {
    let (path, body) = if is_starter { LOGIN } else { TAKE };
    let ask = format!("curl -s {url}{path} -H 'content-type: application/json' -d '{body}'");
    let page =
        if assets::is_built() { "" } else { "  (not in this build: open it for instructions)" };
    format!(
        "  page     {url}/{page}
  more     {url}/openapi.json  /readyz?verbose  /metrics

Try it. One request is allowed:

  {ask}

and of six more the last is denied, and says exactly how long to wait:

  for i in 1 2 3 4 5 6; do {ask}; echo; done
"
    )
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
