//! Client of the administration.

mod address;
mod call;
mod connect_error;
mod proxy;
mod tls;

use std::path::Path;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, ETAG, HeaderValue};
use axum::http::{Request, Response, StatusCode};
use serde_json::Value;
use ureq::Agent;

use self::address::Address;
pub(super) use self::call::{Call, segment};
use self::proxy::NamedProxy;
use super::failure::{Failure, Outcome};
use super::options;
use crate::config::Secret;

/// Server that is asked if none is named.
const SERVER_DEFAULT: &str = "http://127.0.0.1:8080";
/// Longest wait for a connection, with TLS and a proxy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a whole answer. The server may wait for its database in turn.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer. A thousand violations have a megabyte at most, and ten thousand rules ten.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Longest token, with a line end.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Blocking HTTP client of one server.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    address: Address,
    proxy: Option<NamedProxy>,
    token: Option<Secret>,
}

/// Successful answer to a [`Call`].
#[derive(Debug)]
pub(super) struct Answer {
    body: Vec<u8>,
    /// Version of the resource, if it has one.
    pub(super) version: Option<u64>,
}

impl Client {
    /// A client of the server that the options or the environment name.
    pub(super) fn new(options: &options::Server) -> Outcome<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let url = options.server.clone().or_else(|| variable("SLUICEGATE_SERVER"));
        let address = Address::parse(url.as_deref().unwrap_or(SERVER_DEFAULT))?;
        let proxy = proxy::proxy(&address, variable)?;
        let mut config = Agent::config_builder()
            .proxy(proxy.as_ref().map(|named| named.proxy.clone()))
            .user_agent(concat!("sluicegate/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            // A token is for this server only.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false);
        if address.is_https {
            config = config.tls_config(tls::config(options)?);
        }
        let token = token(options.token_file.as_deref())?;
        Ok(Self { agent: config.build().new_agent(), address, proxy, token })
    }

    /// Sends a call, and returns the answer if its status is one of success.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, has a problem, or refuses; then with its own message.
    pub(super) fn send(&self, call: &Call) -> Outcome<Answer> {
        let response = self.exchange(call.request(&self.address)?)?;
        if !response.status().is_success() {
            return Err(self.refused(response.status(), response.body()));
        }
        let version = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
        let version = version.and_then(|etag| etag.trim_matches('"').parse().ok());
        Ok(Answer { body: response.into_body(), version })
    }

    /// Sends a call, and returns the JSON of the answer.
    pub(super) fn json(&self, call: &Call) -> Outcome<Value> {
        self.send(call)?.json()
    }

    fn exchange(&self, mut request: Request<Vec<u8>>) -> Outcome<Response<Vec<u8>>> {
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let Ok(mut value) = value else {
                return Err(Failure::usage("the token contains characters that no token has"));
            };
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let failed = |error: ureq::Error| self.cannot_reach(&error);
        let response = if request.body().is_empty() {
            self.agent.run(request.map(drop))
        } else {
            self.agent.run(request)
        };
        let (parts, mut body) = response.map_err(failed)?.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(failed)?;
        Ok(Response::from_parts(parts, body))
    }

    fn cannot_reach(&self, error: &ureq::Error) -> Failure {
        let (reason, hint) = connect_error::explain(error, self.address.is_https);
        let (by, proxy_hint) = match &self.proxy {
            None => (String::new(), None),
            Some(NamedProxy { proxy, variable }) => {
                let hint =
                    format!("{variable} names the proxy; list the host in NO_PROXY to bypass it.");
                (format!(" by the proxy {}:{}", proxy.host(), proxy.port()), Some(hint))
            }
        };
        let usual = "Is `sluicegate serve` running there? --server URL or SLUICEGATE_SERVER says where it is.";
        let hint = hint.or(proxy_hint.as_deref()).unwrap_or(usual);
        Failure::unavailable(format!("cannot reach {}{by}: {reason}\n  {hint}", self.address))
    }

    /// The server's own message, where it did not do what it was asked to.
    fn refused(&self, status: StatusCode, body: &[u8]) -> Failure {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let detail = match problem["detail"].as_str() {
            Some(detail) => detail.to_owned(),
            None => format!("{} answers {status}: is it a Sluicegate server?", self.address),
        };
        let field = problem["field"].as_str().filter(|field| !detail.starts_with(field));
        let field = field.map(|field| format!(" (field {field})")).unwrap_or_default();
        let hint = match status {
            StatusCode::UNAUTHORIZED if self.token.is_none() => {
                "\n  Set SLUICEGATE_TOKEN, or name a file that holds the token: --token-file FILE."
            }
            StatusCode::PRECONDITION_FAILED => "\n  See what it is now, and try again.",
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

impl Answer {
    /// The body as JSON; `null` if it is empty.
    pub(super) fn json(&self) -> Outcome<Value> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let parsed = serde_json::from_slice(&self.body);
        parsed
            .map_err(|_| Failure::unavailable("the answer is not JSON: is it a Sluicegate server?"))
    }
}

/// The token to send, from a file or the environment.
fn token(file: Option<&Path>) -> Outcome<Option<Secret>> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = match (file, variable("SLUICEGATE_TOKEN"), variable("SLUICEGATE_TOKEN_FILE")) {
        (Some(path), ..) => path.to_owned(),
        (None, Some(_), Some(_)) => {
            let message =
                "SLUICEGATE_TOKEN and SLUICEGATE_TOKEN_FILE are both set: unset one of them";
            return Err(Failure::usage(message));
        }
        (None, Some(token), None) => {
            let token = token.into_string();
            let token = token.map_err(|_| Failure::usage("SLUICEGATE_TOKEN: is not UTF-8"))?;
            return Ok(Some(Secret::new(token)));
        }
        (None, None, Some(path)) => path.into(),
        (None, None, None) => return Ok(None),
    };
    let text = super::files::read(&path, TOKEN_BYTES_MAX)?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.is_empty() {
        return Err(Failure::usage(format!("{}: is empty, but must hold a token", path.display())));
    }
    Ok(Some(Secret::new(token)))
}
