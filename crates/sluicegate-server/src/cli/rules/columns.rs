//! The columns of a rule, as flags or as a file of JSON.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use sluicegate::rules::RULES_FILE_BYTES_MAX;
use sluicegate::{Algorithm, Mode, OnError, Refill, Scope};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::request::pair;
use crate::cli::{files, quota};

/// What a rule is to have. What is left out has its default in a new rule, and stays in another.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns")]
pub(super) struct Columns {
    /// Which requests share a bucket: `user:{user_id}`, `ip:{ip}`, `global`
    #[arg(long, value_name = "PATTERN")]
    key_pattern: Option<String>,

    /// The rate and the burst: `10/s`, `100/minute burst 500`, `5 per 2s`. Unless it is given, the burst of a new
    /// rule is its tokens per period, and that of another stays as it is
    #[arg(long, value_name = "RATE", value_parser = quota::parse, conflicts_with_all = ["tokens", "period"])]
    rate: Option<Map<String, Value>>,

    /// Tokens per period
    #[arg(long, value_name = "N", requires = "period")]
    tokens: Option<u64>,

    /// In what time they come in: `1s`, `1 minute`, `62.5s`
    #[arg(long, value_name = "TIME", requires = "tokens")]
    period: Option<String>,

    /// The most that can be taken at once
    #[arg(long, value_name = "N")]
    burst_capacity: Option<u64>,

    /// For which plan; empty for all
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// An attribute and the glob that it must match, or behind `!` those that it must not: `endpoint=/login`,
    /// `endpoint=!/login|/signup`; may be given several times
    #[arg(long = "condition", value_name = "ATTRIBUTE=GLOB", value_parser = pair)]
    conditions: Vec<(String, String)>,

    /// Take all conditions away that are not given here
    #[arg(long)]
    no_conditions: bool,

    /// By what name others replace it; empty for none
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The name of rules that do not apply where it does; may be given several times, and takes the place of those
    /// that it had
    #[arg(long = "replaces-name", value_name = "NAME", conflicts_with = "no_replaces")]
    replaces_names: Vec<String>,

    /// Let it replace no others
    #[arg(long)]
    no_replaces: bool,

    /// What it is about
    #[arg(long, value_name = "SCOPE", value_parser = Scope::NAMES)]
    scope: Option<String>,

    /// How it is counted
    #[arg(long, value_name = "NAME", value_parser = Algorithm::NAMES)]
    algorithm: Option<String>,

    /// How a token bucket refills
    #[arg(long, value_name = "HOW", value_parser = Refill::NAMES)]
    refill: Option<String>,

    /// The longest wait in line of a leaky bucket
    #[arg(long, value_name = "TIME")]
    max_wait: Option<String>,

    /// Whether its denials count, or it has none
    #[arg(long, value_name = "MODE", value_parser = Mode::NAMES)]
    mode: Option<String>,

    /// What it answers while its store is in trouble
    #[arg(long, value_name = "WHAT", value_parser = OnError::NAMES)]
    on_error: Option<String>,

    /// Switch it on
    #[arg(long, conflicts_with = "inactive")]
    active: bool,

    /// Switch it off
    #[arg(long)]
    inactive: bool,

    /// A note for people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Read the columns from a file of JSON, `-` for standard input; flags come on top
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Columns {
    /// The columns that are given, as JSON.
    pub(super) fn read(&self) -> CliResult<Map<String, Value>> {
        let mut columns = self.read_file()?;
        columns.extend(self.rate.clone().unwrap_or_default());
        if self.rate.is_some() || self.tokens.is_some() {
            columns.remove("rate_per_second");
        }
        let texts = [
            ("key_pattern", &self.key_pattern),
            ("period", &self.period),
            ("plan", &self.plan),
            ("scope", &self.scope),
            ("algorithm", &self.algorithm),
            ("refill", &self.refill),
            ("max_wait", &self.max_wait),
            ("mode", &self.mode),
            ("on_error", &self.on_error),
            ("description", &self.description),
            ("name", &self.name),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                columns.insert(name.into(), json!(value));
            }
        }
        for (name, number) in [("tokens", self.tokens), ("burst_capacity", self.burst_capacity)] {
            if let Some(number) = number {
                columns.insert(name.into(), json!(number));
            }
        }
        if self.active || self.inactive {
            columns.insert("is_active".into(), json!(self.active));
        }
        if self.no_replaces || !self.replaces_names.is_empty() {
            columns.insert("replaces".into(), json!(self.replaces_names));
        }
        if !self.conditions.is_empty() {
            let conditions = self.conditions.iter().map(|(name, glob)| (name.clone(), json!(glob)));
            columns.insert("conditions".into(), Value::Object(conditions.collect()));
        }
        Ok(columns)
    }

    /// The same, for a rule that is there already and may lose conditions.
    pub(super) fn read_for(&self, rule: &Value) -> CliResult<Map<String, Value>> {
        let mut columns = self.read()?;
        if self.no_conditions {
            let none = Map::new();
            let old = rule["conditions"].as_object().unwrap_or(&none);
            let conditions = columns.entry("conditions").or_insert_with(|| json!({}));
            if let Value::Object(conditions) = conditions {
                for name in old.keys() {
                    conditions.entry(name.clone()).or_insert(Value::Null);
                }
            }
        }
        Ok(columns)
    }

    fn read_file(&self) -> CliResult<Map<String, Value>> {
        let Some(path) = &self.file else { return Ok(Map::new()) };
        let text = files::read(path, RULES_FILE_BYTES_MAX as u64)?;
        let wrong = |error: serde_json::Error| {
            Failure::usage(format!("{}: is no rule in JSON: {error}", path.display()))
        };
        serde_json::from_str(&text).map_err(wrong)
    }
}
