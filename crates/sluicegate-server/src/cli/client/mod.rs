//! A small HTTP client: one request per connection, bounded in time and size.

mod address;
mod tls;
mod trouble;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderValue, IF_MATCH, USER_AGENT,
};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use self::address::Address;
use super::failure::{Failure, Outcome};
use super::options;
use crate::config::{Secret, reason};

/// Where a server is that nobody has said anything about.
const SERVER_DEFAULT: &str = "http://127.0.0.1:8080";
/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for a whole answer: of a server that waits for its database in turn.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer: a thousand violations have a megabyte at most, and ten thousand rules ten.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// The longest token, with a line end.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Talks to one server.
#[derive(Debug)]
pub(super) struct Client {
    address: Address,
    token: Option<Secret>,
    tls: Option<Arc<ClientConfig>>,
}

/// A question to a server.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    if_match: Option<u64>,
    body: Option<Value>,
}

/// What it answered, if it did what it was asked to.
#[derive(Debug)]
pub(super) struct Answer {
    /// The body as it came.
    pub(super) body: Bytes,
    /// The version of what was asked for, if it has one.
    pub(super) version: Option<u64>,
}

impl Client {
    /// A client of the server that the options or the environment name.
    pub(super) fn new(options: &options::Server) -> Outcome<Self> {
        let from_environment = || std::env::var("SLUICEGATE_SERVER").ok();
        let url = options.server.clone().or_else(from_environment);
        let address = Address::parse(url.as_deref().unwrap_or(SERVER_DEFAULT))?;
        let tls = address.is_https.then(|| tls::config(options)).transpose()?;
        Ok(Self { address, token: token(options.token_file.as_deref())?, tls })
    }

    /// Asks, and returns the answer if it is one of success.
    ///
    /// # Errors
    ///
    /// That the server cannot be reached, is in trouble, or refuses, in its own words.
    pub(super) async fn send(&self, call: Call) -> Outcome<Answer> {
        let request = self.request(call)?;
        match timeout(ANSWER_TIMEOUT, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                let seconds = ANSWER_TIMEOUT.as_secs();
                Err(self.unreachable(&format!("no answer within {seconds} s")))
            }
        }
    }

    /// Asks, and returns the JSON of the answer.
    pub(super) async fn json(&self, call: Call) -> Outcome<Value> {
        self.send(call).await?.json()
    }

    fn request(&self, call: Call) -> Outcome<Request<Full<Bytes>>> {
        let Call { method, path, query, if_match, body } = call;
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let target = format!("{}{path}{mark}{query}", self.address.prefix);
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, &self.address.authority)
            .header(ACCEPT, "application/json, application/problem+json")
            .header(USER_AGENT, concat!("sluicegate/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let Ok(mut value) = value else {
                return Err(Failure::usage("the token has characters that no token has"));
            };
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(version) = if_match {
            request = request.header(IF_MATCH, format!("\"{version}\""));
        }
        let body = match body {
            None => Bytes::new(),
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                body.to_string().into()
            }
        };
        request.body(Full::new(body)).map_err(|error| Failure::usage(error.to_string()))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Outcome<Answer> {
        let target = (self.address.host.as_str(), self.address.port);
        let stream = match timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.unreachable(&reason(&error))),
            Err(_) => {
                let seconds = CONNECT_TIMEOUT.as_secs();
                return Err(self.unreachable(&format!("no connection within {seconds} s")));
            }
        };
        match &self.tls {
            None => self.talk(stream, request).await,
            Some(tls) => {
                let name = self.address.server_name()?;
                let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
                let stream = stream.map_err(|error| self.broken(&error, &reason(&error)))?;
                self.talk(stream, request).await
            }
        }
    }

    async fn talk<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Outcome<Answer>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error: hyper::Error| self.broken(&error, &error.to_string());
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // It ends with the answer, or with the process.
        tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.map_err(broken)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = match body {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let message = format!("the answer has more than {ANSWER_BYTES_MAX} bytes");
                return Err(self.unreachable(&message));
            }
            Err(error) => return Err(self.unreachable(&error.to_string())),
        };
        if !status.is_success() {
            return Err(self.refused(status, &body));
        }
        let version = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        let version = version.and_then(|etag| etag.trim_matches('"').parse().ok());
        Ok(Answer { body, version })
    }

    /// A connection that came to nothing: in plain words, if there are some.
    fn broken(&self, error: &(dyn Error + 'static), reason: &str) -> Failure {
        match trouble::plain(error, self.address.is_https) {
            Some((reason, hint)) => self.cannot_reach(reason, hint),
            None => self.unreachable(reason),
        }
    }

    fn unreachable(&self, reason: &str) -> Failure {
        let hint = "Is `sluicegate serve` running there? --server URL or SLUICEGATE_SERVER says where it is.";
        self.cannot_reach(reason, hint)
    }

    fn cannot_reach(&self, reason: &str, hint: &str) -> Failure {
        Failure::unavailable(format!("cannot reach {}: {reason}\n  {hint}", self.address))
    }

    /// What a server says that did not do what it was asked to.
    fn refused(&self, status: StatusCode, body: &[u8]) -> Failure {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let detail = match problem["detail"].as_str() {
            Some(detail) => detail.to_owned(),
            None => format!("{} answers {status}: is it a Sluicegate?", self.address),
        };
        let field = problem["field"].as_str().filter(|field| !detail.starts_with(field));
        let field = field.map(|field| format!(" (field {field})")).unwrap_or_default();
        let hint = match status {
            StatusCode::UNAUTHORIZED if self.token.is_none() => {
                "\n  Set SLUICEGATE_TOKEN, or name a file with the token: --token-file FILE."
            }
            StatusCode::PRECONDITION_FAILED => "\n  Look at what it is now, and try again.",
            _ => "",
        };
        let message = format!("{detail}{field}{hint}");
        if status.is_server_error() {
            Failure::unavailable(message)
        } else {
            Failure::usage(message)
        }
    }
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: Vec::new(), if_match: None, body: None }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(super) fn put(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, path) }
    }

    pub(super) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With this parameter.
    pub(super) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.query.push((name.into(), value.as_ref().into()));
        self
    }

    /// With this parameter, if there is one.
    pub(super) fn maybe(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Only if it is still this version.
    pub(super) fn if_match(self, version: Option<u64>) -> Self {
        Self { if_match: version, ..self }
    }

    /// Only to see what would happen, if so.
    pub(super) fn dry_run(self, dry_run: bool) -> Self {
        if dry_run { self.with("dry_run", "true") } else { self }
    }
}

