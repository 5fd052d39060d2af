//! A server, over the network.

use std::path::Path;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, HeaderValue};
use axum::http::{Request, Response};
use ureq::Agent;
use ureq::unversioned::resolver::DefaultResolver;

use super::address::Address;
use super::proxy::NamedProxy;
use super::unix_socket::UnixConnector;
use super::{connect_error, proxy, tls};
use crate::cli::failure::{CliResult, Failure};
use crate::cli::{files, options};
use crate::config::Secret;

/// Default URL of the server.
const SERVER_DEFAULT: &str = "http://127.0.0.1:8080";
/// Longest wait for a connection, with TLS and a proxy.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a whole answer. The server may wait for its database in turn.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer. A thousand violations have a megabyte at most, and ten thousand rules ten.
pub(super) const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Longest token, with a line end.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Blocking HTTP client of one server.
#[derive(Debug)]
pub(in crate::cli) struct Remote {
    agent: Agent,
    address: Address,
    proxy: Option<NamedProxy>,
    token: Option<Secret>,
}

impl Remote {
    /// The server that the options or the environment name.
    pub(super) fn new(options: &options::Server) -> CliResult<Self> {
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
        let agent = match &address.socket {
            None => config.build().new_agent(),
            Some(path) => Agent::with_parts(
                config.build(),
                UnixConnector(path.clone()),
                DefaultResolver::default(),
            ),
        };
        Ok(Self { agent, address, proxy, token })
    }

    /// Base URL of all calls.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns `true` if calls are sent with a token.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Sends a request and reads the whole answer.
    pub(super) fn exchange(&self, mut request: Request<Vec<u8>>) -> CliResult<Response<Vec<u8>>> {
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let Ok(mut value) = value else {
                return Err(Failure::usage("the token contains invalid characters"));
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
                (format!(" through the proxy {}:{}", proxy.host(), proxy.port()), Some(hint))
            }
        };
        let usual = "Is `sluicegate serve` running there? --server URL or SLUICEGATE_SERVER says where it is.";
        let hint = hint.or(proxy_hint.as_deref()).unwrap_or(usual);
        Failure::unavailable(format!("cannot reach {}{by}: {reason}\n  {hint}", self.address))
    }
}

/// The token to send, from a file or the environment.
fn token(file: Option<&Path>) -> CliResult<Option<Secret>> {
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
    let text = files::read(&path, TOKEN_BYTES_MAX)?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.is_empty() {
        return Err(Failure::usage(format!("{}: is empty, but must hold a token", path.display())));
    }
    Ok(Some(Secret::new(token)))
}
