//! Attributes and cost of an HTTP request, extracted from its head.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use smallvec::SmallVec;

use super::extract;
use super::policy::{OnMissing, OnOversized};
use crate::client_ip::ClientIp;
use crate::request::Request;

/// Longest value of an attribute, in bytes; longer ones are subject to [`OnOversized`].
pub const VALUE_BYTES_MAX: usize = 4096;

/// Value that stands for all oversized ones under [`OnOversized::Share`].
const OVERSIZED: &str = "(oversized)";

/// Value of `ip` where the peer's address is not known.
const IP_UNKNOWN: &str = "unknown";

/// Longest text of an address: IPv6 with an embedded IPv4 address.
const IP_BYTES_MAX: usize = 45;

type Extractor = Arc<dyn for<'a> Fn(&'a Parts) -> Option<Cow<'a, str>> + Send + Sync>;
type Cost = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type PeerIp = Arc<dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync>;

/// Extractors of the attributes and the cost of requests.
#[derive(Clone)]
pub(super) struct Attributes {
    named: Vec<(Box<str>, Extractor)>,
    on_missing: Vec<(Box<str>, OnMissing)>,
    pub(super) on_oversized: OnOversized,
    pub(super) cost: Option<Cost>,
    /// Source of `ip`; `None` for outgoing requests, which have none.
    pub(super) client: Option<Client>,
}

/// Source of the client's address.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) ip: ClientIp,
    pub(super) peer: PeerIp,
}

/// Reason to reject a request before any rule is applied: the attribute's name and the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfit<'a> {
    Missing(&'a str, StatusCode),
    Oversized(&'a str, StatusCode),
}

/// The attributes of one request.
pub(super) struct Gathered<'a> {
    method: &'a str,
    ip: Option<IpText>,
    others: SmallVec<[(&'a str, Cow<'a, str>); 6]>,
    cost: u64,
}

impl Attributes {
    /// Defaults for requests to a server.
    pub(super) fn incoming() -> Self {
        let client = Client { ip: ClientIp::default(), peer: Arc::new(extract::peer) };
        let mut attributes = Self::new(Some(client), OnOversized::default());
        attributes.set("endpoint", Arc::new(extract::endpoint));
        // A server that does not provide its peers' addresses limits them all together instead of not at all.
        attributes.set_on_missing("ip", OnMissing::StandIn(IP_UNKNOWN.into()));
        attributes
    }

    /// Defaults for a client's requests.
    pub(super) fn outgoing() -> Self {
        let mut attributes = Self::new(None, OnOversized::Share);
        attributes.set("endpoint", Arc::new(extract::path));
        attributes.set("host", Arc::new(extract::host));
        attributes
    }

    fn new(client: Option<Client>, on_oversized: OnOversized) -> Self {
        Self { named: Vec::new(), on_missing: Vec::new(), on_oversized, cost: None, client }
    }

    /// Sets the extractor of an attribute, replacing an earlier one.
    pub(super) fn set(&mut self, name: &str, extract: Extractor) {
        self.named.retain(|(other, _)| **other != *name);
        self.named.push((name.into(), extract));
    }

    pub(super) fn set_on_missing(&mut self, name: &str, on_missing: OnMissing) {
        self.on_missing.retain(|(other, _)| **other != *name);
        self.on_missing.push((name.into(), on_missing));
    }

    /// Extracts the attributes of a request. An empty value counts as missing.
    ///
    /// # Errors
    ///
    /// An attribute is missing or too long, and its policy is to refuse the request.
    pub(super) fn gather<'a>(&'a self, parts: &'a Parts) -> Result<Gathered<'a>, Unfit<'a>> {
        let mut others = SmallVec::new();
        for (name, extract) in &self.named {
            let Some(value) = extract(parts).filter(|value| !value.is_empty()) else { continue };
            others.push((&**name, self.bounded(name, value)?));
        }
        let is_given =
            |others: &[(&str, Cow<'_, str>)], name| others.iter().any(|(n, _)| *n == name);
        let client = self.client.as_ref().filter(|_| !is_given(&others, "ip"));
        let ip = client.and_then(|client| client.ip_text(parts));
        for (name, on_missing) in &self.on_missing {
            let is_there = match &**name {
                "method" => true,
                "ip" if ip.is_some() => true,
                name => is_given(&others, name),
            };
            if is_there {
                continue;
            }
            match on_missing {
                OnMissing::Skip => {}
                OnMissing::StandIn(value) => others.push((&**name, Cow::Borrowed(&**value))),
                OnMissing::Refuse(status) => return Err(Unfit::Missing(name, *status)),
            }
        }
        let cost = self.cost.as_ref().map_or(1, |cost| cost(parts));
        Ok(Gathered { method: parts.method.as_str(), ip, others, cost })
    }

    fn bounded<'a>(&self, name: &'a str, value: Cow<'a, str>) -> Result<Cow<'a, str>, Unfit<'a>> {
        match self.on_oversized {
            _ if value.len() <= VALUE_BYTES_MAX => Ok(value),
            OnOversized::Share => Ok(OVERSIZED.into()),
            OnOversized::Refuse(status) => Err(Unfit::Oversized(name, status)),
        }
    }
}

impl Client {
    fn ip_text(&self, parts: &Parts) -> Option<IpText> {
        let peer = (self.peer)(parts)?;
        IpText::new(self.ip.group(self.ip.of(&parts.headers, peer)))
    }
}

impl Gathered<'_> {
    /// The request to check against the rules.
    pub(super) fn request(&self) -> Request<'_> {
        let mut request = Request::new().method(self.method).cost(self.cost);
        if let Some(ip) = &self.ip {
            request = request.ip(ip.as_str());
        }
        self.others.iter().fold(request, |request, (name, value)| request.attribute(name, value))
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attributes")
            .field("names", &self.named.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("on_missing", &self.on_missing)
            .field("on_oversized", &self.on_oversized)
            .field("client_ip", &self.client.as_ref().map(|client| &client.ip))
            .finish_non_exhaustive()
    }
}

/// The text of an address, without allocating.
struct IpText {
    bytes: [u8; IP_BYTES_MAX],
    length: usize,
}

impl IpText {
    fn new(ip: IpAddr) -> Option<Self> {
        let mut text = Self { bytes: [0; IP_BYTES_MAX], length: 0 };
        write!(text, "{ip}").ok()?;
        Some(text)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for IpText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
