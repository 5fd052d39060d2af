//! `sluicegate serve`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::Exit;
use super::output::counted;
use crate::config::{Config, FILE_NAME, Key, Kind, Sources, keys};
use crate::observe::logging::Audience;
use crate::process::serve::{self, ServeError};
use crate::rules::snapshot::SnapshotError;
use crate::rules::source::RulesSource;
use crate::store::StoreError;

const EXAMPLES: &str = "\
Examples:
  sluicegate serve                             with the starter rules, on port 8080
  sluicegate serve --rules rules.toml          with rules from a file, reloaded on change
  sluicegate serve --listen-http 127.0.0.1:0   on a free port, which is printed
  sluicegate serve --store-url redis://redis   with buckets shared through Redis
  sluicegate serve --database-url postgres://db/sluicegate
                                             with rules shared through PostgreSQL
  sluicegate serve --check-config              check settings and rules, and exit

Every setting is section.key in sluicegate.toml, SLUICEGATE_SECTION_KEY in the environment and a flag here; flags take \
precedence over the environment, and the environment over the file. Secrets have no flags: SLUICEGATE_ADMIN_TOKEN and \
SLUICEGATE_RESP_PASSWORD, or files named in SLUICEGATE_ADMIN_TOKEN_FILE and SLUICEGATE_RESP_PASSWORD_FILE. A URL with a password belongs in SLUICEGATE_STORE_URL or SLUICEGATE_DATABASE_URL, or a file \
named in SLUICEGATE_STORE_URL_FILE or SLUICEGATE_DATABASE_URL_FILE.

Exit codes: 0 stopped by a signal, 2 wrong arguments, settings or rules, 3 cannot serve (a port is in use, Redis refuses \
the password, the database is down and there is no snapshot).";

/// Serve HTTP, gRPC and the Redis protocol until a signal stops it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// File of settings, which must exist [default: sluicegate.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Check settings and rules, print the errors or the settings in force, and exit
    #[arg(long)]
    check_config: bool,

    #[command(flatten)]
    settings: Settings,
}

/// Flags of the settings, generated from their table.
#[derive(Debug, Default)]
struct Settings(Vec<(&'static Key, String)>);

/// Serves, or checks the settings and rules.
pub(super) fn run(arguments: &Arguments) -> Exit {
    let audience = Audience::of_stderr();
    let sources = Sources {
        file: arguments.config.clone(),
        environment: std::env::vars_os().collect(),
        flags: arguments.settings.0.clone(),
    };
    let loaded = match sources.load() {
        Ok(loaded) => loaded,
        Err(errors) => {
            say(&errors.render(audience.in_colours));
            return Exit::Usage;
        }
    };
    if !arguments.check_config {
        return serve(loaded.config, audience);
    }
    let tls = loaded.config.listen.tls_sets();
    if let Err(error) = tls.iter().try_for_each(|tls| tls.files().server_config().map(drop)) {
        say(&format!("{}\n", ServeError::from(error).report(audience.in_colours)));
        return Exit::Usage;
    }
    let source = RulesSource::new(&loaded.config);
    match source.load(loaded.config.limits.tiers_max) {
        Ok(rules) => {
            let read = loaded
                .file
                .as_ref()
                .map_or_else(|| format!("no {FILE_NAME}"), |file| file.path.display().to_string());
            let rules = rules.map_or_else(
                || format!("rules in {source}"),
                |(rules, _)| {
                    let rules = counted(rules.rules().len(), "rule", "rules");
                    format!("{rules} ({source})")
                },
            );
            let (report, note) = (loaded.report(), open_note(&loaded.config));
            let _ = write!(io::stdout(), "ok: {read}, {rules}\n\n{report}{note}");
            Exit::Done
        }
        Err(error) => {
            let error = ServeError::from(SnapshotError::from(error));
            say(&format!("{}\n", error.report(audience.in_colours)));
            Exit::Usage
        }
    }
}

/// Note about data listeners that need a caller: the database, which has them, is not asked.
fn open_note(config: &Config) -> String {
    let open = config.open_listeners_shown().filter(|_| !config.listen.is_anonymous_allowed);
    open.map_or_else(String::new, |open| {
        format!(
            "note: other machines can reach {open}, so that the service starts only if a caller exists; otherwise {}\n",
            config.ways_to_protect()
        )
    })
}

fn serve(config: Config, audience: Audience) -> Exit {
    match serve::run(config, audience) {
        Ok(()) => Exit::Done,
        Err(error) => {
            say(&format!("{}\n", error.report(audience.in_colours)));
            match error {
                ServeError::Rules(SnapshotError::Rules(_) | SnapshotError::Refused { .. })
                | ServeError::Store(StoreError::Settings(_))
                | ServeError::Open { .. }
                | ServeError::Tls(_) => Exit::Usage,
                ServeError::Rules(SnapshotError::Down { .. })
                | ServeError::Store(StoreError::Start { .. })
                | ServeError::Listen { .. }
                | ServeError::System { .. } => Exit::Unavailable,
            }
        }
    }
}

/// Prints on standard error. Errors are ignored.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

// ===== impl Settings =====

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        command.args(keys().filter_map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0 = keys()
            .filter(|key| key.flag.is_some())
            .filter_map(|key| Some((key, matches.get_one::<String>(key.name)?.clone())))
            .collect();
        Ok(())
    }
}

/// The flag of a setting.
fn flag(key: &'static Key) -> Option<Arg> {
    let help = match &key.kind {
        Kind::Text { default, .. } | Kind::Url { default, .. } if !default.is_empty() => {
            format!("{} [default: {default}]", key.doc)
        }
        Kind::Choice { default, choices, .. } => {
            format!("{} [default: {default}] [possible: {}]", key.doc, choices.join(", "))
        }
        Kind::Number { default, min, max, .. } => {
            format!("{} [default: {default}] [from {min} to {max}]", key.doc)
        }
        Kind::Path { default, .. } if !default.is_empty() => {
            format!("{} [default: {default}]", key.doc)
        }
        Kind::Text { .. }
        | Kind::Url { .. }
        | Kind::Path { .. }
        | Kind::FileOrNone { .. }
        | Kind::List { .. }
        | Kind::Secret { .. } => key.doc.into(),
    };
    let help = format!("{help} [env: {}]", key.variable());
    let (section, _) = key.section_and_name();
    let arg = Arg::new(key.name).long(key.flag?).value_name(key.value).help(help);
    Some(arg.help_heading(heading(section)).action(ArgAction::Set).allow_hyphen_values(true))
}

fn heading(section: &str) -> &'static str {
    match section {
        "listen" => "Listeners",
        "grpc" | "resp" | "proxies" | "authorize" | "headers" => "Protocols",
        "store" => "Store",
        "database" => "Database",
        "rules" => "Rules",
        "admin" => "Administration",
        "audit" => "Violations",
        "recent" => "Recent requests",
        "limits" => "Limits",
        "log" => "Log",
        "shutdown" => "Shutdown",
        _ => "Settings",
    }
}
