//! Lists that are answered in pages.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Call, Client, parse};
use crate::cli::failure::CliResult;

/// Page size of requests: the maximum of the administration.
const PAGE: usize = 1000;

impl Client {
    /// Reads a list page by page: up to `limit` members of `name`, and the cursor behind them.
    pub(in crate::cli) fn pages<T: DeserializeOwned>(
        &self,
        name: &str,
        call: &Call,
        after: Option<&str>,
        limit: usize,
    ) -> CliResult<(Vec<T>, Option<String>)> {
        let (members, last) = self.walk(name, call, after, limit)?;
        Ok((members, last["next"].as_str().map(str::to_owned)))
    }

    /// Like [`pages`](Self::pages), with the last answer instead of the cursor. Its members are taken out.
    pub(in crate::cli) fn walk<T: DeserializeOwned>(
        &self,
        name: &str,
        call: &Call,
        after: Option<&str>,
        limit: usize,
    ) -> CliResult<(Vec<T>, Value)> {
        let (mut members, mut next) = (Vec::new(), after.map(str::to_owned));
        loop {
            let page = PAGE.min(limit - members.len());
            let call = call.clone().with("limit", page.to_string());
            let mut answer = self.json(&call.maybe("after", next.as_deref()))?;
            let found: Vec<T> = parse(answer[name].take())?;
            let is_empty = found.is_empty();
            members.extend(found);
            next = answer["next"].as_str().map(str::to_owned);
            // An empty page ends the list: a server that always names a next page would keep us for ever.
            if next.is_none() || is_empty || members.len() >= limit {
                return Ok((members, answer));
            }
        }
    }
}
