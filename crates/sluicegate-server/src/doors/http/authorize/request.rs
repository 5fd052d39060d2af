//! Reads the attributes of a proxied request from headers.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use sluicegate::Request;
use tracing::warn;

use crate::app::App;
use crate::log_limit::LogLimit;
use crate::normalize::{Endpoint, NAMESPACE, text};

/// Headers that describe the request. Proxies send one or the other.
const URIS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-uri"), HeaderName::from_static("x-original-uri")];
const METHODS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
const HOSTS: [HeaderName; 1] = [HeaderName::from_static("x-forwarded-host")];

/// Limit on lines about ignored headers.
static UNTRUSTED_LINES: LogLimit = LogLimit::new();

/// Attributes of a request, normalized and truncated to the maximum length.
#[derive(Debug, Default)]
pub(crate) struct ProxiedRequest<'a> {
    ip: String,
    endpoint: Option<Endpoint>,
    method: String,
    host: Option<String>,
    user_id: Option<String>,
    plan: Option<String>,
    others: Vec<(&'a str, String)>,
}

/// A header with two different values, or two headers that should agree and do not: one comes from
/// the client, the other from its proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contradiction(pub(crate) HeaderName);

impl<'a> ProxiedRequest<'a> {
    /// Reads the headers that this peer is trusted with.
    ///
    /// Headers of proxies are read from trusted peers only. So are headers named in the settings, as
    /// soon as the networks of proxies are known: any other peer is then a client of theirs, which
    /// must not choose its own user or plan.
    pub(crate) fn read(app: &'a App, parts: &Parts, peer: IpAddr) -> Result<Self, Contradiction> {
        let reader = Reader { headers: &parts.headers, bytes_max: app.limits.value_bytes_max };
        let (client_ip, names) = (&app.client_ip, &app.authorize);
        let is_trusted = client_ip.is_trusted(peer);
        let mut proxied = match is_trusted {
            true => Self::described(reader.headers, reader.bytes_max)?,
            false => Self::default(),
        };
        proxied.ip = client_ip.group(client_ip.of(&parts.headers, peer)).to_string();
        if proxied.method.is_empty() {
            proxied.method = reader.cut(parts.method.as_str());
        }
        if is_trusted || !app.has_trusted_proxies {
            proxied.user_id = reader.configured(names.user_header.as_ref())?;
            proxied.plan = reader.configured(names.plan_header.as_ref())?;
            proxied.others = reader.attributes(&names.attribute_headers)?;
        } else if names.headers().any(|name| parts.headers.contains_key(name)) {
            app.metrics.untrusted();
            if let Some(suppressed) = app.guard.admit_line(peer, &UNTRUSTED_LINES) {
                warn!(%peer, suppressed, "headers of a peer outside proxies.trusted ignored");
            }
        }
        Ok(proxied)
    }

    /// Reads the headers by which a proxy describes the request; the method is empty if none names it.
    pub(crate) fn described(headers: &HeaderMap, bytes_max: usize) -> Result<Self, Contradiction> {
        let reader = Reader { headers, bytes_max };
        let method = reader.one_text(&METHODS, |method| reader.cut(&method_name(method)))?;
        Ok(Self {
            endpoint: reader.one_of(&URIS, |uri| Endpoint::of_uri(uri, bytes_max))?,
            host: reader.one_text(&HOSTS, |host| reader.cut(&host_name(host)))?,
            method: method.unwrap_or_default(),
            ..Self::default()
        })
    }

    /// The request to check, in the namespace of the caller.
    pub(crate) fn request<'b>(&'b self, namespace: Option<&'b str>) -> Request<'b> {
        let mut request = Request::new().ip(&self.ip).method(&self.method);
        if let Some(endpoint) = &self.endpoint {
            request = endpoint.add_to(request);
        }
        if let Some(user_id) = &self.user_id {
            request = request.user_id(user_id);
        }
        if let Some(plan) = &self.plan {
            request = request.plan(plan);
        }
        if let Some(host) = &self.host {
            request = request.attribute("host", host);
        }
        for (name, value) in &self.others {
            request = request.attribute(name, value);
        }
        if let Some(namespace) = namespace {
            request = request.attribute(NAMESPACE, namespace);
        }
        request
    }
}

/// Reads and truncates headers.
struct Reader<'a> {
    headers: &'a HeaderMap,
    bytes_max: usize,
}

