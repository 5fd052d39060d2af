//! `sluicegate rules import`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use sluicegate::rules::{RULES_FILE_BYTES_MAX, RuleSpec, TIERS_MAX_MAX};
use sluicegate::{Algorithm, Rule, RuleSet};

use super::{build, diff, rule_set};
use crate::cli::client::{Call, Client, parse};
use crate::cli::confirm::confirm;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::options::{Change, Why};
use crate::cli::output::{Output, counted, say};
use crate::cli::{Exit, files};
use crate::observe::logging::Audience;
use crate::rules::convert::{self, ConvertError, Converted, Note};
use crate::rules::diff::{RulesDiff, columns};

/// Replace the rules in the database by those of a file, all or none
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules import rules.toml
  sluicegate rules import rules.toml --dry-run
  sluicegate rules import more.toml --merge --yes
  sluicegate rules import --from envoy-ratelimit config.yaml --dry-run
  sluicegate rules import --from limitador limits.yaml --replace

Rules that are not in the file are removed; with --merge, and by default with --from, they stay. The difference is shown \
and must be confirmed; if the rules change in the meantime, nothing is changed. A rule replaces the one with the same id; with \
--merge and --from, the one with the same key pattern and plan.

With --from, limits that cannot be converted are listed with their line and the reason. Limits become token buckets, or \
fixed windows with `--algorithm fixed_window`.")]
pub(super) struct Arguments {
    /// File of rules, `-` for standard input
    file: PathBuf,

    /// Convert from the format of another rate limiter
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<From>,

    /// Algorithm for converted limits, which are fixed windows in their own format
    #[arg(long, value_name = "NAME", value_enum, requires = "from", default_value_t = Counted::TokenBucket)]
    algorithm: Counted,

    /// Remove the rules that are not in the file (the default, but not with --from)
    #[arg(long, conflicts_with = "merge")]
    replace: bool,

