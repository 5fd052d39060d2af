//! What is known about the request that a proxy asks about.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use sluicegate::Request;

use crate::app::App;
use crate::normalize::{endpoint, text};

/// The headers that name the request, of which proxies send one or the other.
const URIS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-uri"), HeaderName::from_static("x-original-uri")];
const METHODS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
const HOSTS: [HeaderName; 1] = [HeaderName::from_static("x-forwarded-host")];

/// The attributes of a request, each in its one spelling and no longer than a value may be.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    ip: String,
    endpoint: Option<String>,
    method: String,
    host: Option<String>,
    user_id: Option<String>,
    plan: Option<String>,
    others: Vec<(&'a str, String)>,
}

/// A header says two things, or two headers that should say the same do not: a client has sent one of them, and
/// its proxy the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contradiction(pub(crate) HeaderName);

impl<'a> Asked<'a> {
    /// Reads it off the headers, as far as this peer is believed.
    ///
    /// The headers of proxies are read if it is a trusted one. Those that the settings name are read from anybody: who
    /// can ask here can name any user to `/v1/check` as well.
    pub(crate) fn read(app: &'a App, parts: &Parts, peer: IpAddr) -> Result<Self, Contradiction> {
        let reader = Reader { headers: &parts.headers, bytes_max: app.limits.value_bytes_max };
        let (client_ip, names) = (&app.client_ip, &app.authorize);
        let others = names.attribute_headers.iter().filter_map(|(attribute, header)| {
            let text = reader.text(header).transpose()?;
            Some(text.map(|text| (attribute.as_str(), text)))
        });
        let mut asked = Self {
            ip: client_ip.group(client_ip.of(&parts.headers, peer)).to_string(),
            endpoint: None,
            method: reader.cut(parts.method.as_str()),
            host: None,
            user_id: reader.configured(names.user_header.as_ref())?,
            plan: reader.configured(names.plan_header.as_ref())?,
            others: others.collect::<Result<_, _>>()?,
        };
        if client_ip.is_trusted(peer) {
            asked.endpoint = reader.one_of(&URIS, |uri| endpoint(uri, reader.bytes_max))?;
            asked.host = reader.one_of(&HOSTS, |host| reader.cut(&host_name(host)))?;
            let method = reader.one_of(&METHODS, |method| reader.cut(&method_name(method)))?;
            asked.method = method.unwrap_or(asked.method);
        }
        Ok(asked)
    }

    /// The request to be checked.
    pub(crate) fn request(&self) -> Request<'_> {
        let mut request = Request::new().ip(&self.ip).method(&self.method);
        if let Some(endpoint) = &self.endpoint {
            request = request.endpoint(endpoint);
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
        request
    }
}

/// Reads headers.
struct Reader<'a> {
    headers: &'a HeaderMap,
    bytes_max: usize,
}

impl Reader<'_> {
    /// What one of these headers says, in the one spelling that `write` gives it; nothing if that is empty.
    fn one_of(
        &self,
        names: &[HeaderName],
        write: impl Fn(&[u8]) -> String,
    ) -> Result<Option<String>, Contradiction> {
        let mut found: Option<String> = None;
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
        Ok(found.filter(|found| !found.is_empty()))
    }

    fn text(&self, name: &HeaderName) -> Result<Option<String>, Contradiction> {
        self.one_of(std::slice::from_ref(name), |value| self.cut(&text(value)))
    }

    /// The value of a header that the settings name, if they do.
    fn configured(&self, name: Option<&HeaderName>) -> Result<Option<String>, Contradiction> {
        name.map_or(Ok(None), |name| self.text(name))
    }

    /// As much of a value as a value may have. Whoever sends more is still somebody: without the value, no rule
    /// that asks for it would apply.
    fn cut(&self, value: &str) -> String {
        value[..value.floor_char_boundary(self.bytes_max)].to_owned()
    }
}

/// A method as everybody writes it.
fn method_name(value: &[u8]) -> String {
    match Method::from_bytes(&value.to_ascii_uppercase()) {
        Ok(method) => method.as_str().to_owned(),
        Err(_) => text(value).into_owned(),
    }
}

/// The name in a host, or the last of several, which the nearest proxy has written: small letters, without port.
fn host_name(value: &[u8]) -> String {
    let value = text(value).to_ascii_lowercase();
    let host = value.rsplit(',').next().unwrap_or_default().trim();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        // Of an IPv6 address only what follows its bracket.
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
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
    fn values_are_policies() {
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

    #[test]
    fn hosts_are_names() {
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
    fn methods_are_capitals() {
        assert_eq!(method_name(b"post"), "POST");
        assert_eq!(method_name(b"Purge"), "PURGE");
        assert_eq!(method_name(b"no method"), "no method");
    }
}
