//! Violations, at a server or in the database.

use std::path::Path;

use super::{Backend, PAGE, no_cursor, pages, read};
use crate::admin::violations::{TopBy, TopOffenders, ViolationList, ViolationMode};
use crate::cli::client::Call;
use crate::cli::direct::settings;
use crate::cli::failure::{Failure, Outcome};
use crate::config::Privacy;
use crate::data::{Violation, ViolationFilter};
use crate::observe::audit::{self, Pseudonyms, record};

/// What is said where people are recorded under hashes that cannot be made here.
const NO_KEY: &str = "who was denied is recorded hashed, and audit.privacy_key is not here: nobody can be found\n  \
                      Name its file in SLUICEGATE_AUDIT_PRIVACY_KEY_FILE, or ask a server: --server URL.";

impl Backend {
    /// Violations that pass the filter, newest first, and the cursor behind them.
    pub(crate) async fn violations(
        &self,
        filter: &ViolationFilter,
        after: Option<String>,
        limit: usize,
    ) -> Outcome<ViolationList> {
        let (database, config) = match self {
            Self::Server(client) => {
                let call = || filtered(Call::get("/v1/violations"), filter);
                let (violations, next) = pages(client, "violations", call, after, limit).await?;
                return Ok(ViolationList { violations, next });
            }
            Self::Database { database, config } => (database, config),
        };
        let filter = on_record(filter, config.as_deref())?;
        let mut order = after.map(|after| after.parse().map_err(|_| no_cursor())).transpose()?;
        let mut found: Vec<Violation> = Vec::new();
        // One more than is wanted tells whether there are more.
        while found.len() <= limit {
            let page = PAGE.min(limit + 1 - found.len());
            let rows = database.violations(&filter, order, page).await?;
            let is_last = rows.len() < page;
            order = rows.last().map(Violation::order).or(order);
            found.extend(rows);
            if is_last {
                break;
            }
        }
        Ok(ViolationList::new(found, limit))
    }

    /// Who was denied most.
    pub(crate) async fn top_offenders(
        &self,
        filter: &ViolationFilter,
        by: TopBy,
        limit: usize,
    ) -> Outcome<TopOffenders> {
        match self {
            Self::Server(client) => {
                let call = filtered(Call::get("/v1/violations/top"), filter);
                let call = call.with("by", by.name()).with("limit", limit.to_string());
                read(client.json(&call)?)
            }
            Self::Database { database, .. } => {
                let top = database.top_offenders(filter, by.into(), limit).await?;
                Ok(TopOffenders::new(by, top))
            }
        }
    }

    /// Deletes violations that pass the filter, and says how many.
    pub(crate) async fn delete_violations(&self, filter: &ViolationFilter) -> Outcome<u64> {
        match self {
            Self::Server(client) => {
                let call = filtered(Call::delete("/v1/violations"), filter);
                Ok(client.json(&call)?["deleted"].as_u64().unwrap_or_default())
            }
            Self::Database { database, config } => {
                let filter = on_record(filter, config.as_deref())?;
                Ok(audit::delete(database, &filter).await?)
            }
        }
    }
}

/// What to look for in the database: what servers with these settings record of what is asked for.
fn on_record(asked: &ViolationFilter, config: Option<&Path>) -> Outcome<ViolationFilter> {
    let audit = settings(config)?.audit;
    let is_somebody = asked.user_id.is_some() || asked.ip_address.is_some();
    if is_somebody && audit.privacy == Privacy::Hashed && audit.privacy_key.is_none() {
        return Err(Failure::usage(NO_KEY));
    }
    let pseudonyms = Pseudonyms::new(&audit);
    let no_address = || Failure::usage("ip: is not an address");
    record::filter(&pseudonyms, asked.clone()).ok_or_else(no_address)
}

fn filtered(call: Call, filter: &ViolationFilter) -> Call {
    call.maybe("user_id", filter.user_id.as_ref())
        .maybe("ip", filter.ip_address.as_ref())
        .maybe("endpoint", filter.endpoint.as_ref())
        .maybe("bucket_key", filter.bucket_key.as_ref())
        .maybe("rule_id", filter.rule_id.map(|rule_id| rule_id.to_string()))
        .maybe("mode", filter.is_shadow.map(|is_shadow| ViolationMode::new(is_shadow).name()))
        .maybe("from", filter.from.map(|time| time.to_string()))
        .maybe("to", filter.to.map(|time| time.to_string()))
}