impl Answer {
    /// The body, which is nothing where the answer has none.
    pub(super) fn json(&self) -> Outcome<Value> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let parsed = serde_json::from_slice(&self.body);
        parsed.map_err(|_| Failure::unavailable("the answer is no JSON: is it a Sluicegate?"))
    }
}

/// A part of a path, with everything that means something in one escaped.
pub(super) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The token to show, from a file or the environment.
fn token(file: Option<&Path>) -> Outcome<Option<Secret>> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = match (file, variable("SLUICEGATE_TOKEN"), variable("SLUICEGATE_TOKEN_FILE")) {
        (Some(path), ..) => path.to_owned(),
        (None, Some(_), Some(_)) => {
            let message =
                "SLUICEGATE_TOKEN and SLUICEGATE_TOKEN_FILE are both set: which of them is it?";
            return Err(Failure::usage(message));
        }
        (None, Some(token), None) => {
            let token = token.into_string();
            let token = token.map_err(|_| Failure::usage("SLUICEGATE_TOKEN: is no UTF-8"))?;
            return Ok(Some(Secret::new(token)));
        }
        (None, None, Some(path)) => path.into(),
        (None, None, None) => return Ok(None),
    };
    let text = super::files::read(&path, TOKEN_BYTES_MAX)?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.is_empty() {
        return Err(Failure::usage(format!(
            "{} is empty: there is no token in it",
            path.display()
        )));
    }
    Ok(Some(Secret::new(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_nothing_in_it_that_divides_paths() {
        assert_eq!(segment("user-1_~"), "user-1_~");
        assert_eq!(segment("../a b?c#%é"), "%2E%2E%2Fa%20b%3Fc%23%25%C3%A9");
    }
}
