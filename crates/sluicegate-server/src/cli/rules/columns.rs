//! The columns of a rule as options, or from a file of JSON.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value, json};
use sluicegate::rules::{NOTES, Note, RULES_FILE_BYTES_MAX};
use sluicegate::{Algorithm, Mode, OnError, PathForm, Refill, Scope};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::request::pair;
use crate::cli::{files, quota};

/// Columns of a rule. One that is not given has its default in a new rule, and stays unchanged in an existing one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns")]
pub(super) struct Columns {
    /// Pattern of bucket keys; requests with the same key share a bucket: `user:{user_id}`, `ip:{ip}`, `global`
    #[arg(long, value_name = "PATTERN")]
    key_pattern: Option<String>,

    /// Rate and burst: `10/s`, `100/minute burst 500`, `5 per 2s`. Without a burst, a new rule's burst is its tokens
    /// per period, and an existing rule's burst stays
    #[arg(long, value_name = "RATE", value_parser = quota::parse, conflicts_with_all = ["tokens", "period"])]
    rate: Option<Map<String, Value>>,

    /// Tokens per period
    #[arg(long, value_name = "N", requires = "period")]
    tokens: Option<u64>,

    /// Period: `1s`, `1 minute`, `62.5s`
    #[arg(long, value_name = "TIME", requires = "tokens")]
    period: Option<String>,

    /// Burst: tokens that can be taken at once
    #[arg(long, value_name = "N")]
    burst_capacity: Option<u64>,

    /// Plan that the rule is for; empty for all
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// Attribute and the glob that it must match, or after `!` must not match: `endpoint=/login`,
    /// `endpoint=!/login|/signup`; may be given several times
    #[arg(long = "condition", value_name = "ATTRIBUTE=GLOB", value_parser = pair)]
    conditions: Vec<(String, String)>,

    /// Remove all conditions that are not given here
    #[arg(long)]
    no_conditions: bool,

    /// Name by which other rules replace it; empty for none
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Name of rules that do not apply where this one does; may be given several times, and replaces the earlier
    /// names
    #[arg(long = "replaces-name", value_name = "NAME", conflicts_with = "no_replaces")]
    replaces_names: Vec<String>,

    /// Replace no other rules
    #[arg(long)]
    no_replaces: bool,

    /// Scope of the rule
    #[arg(long, value_name = "SCOPE", value_parser = Scope::NAMES)]
    scope: Option<String>,

    /// Algorithm of the buckets
    #[arg(long, value_name = "NAME", value_parser = Algorithm::NAMES)]
    algorithm: Option<String>,

    /// Refill of a token bucket
    #[arg(long, value_name = "HOW", value_parser = Refill::NAMES)]
    refill: Option<String>,

    /// Maximum wait in the queue of a leaky bucket
    #[arg(long, value_name = "TIME")]
    max_wait: Option<String>,

    /// Mode: enforced, only recorded (shadow), or without limit (unlimited)
    #[arg(long, value_name = "MODE", value_parser = Mode::NAMES)]
    mode: Option<String>,

    /// Answer while the store fails
    #[arg(long, value_name = "WHAT", value_parser = OnError::NAMES)]
    on_error: Option<String>,

    /// Endpoints as they are (exact), or with spellings of one path folded (folded): `/login/`, `/LOGIN`, `/login;x`
    #[arg(long, value_name = "FORM", value_parser = PathForm::NAMES)]
    path: Option<String>,

    /// Activate the rule
    #[arg(long, conflicts_with = "inactive")]
    active: bool,

    /// Deactivate the rule
    #[arg(long)]
    inactive: bool,

    #[command(flatten)]
    notes: Notes,

    /// Read the columns from a JSON file, `-` for standard input; flags take precedence
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Options of the columns of text that decide nothing, named after them.
#[derive(Clone, Debug)]
struct Notes(Vec<(&'static str, String)>);

impl Args for Notes {
    fn augment_args(command: Command) -> Command {
        NOTES.iter().fold(command, |command, note| {
            let option = Arg::new(note.name()).long(note.name());
            command.arg(option.value_name("TEXT").help(note.help()))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Notes {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            |note: &Note| Some((note.name(), matches.get_one::<String>(note.name())?.clone()));
        Ok(Self(NOTES.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Columns {
    /// The given columns, as JSON.
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
            ("path", &self.path),
            ("name", &self.name),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                columns.insert(name.into(), json!(value));
            }
        }
        columns.extend(self.notes.0.iter().map(|(name, text)| ((*name).into(), json!(text))));
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

    /// The same for an existing rule, with conditions to remove.
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
            Failure::usage(format!("{}: is not a rule in JSON: {error}", path.display()))
        };
        serde_json::from_str(&text).map_err(wrong)
    }
}
