//! Where rules and violations are asked for and changed: at a server, or in the database itself. Both answer
//! alike, as the API does.

pub(super) mod rules;
pub(super) mod violations;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::{Call, Client};
use super::direct::Target;
use super::failure::{Failure, Outcome};
use super::options;
use crate::data::Database;

/// The most rows that are asked for at once.
const PAGE: usize = 1000;

/// One of the two.
#[derive(Debug)]
pub(super) enum Backend {
    /// A running server.
    Server(Client),
    /// The database, without one; and the file of settings that say how it is used, if one is named.
    Database { database: Box<Database>, config: Option<PathBuf> },
}

impl Backend {
    /// The database if one is named, or settings that name one; else the server.
    pub(super) async fn open(server: &options::Server, direct: &options::Direct) -> Outcome<Self> {
        let is_direct = direct.database.is_some() || direct.config.is_some();
        if is_direct && server.server.is_some() {
            let message =
                "the server or the database? --server goes without --database and --config";
            return Err(Failure::usage(message));
        }
        if is_direct {
            let database = Box::new(Target::new(direct)?.open_ready().await?);
            return Ok(Self::Database { database, config: direct.config.clone() });
        }
        Ok(Self::Server(Client::new(server)?))
    }
}

/// A list from a server, page by page: up to `limit` members of `name`, and the cursor behind them.
pub(super) async fn pages<T: DeserializeOwned>(
    client: &Client,
    name: &str,
    call: impl Fn() -> Call,
    after: Option<String>,
    limit: usize,
) -> Outcome<(Vec<T>, Option<String>)> {
    let (members, last) = walk(client, name, call, after, limit).await?;
    Ok((members, last["next"].as_str().map(str::to_owned)))
}

/// The same with the last answer, its members taken out, instead of the cursor.
async fn walk<T: DeserializeOwned>(
    client: &Client,
    name: &str,
    call: impl Fn() -> Call,
    after: Option<String>,
    limit: usize,
) -> Outcome<(Vec<T>, Value)> {
    let (mut members, mut next) = (Vec::new(), after);
    loop {
        let page = PAGE.min(limit - members.len());
        let call = call().with("limit", page.to_string()).maybe("after", next.as_deref());
        let mut answer = client.json(&call)?;
        let found: Vec<T> = read(answer[name].take())?;
        let is_empty = found.is_empty();
        members.extend(found);
        next = answer["next"].as_str().map(str::to_owned);
        // A server that keeps saying that there is more must not keep us for ever.
        if next.is_none() || is_empty || members.len() >= limit {
            return Ok((members, answer));
        }
    }
}

/// What a server answers, as this version knows it.
pub(super) fn read<T: DeserializeOwned>(answer: Value) -> Outcome<T> {
    let unlike =
        |error| Failure::unavailable(format!("the answer is not what was asked for: {error}"));
    serde_json::from_value(answer).map_err(unlike)
}

fn no_cursor() -> Failure {
    Failure::usage("--after: is no cursor; `next` of an earlier list is one")
}
