//! Rules, at a server or in the database.

use serde_json::{Map, Value, json};
use sluicegate::rules::{FieldError, RULES_MAX, RuleSpec};
use sluicegate::{Rule, RuleSet};

use super::{Backend, PAGE, no_cursor, pages, read, walk};
use crate::admin::rules::{ChangeList, Columns, RuleView};
use crate::cli::client::Call;
use crate::cli::direct::by;
use crate::cli::failure::{Failure, Outcome};
use crate::data::{DataError, Database, Page, RuleFilter, StoredRule};
use crate::rules::diff::{RulesDiff, columns};

/// What an import changes, and the version of the rules that it was worked out for.
#[derive(Debug)]
pub(crate) struct Planned {
    /// What changes.
    pub(crate) diff: RulesDiff,
    version: Option<u64>,
}

impl Backend {
    /// All rules that pass the filter, by id.
    pub(crate) async fn rules(&self, filter: &RuleFilter) -> Outcome<Vec<Value>> {
        read(self.rule_list(filter).await?["rules"].take())
    }

    /// The same, with what the server says about them.
    pub(crate) async fn rule_list(&self, filter: &RuleFilter) -> Outcome<Value> {
        match self {
            Self::Server(client) => {
                let call = || {
                    Call::get("/v1/rules")
                        .maybe("plan", filter.plan.clone())
                        .maybe("scope", filter.scope.clone())
                        .maybe("is_active", filter.is_active.map(|is_active| is_active.to_string()))
                };
                let (rules, mut list) =
                    walk::<Value>(client, "rules", call, None, RULES_MAX).await?;
                list["rules"] = rules.into();
                Ok(list)
            }
            Self::Database { database, .. } => {
                let rules: Vec<_> = stored(database, filter).await?.iter().map(view).collect();
                Ok(json!({"rules": rules, "next": null}))
            }
        }
    }

    /// One rule.
    pub(crate) async fn rule(&self, rule_id: u64) -> Outcome<Value> {
        match self {
            Self::Server(client) => client.json(&Call::get(format!("/v1/rules/{rule_id}"))),
            Self::Database { database, .. } => Ok(view(&database.rule(rule_id).await?)),
        }
    }

    /// Makes a rule.
    pub(crate) async fn create_rule(
        &self,
        columns: Map<String, Value>,
        dry_run: bool,
    ) -> Outcome<Value> {
        match self {
            Self::Server(client) => {
                client.json(&Call::post("/v1/rules", columns.into()).dry_run(dry_run))
            }
            Self::Database { database, .. } => {
                let spec = parsed(&columns, |columns| {
                    columns.rule(columns.rule_id().unwrap_or_default())
                })?;
                if dry_run {
                    return candidate(database, &spec).await;
                }
                Ok(view(&database.create_rule(&spec, &by()).await?))
            }
        }
    }

    /// Changes columns of a rule, if it still has this version.
    pub(crate) async fn update_rule(
        &self,
        rule_id: u64,
        columns: Map<String, Value>,
        version: Option<u64>,
        dry_run: bool,
    ) -> Outcome<Value> {
        match self {
            Self::Server(client) => {
                let call = Call::patch(format!("/v1/rules/{rule_id}"), columns.into());
                client.json(&call.if_match(version).dry_run(dry_run))
            }
            Self::Database { database, .. } => {
                let old = database.rule(rule_id).await?;
                let spec = parsed(&columns, |columns| columns.patch(&old.spec))?;
                if dry_run {
                    return candidate(database, &spec).await;
                }
                Ok(view(&database.update_rule(&spec, version, &by()).await?))
            }
        }
    }

    /// Deletes a rule, if it still has this version.
    pub(crate) async fn delete_rule(&self, rule_id: u64, version: Option<u64>) -> Outcome<()> {
        match self {
            Self::Server(client) => {
                let call = Call::delete(format!("/v1/rules/{rule_id}")).if_match(version);
                client.send(&call).map(drop)
            }
            Self::Database { database, .. } => {
                Ok(database.delete_rule(rule_id, version, &by()).await.map(drop)?)
            }
        }
    }