impl Reader<'_> {
    /// Value of these headers, normalized by `write`; `None` if all are empty.
    fn one_of<T: PartialEq>(
        &self,
        names: &[HeaderName],
        write: impl Fn(&[u8]) -> T,
    ) -> Result<Option<T>, Contradiction> {
        let mut found: Option<T> = None;
        for name in names {
            for value in self.headers.get_all(name) {
                let value = value.as_bytes().trim_ascii();
                if value.is_empty() {
                    continue;
                }
                let written = write(value);
                match &found {
                    Some(found) if *found != written => return Err(Contradiction(name.clone())),
                    _ => found = Some(written),
                }
            }
        }
        Ok(found)
    }

    /// Value of these headers, normalized by `write`; `None` if it is then empty.
    fn one_text(
        &self,
        names: &[HeaderName],
        write: impl Fn(&[u8]) -> String,
    ) -> Result<Option<String>, Contradiction> {
        Ok(self.one_of(names, write)?.filter(|text| !text.is_empty()))
    }

    fn text(&self, name: &HeaderName) -> Result<Option<String>, Contradiction> {
        self.one_text(std::slice::from_ref(name), |value| self.cut(&text(value)))
    }

    /// Value of a header named in the settings; `None` if none is named.
    fn configured(&self, name: Option<&HeaderName>) -> Result<Option<String>, Contradiction> {
        name.map_or(Ok(None), |name| self.text(name))
    }

    /// Attributes with the values of the headers that the settings name for them.
    fn attributes<'n>(
        &self,
        names: &'n [(String, HeaderName)],
    ) -> Result<Vec<(&'n str, String)>, Contradiction> {
        let found = names.iter().filter_map(|(attribute, header)| {
            let text = self.text(header).transpose()?;
            Some(text.map(|text| (attribute.as_str(), text)))
        });
        found.collect()
    }

    /// Truncates a value to its maximum length. Not rejected: without the value, a rule that needs
    /// it would not apply.
    fn cut(&self, value: &str) -> String {
        value[..value.floor_char_boundary(self.bytes_max)].to_owned()
    }
}

/// Normalizes a method to upper case.
fn method_name(value: &[u8]) -> String {
    match Method::from_bytes(&value.to_ascii_uppercase()) {
        Ok(method) => method.as_str().to_owned(),
        Err(_) => text(value).into_owned(),
    }
}

/// Normalizes a host, or the last of several, which the nearest proxy wrote: lower case, without
/// port.
fn host_name(value: &[u8]) -> String {
    let value = text(value).to_ascii_lowercase();
    let host = value.rsplit(',').next().unwrap_or_default().trim();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        // For an IPv6 address, only a port after its bracket.
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use sluicegate::rules::Attribute;

    use super::*;

    fn read(
        headers: &[(&'static str, &[u8])],
        bytes_max: usize,
    ) -> Result<Option<String>, Contradiction> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), value.to_vec().try_into().unwrap())
            })
            .collect();
        let reader = Reader { headers: &headers, bytes_max };
        reader.text(&HeaderName::from_static("x-user"))
    }

    #[test]
    fn values_are_truncated_and_must_agree() {
        assert_eq!(read(&[], 8), Ok(None));
        assert_eq!(read(&[("x-user", b" ")], 8), Ok(None));
        assert_eq!(read(&[("x-user", b""), ("x-user", b" ann ")], 8), Ok(Some("ann".into())));
        assert_eq!(read(&[("x-user", b"ann"), ("x-user", b"ann")], 8), Ok(Some("ann".into())));
        let two = read(&[("x-user", b"ann"), ("x-user", b"bob")], 8);
        assert_eq!(two, Err(Contradiction(HeaderName::from_static("x-user"))));
        assert_eq!(read(&[("x-user", b"123456789")], 8), Ok(Some("12345678".into())));
        assert_eq!(read(&[("x-user", "1234567é".as_bytes())], 8), Ok(Some("1234567".into())));
        assert_eq!(read(&[("x-user", b"\xe9\xff")], 8), Ok(Some("éÿ".into())));
    }

    /// Headers that agree when normalized may be different paths when folded.
    #[test]
    fn uris_must_agree_folded_too_and_are_folded_complete() {
        let described = |uris: &[(&'static str, &str)]| {
            let headers = uris
                .iter()
                .map(|(name, uri)| (HeaderName::from_static(name), uri.parse().unwrap()));
            ProxiedRequest::described(&headers.collect(), 16)
        };
        let sent = ("x-forwarded-uri", "/login/x/y/..;/..");
        let proxied = described(&[sent]).unwrap();
        let request = proxied.request(None);
        assert_eq!(request.get(&Attribute::Endpoint), Some("/login/x/y/"));
        assert_eq!(request.folded_endpoint(), Some("/login"));
        assert!(described(&[sent, ("x-original-uri", sent.1)]).is_ok());
        assert!(described(&[sent, ("x-original-uri", "/login/x/y/")]).is_err());
    }

    #[test]
    fn hosts_are_lower_case_names_without_port() {
        let same =
            ["Example.COM", "example.com:8080", "example.com.", "evil.example, example.com:1"];
        for host in same {
            assert_eq!(host_name(host.as_bytes()), "example.com", "{host}");
        }
        assert_eq!(host_name(b"[2001:DB8::1]:80"), "[2001:db8::1]");
        assert_eq!(host_name(b"[2001:db8::1]"), "[2001:db8::1]");
        assert_eq!(host_name(b":80"), "");
    }

    #[test]
    fn methods_are_upper_case() {
        assert_eq!(method_name(b"post"), "POST");
        assert_eq!(method_name(b"Purge"), "PURGE");
        assert_eq!(method_name(b"no method"), "no method");
    }
}
