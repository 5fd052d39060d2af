//! `sluicegate rules export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use sluicegate::Rule;
use sluicegate::rules::file::to_toml;

use super::{all, rule_set};
use crate::cli::client::{Call, Client};
use crate::cli::failure::CliResult;
use crate::cli::output::{Output, counted, say};
use crate::cli::{Exit, files};
use crate::observe::logging::escaped;

/// Write the rules to a file for `serve --rules` and `import`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules export --out rules.toml
  sluicegate rules export --format json | jq '.rules[].key_pattern'
  sluicegate rules export --database sqlite:sluicegate.db > rules.toml")]
pub(super) struct Arguments {
    /// Format [default: toml, or json with --json]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// TOML, like `rules.toml`
    Toml,
    /// JSON, as the API has it
    Json,
}

pub(super) fn run(arguments: &Arguments, client: &Client, output: Output) -> CliResult {
    let usual = if output.json { Format::Json } else { Format::Toml };
    let (text, count) = match arguments.format.unwrap_or(usual) {
        Format::Toml => {
            let rules = rule_set(client)?;
            let specs: Vec<_> = rules.iter().map(Rule::spec).collect();
            (to_toml(&specs), specs.len())
        }
        Format::Json => {
            let rules = all(client, &Call::get("/v1/rules"))?["rules"].take();
            let count = rules.as_array().map_or(0, Vec::len);
            let text = serde_json::to_string_pretty(&json!({"rules": rules})).unwrap_or_default();
            // JSON does not escape all characters that control a terminal.
            (escaped(&text, true).into_owned() + "\n", count)
        }
    };
    files::write(arguments.out.as_deref(), &text)?;
    if let Some(path) = &arguments.out {
        let rules = counted(count, "rule", "rules");
        say(&format!("{} has {rules}.", path.display()));
    }
    Ok(Exit::Done)
}