    /// The last changes of rules, or of one rule, newest first.
    pub(crate) async fn rule_changes(
        &self,
        rule_id: Option<u64>,
        after: Option<String>,
        limit: usize,
    ) -> Outcome<ChangeList> {
        match self {
            Self::Server(client) => {
                let path = match rule_id {
                    Some(rule_id) => format!("/v1/rules/{rule_id}/changes"),
                    None => "/v1/rules/changes".into(),
                };
                let call = || Call::get(path.clone());
                let (changes, next) = pages(client, "changes", call, after, limit).await?;
                Ok(ChangeList { changes, next })
            }
            Self::Database { database, .. } => {
                let after =
                    after.map(|after| after.parse().map_err(|_| no_cursor())).transpose()?;
                Ok(ChangeList::read(database, rule_id, Page { after, limit }).await?)
            }
        }
    }

    /// All rules, ready to be compared.
    pub(crate) async fn rule_set(&self) -> Outcome<Vec<Rule>> {
        let rules = self.rules(&RuleFilter::default()).await?;
        rules.iter().map(rule_of).collect()
    }

    /// What changes if these become the rules.
    pub(crate) async fn plan(&self, rules: &[Rule]) -> Outcome<Planned> {
        match self {
            Self::Server(client) => {
                let answer = client.send(&Call::put("/v1/rules", body(rules)).dry_run(true))?;
                Ok(Planned { diff: read(answer.json()?)?, version: answer.version })
            }
            Self::Database { database, .. } => {
                let version = database.generation().await?;
                let specs: Vec<_> = rules.iter().map(Rule::spec).collect();
                let diff = RulesDiff::planned(database, &specs).await?;
                Ok(Planned { diff, version: Some(version) })
            }
        }
    }

    /// Makes these the rules, if nothing has changed since this was planned.
    pub(crate) async fn replace_rules(&self, rules: &[Rule], planned: &Planned) -> Outcome<()> {
        match self {
            Self::Server(client) => {
                let call = Call::put("/v1/rules", body(rules)).if_match(planned.version);
                client.send(&call).map(drop)
            }
            Self::Database { database, .. } => {
                let specs: Vec<_> = rules.iter().map(Rule::spec).collect();
                Ok(database.replace_rules(&specs, planned.version, &by()).await?)
            }
        }
    }
}

async fn stored(database: &Database, filter: &RuleFilter) -> Result<Vec<StoredRule>, DataError> {
    let mut rules: Vec<StoredRule> = Vec::new();
    loop {
        let after = rules.last().map(|rule| rule.spec.rule_id);
        let page = database.rules(filter, Page { after, limit: PAGE }).await?;
        let is_last = page.len() < PAGE;
        rules.extend(page);
        if is_last {
            return Ok(rules);
        }
    }
}

/// A rule that is not stored, if it could be.
async fn candidate(database: &Database, spec: &RuleSpec) -> Outcome<Value> {
    let rule = built(spec)?;
    let others = stored(database, &RuleFilter::default()).await?;
    let others = others.iter().filter(|other| other.spec.rule_id != spec.rule_id);
    let rules = others.map(|other| built(&other.spec)).collect::<Outcome<Vec<_>>>()?;
    RuleSet::new(rules.into_iter().chain([rule]).collect())
        .map_err(|clash| Failure::usage(clash.to_string()))?;
    Ok(json!(RuleView::new(spec, None, 1).in_dry_run()))
}

/// The rule of these columns.
pub(crate) fn built(spec: &RuleSpec) -> Outcome<Rule> {
    spec.build().map_err(|errors| DataError::Refused(errors).into())
}

/// The rule that the API shows so.
fn rule_of(shown: &Value) -> Outcome<Rule> {
    let columns = shown.as_object().cloned().unwrap_or_default();
    let rule_id = shown["rule_id"].as_u64().unwrap_or_default();
    built(&parsed(&columns, |columns| columns.rule(rule_id))?)
}

/// What becomes of columns, read as a server reads them.
fn parsed(
    given: &Map<String, Value>,
    make: impl FnOnce(&Columns<'_>) -> Result<RuleSpec, Vec<FieldError>>,
) -> Outcome<RuleSpec> {
    let text = json!(given).to_string();
    let columns = serde_json::from_str(&text);
    let columns: Columns<'_> = columns.map_err(|error| Failure::usage(error.to_string()))?;
    make(&columns).map_err(|errors| DataError::Refused(errors).into())
}

fn body(rules: &[Rule]) -> Value {
    json!({"rules": rules.iter().map(columns).collect::<Vec<_>>()})
}

/// A stored rule, as the API shows it.
fn view(stored: &StoredRule) -> Value {
    json!(RuleView::stored(stored))
}