    /// Keep the rules that are not in the file (the default with --from)
    #[arg(long)]
    merge: bool,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// YAML of envoyproxy/ratelimit
    EnvoyRatelimit,
    /// YAML of Limitador
    Limitador,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Counted {
    /// The limit as burst, refilled evenly over the window's length
    TokenBucket,
    /// The same window
    FixedWindow,
}

pub(super) fn run(arguments: &Arguments, client: &Client, output: Output) -> CliResult {
    let (rules, notes) = match arguments.from {
        None => (read_rules(&arguments.file)?, Vec::new()),
        Some(from) => read_foreign(&arguments.file, from, arguments.algorithm)?,
    };
    let is_foreign = arguments.from.is_some();
    let is_merged = arguments.merge || (is_foreign && !arguments.replace);
    let rules = if is_merged || is_foreign {
        let settled = settled(&rules, &rule_set(client)?, is_merged)?;
        if is_foreign {
            // Rules that stay come after those of the file.
            tell_of_others(&settled[rules.len()..]);
        }
        settled
    } else {
        rules
    };
    let call = Call::put("/v1/rules", body(&rules)).because(&arguments.why);
    let answer = client.send(&call.clone().dry_run(true))?;
    let planned: RulesDiff = parse(answer.json()?)?;
    let agreed = || -> CliResult<bool> {
        if planned.is_empty() || arguments.change.dry_run {
            return Ok(false);
        }
        if !output.json {
            Output::data(&diff::shown(&planned, output.in_colours))?;
        }
        confirm("Apply this change?", arguments.change.yes)?;
        Ok(true)
    };
    tell(&notes, &arguments.file);
    let is_applied = agreed()?;
    if is_applied {
        // Refused if anything has changed since the dry run.
        client.send(&call.if_match(answer.version))?;
        say(&(counted(rules.len(), "rule is", "rules are") + " in force."));
    } else if !output.json {
        Output::data(&diff::shown(&planned, output.in_colours))?;
        say("Nothing was changed.");
    }
    let left_out = notes.iter().filter(|note| note.is_left_out).count();
    if left_out > 0 {
        let limits = counted(left_out, "limit was left out", "limits were left out");
        say(&(limits + ": see above."));
    }
    if output.json {
        let report = json!({"applied": is_applied, "diff": planned, "notes": notes});
        output.show(&report, String::new)?;
    }
    Ok(Exit::Done)
}

/// The body that makes these the rules.
fn body(rules: &[Rule]) -> Value {
    json!({"rules": rules.iter().map(columns).collect::<Vec<_>>()})
}

/// The rules of a `rules.toml`.
pub(super) fn read_rules(path: &Path) -> CliResult<Vec<Rule>> {
    let text = files::read(path, RULES_FILE_BYTES_MAX as u64)?;
    // The service knows its own bound.
    match RuleSet::from_toml_bounded(&path.display().to_string(), &text, TIERS_MAX_MAX) {
        Ok(set) => Ok(set.rules().to_vec()),
        Err(errors) if Audience::of_stderr().in_colours => {
            Err(Failure::report(errors.coloured().to_string()))
        }
        Err(errors) => Err(Failure::report(errors.to_string())),
    }
}

/// Converts a file of another format into rules, with notes about what was converted differently or not at all.
fn read_foreign(path: &Path, from: From, counted: Counted) -> CliResult<(Vec<Rule>, Vec<Note>)> {
    let text = files::read(path, convert::FILE_BYTES_MAX)?;
    let algorithm = match counted {
        Counted::TokenBucket => Algorithm::TokenBucket,
        Counted::FixedWindow => Algorithm::FixedWindow,
    };
    let converted = match from {
        From::EnvoyRatelimit => convert::envoy(&text, algorithm),
        From::Limitador => convert::limitador(&text, algorithm),
    };
    let wrong = |error| unreadable(path, &text, &error);
    let Converted { rules, notes, .. } = converted.map_err(wrong)?;
    if rules.is_empty() {
        tell(&notes, path);
        let message =
            format!("{}: contains nothing that can be converted to a rule", path.display());
        return Err(Failure::usage(message));
    }
    Ok((rules, notes))
}

/// The error of a file that cannot be parsed, with its place if it has one.
fn unreadable(path: &Path, text: &str, wrong: &ConvertError) -> Failure {
    let Some(at) = wrong.at else {
        return Failure::usage(format!("{}: {}", path.display(), wrong.message));
    };
    let in_colours = Audience::of_stderr().in_colours;
    let renderer = if in_colours { Renderer::styled() } else { Renderer::plain() };
    let path = path.to_string_lossy();
    let here = AnnotationKind::Primary.span(at..at);
    let snippet = Snippet::source(text).path(path.as_ref()).annotation(here);
    let title = Level::ERROR.primary_title(wrong.message.as_str());
    Failure::report(renderer.render(&[Group::with_title(title).element(snippet)]))
}

/// Prints the notes of a conversion.
fn tell(notes: &[Note], path: &Path) {
    for note in notes {
        say(&format!("{}:{}: {note}", path.display(), note.line));
    }
}

/// Warns of rules that also apply to requests of the converted domains. Converted limits are for one domain each.
fn tell_of_others(others: &[Rule]) {
    let is_of_any_domain = |rule: &&Rule| {
        rule.is_active() && rule.conditions().iter().all(|(name, _)| name.name() != "domain")
    };
    let count = others.iter().filter(is_of_any_domain).count();
    if count > 0 {
        let rules = counted(count, "other rule applies", "other rules apply");
        say(&format!(
            "note: {rules} to requests of every domain, including these: --replace removes them"
        ));
    }
}

/// Gives rules the ids of those that they replace, or 0, for which the database assigns a new id; appends the rules that
/// stay.
fn settled(rules: &[Rule], old: &[Rule], keep_others: bool) -> CliResult<Vec<Rule>> {
    let mut known: BTreeMap<_, _> = old.iter().map(|rule| (claim(rule), rule)).collect();
    let mut settled = Vec::new();
    for rule in rules {
        let rule_id = known.remove(&claim(rule)).map_or(0, Rule::rule_id);
        settled.push(build(&RuleSpec { rule_id, ..rule.spec() })?);
    }
    if keep_others {
        settled.extend(known.into_values().cloned());
    }
    Ok(settled)
}

/// Key that identifies a rule where ids do not.
fn claim(rule: &Rule) -> (&str, Option<&str>) {
    (rule.key_pattern().as_str(), rule.plan())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        RuleSet::from_toml("rules.toml", text).unwrap().rules().to_vec()
    }

    fn ids(rules: &[Rule]) -> Vec<(u64, &str)> {
        rules.iter().map(|rule| (rule.rule_id(), rule.key_pattern().as_str())).collect()
    }

    #[test]
    fn rules_keep_the_ids_of_those_that_they_replace() {
        let old = rules(
            "[[rule]]\nrule_id = 4\nkey_pattern = \"a\"\ntokens = 1\nperiod = 1\n\
             [[rule]]\nrule_id = 2\nkey_pattern = \"b\"\ntokens = 1\nperiod = 1\n",
        );
        let new = "[[rule]]\nkey_pattern = \"c\"\ntokens = 1\nperiod = 1\n\
                   [[rule]]\nkey_pattern = \"a\"\ntokens = 2\nperiod = 1\n";
        let settled_alone = settled(&rules(new), &old, false).unwrap();
        assert_eq!(ids(&settled_alone), [(0, "c"), (4, "a")]);
        let merged = settled(&rules(new), &old, true).unwrap();
        assert_eq!(ids(&merged), [(0, "c"), (4, "a"), (2, "b")]);
    }
}
