//! `sluicegate rules export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;
use sluicegate::Rule;
use sluicegate::rules::file::to_toml;

use crate::cli::backend::Backend;
use crate::cli::failure::Outcome;
use crate::cli::output::{Output, counted, say};
use crate::cli::{Exit, files};
use crate::data::RuleFilter;

/// Write the rules to a file that `serve --rules` and `import` read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules export --out rules.toml
  sluicegate rules export --format json | jq '.rules[].key_pattern'
  sluicegate rules export --database sqlite:sluicegate.db > rules.toml")]
pub(super) struct Arguments {
    /// In which form [default: toml, or json with --json]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// As `rules.toml` has them
    Toml,
    /// As the API shows them
    Json,
}

pub(super) async fn run(arguments: &Arguments, backend: &Backend, output: Output) -> Outcome {
    let usual = if output.json { Format::Json } else { Format::Toml };
    let (text, count) = match arguments.format.unwrap_or(usual) {
        Format::Toml => {
            let rules = backend.rule_set().await?;
            let specs: Vec<_> = rules.iter().map(Rule::spec).collect();
            (to_toml(&specs), specs.len())
        }
        Format::Json => {
            let rules = backend.rules(&RuleFilter::default()).await?;
            let text = serde_json::to_string_pretty(&json!({"rules": rules})).unwrap_or_default();
            (text + "\n", rules.len())
        }
    };
    files::write(arguments.out.as_deref(), &text)?;
    if let Some(path) = &arguments.out {
        let are = counted(count, "rule is", "rules are");
        say(&format!("{are} in {}.", path.display()));
    }
    Ok(Exit::Done)
}
