//! Client of the administration: over the network, or in this process on a database.

mod address;
mod call;
mod connect_error;
mod in_process;
mod list;
mod proxy;
mod remote;
mod tls;
mod unix_socket;

use axum::http::header::ETAG;
use axum::http::{Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) use self::call::{Call, segment};
pub(super) use self::in_process::InProcess;
pub(super) use self::remote::Remote;
use super::database::Needs;
use super::failure::{CliResult, Failure};
use super::options;
use crate::doors::http::NO_SUCH_PATH;
use crate::web::problem::Cause;

/// Sends calls to the administration and blocks until they are answered.
#[derive(Debug)]
pub(super) enum Client {
    /// A running server.
    Server(Box<Remote>),
    /// The administration of a database, run in this process.
    InProcess(Box<InProcess>),
}

/// Successful reply to a [`Call`].
#[derive(Debug)]
pub(super) struct Reply {
    body: Vec<u8>,
    /// Version of the resource, if it has one.
    pub(super) version: Option<u64>,
}

impl Client {
    /// A client of the server that the options or the environment name.
    pub(super) fn of_server(options: &options::Server) -> CliResult<Self> {
        Ok(Self::Server(Box::new(Remote::new(options)?)))
    }

    /// The database if one is named, or a file of settings that names one; else the server.
    pub(super) fn open(
        server: &options::Server,
        direct: &options::Direct,
        needs: Needs,
    ) -> CliResult<Self> {
        let is_direct = direct.database.is_some() || direct.config.is_some();
        if !is_direct {
            return Self::of_server(server);
        }
        if server.server.is_some() {
            let message = "--server cannot be combined with --database or --config";
            return Err(Failure::usage(message));
        }
        Ok(Self::InProcess(Box::new(InProcess::open(direct, needs)?)))
    }

    /// Sends a call, and returns the answer if its status is one of success.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, has a problem, or refuses; then with its own message.
    pub(super) fn send(&self, call: &Call) -> CliResult<Reply> {
        let response = match self {
            Self::Server(server) => server.exchange(call.request(server.address().url())?)?,
            Self::InProcess(administration) => administration.exchange(call.request("")?)?,
        };
        if !response.status().is_success() {
            return Err(self.refused(&response));
        }
        let version = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
        let version = version.and_then(|etag| etag.trim_matches('"').parse().ok());
        Ok(Reply { body: response.into_body(), version })
    }

    /// Sends a call, and returns the JSON of the answer.
    pub(super) fn json(&self, call: &Call) -> CliResult<Value> {
        self.send(call)?.json()
    }

    /// The message of an answer that is not one of success.
    fn refused(&self, response: &Response<Vec<u8>>) -> Failure {
        let status = response.status();
        let problem: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let detail = match (problem["detail"].as_str(), self) {
            (Some(detail), _) => match response.extensions().get() {
                Some(Cause(cause)) => format!("{detail}\n  Cause: {cause}"),
                None => detail.to_owned(),
            },
            (None, Self::Server(server)) => {
                format!("{} answers {status}: is it a Sluicegate server?", server.address())
            }
            (None, Self::InProcess(_)) => format!("internal error: {status}"),
        };
        let field = problem["field"].as_str().filter(|field| !detail.starts_with(field));
        let field = field.map(|field| format!(" (field {field})")).unwrap_or_default();
        let hint = match (status, self) {
            (StatusCode::UNAUTHORIZED, Self::Server(server)) if !server.has_token() => {
                "\n  Set SLUICEGATE_TOKEN, or name a file that holds the token: --token-file FILE."
            }
            (StatusCode::NOT_FOUND, Self::Server(_)) if detail.starts_with(NO_SUCH_PATH) => {
                "\n  If listen.admin is set, the administration is on that listener alone: name its address with --server."
            }
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

impl Reply {
    /// The body as JSON; `null` if it is empty.
    pub(super) fn json(&self) -> CliResult<Value> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let parsed = serde_json::from_slice(&self.body);
        parsed
            .map_err(|_| Failure::unavailable("the answer is not JSON: is it a Sluicegate server?"))
    }
}

/// Parses an answer, or a part of one.
pub(super) fn parse<T: DeserializeOwned>(answer: Value) -> CliResult<T> {
    let unlike = |error| {
        Failure::unavailable(format!(
            "unexpected answer: the server may have another version: {error}"
        ))
    };
    serde_json::from_value(answer).map_err(unlike)
}
