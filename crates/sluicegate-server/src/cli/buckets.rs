//! `sluicegate buckets`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Call, Client, segment};
use super::confirm::confirm;
use super::failure::CliResult;
use super::options::{Change, Form, Server, Why};
use super::output::say;
use super::request::pair;
use super::table::{card, text_of};
use super::{Exit, waits};

const EXAMPLES: &str = "\
Examples:
  sluicegate buckets show 1 42
  sluicegate buckets reset 1 42 --yes
  sluicegate buckets grant 1 42 --tokens 50
  sluicegate buckets refund 1 42 --tokens 3
  sluicegate buckets show 12 42 --with endpoint=/api/search

A bucket is identified by its rule and its subject: the value of {user_id} in the key pattern, else of {ip}, else of \
the first placeholder. --with gives the values of further placeholders. For a key pattern without placeholders, the \
subject is the key pattern itself.

Exit codes: 0 done, 2 wrong arguments or refused by the server, 3 cannot reach the server.";

/// Show a bucket, reset it, or add tokens to it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the state of a bucket, without charging it
    #[command(
        after_help = "Examples:\n  sluicegate buckets show 1 42\n  sluicegate buckets show 1 42 --json"
    )]
    Show(Bucket),
    Reset(Reset),
    /// Add tokens to a bucket, up to its limit
    #[command(after_help = "Examples:\n  sluicegate buckets grant 1 42 --tokens 50")]
    Grant(Credit),
    /// Refund tokens to a bucket, up to its limit
    #[command(after_help = "Examples:\n  sluicegate buckets refund 1 42 --tokens 3")]
    Refund(Credit),
}

/// A bucket of a rule.
#[derive(Debug, Args)]
struct Bucket {
    /// Id of the rule
    rule: u64,

    /// Subject: the user's id, the address
    subject: String,

    /// Value of a further placeholder of the key pattern; may be given several times
    #[arg(long = "with", value_name = "ATTRIBUTE=VALUE", value_parser = pair)]
    further: Vec<(String, String)>,
}

/// Reset a bucket, so that it is full again
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluicegate buckets reset 1 42\n  sluicegate buckets reset 1 42 --dry-run"
)]
struct Reset {
    #[command(flatten)]
    bucket: Bucket,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

/// Tokens to add to a bucket.
#[derive(Debug, Args)]
struct Credit {
    #[command(flatten)]
    bucket: Bucket,

    /// Number of tokens
    #[arg(long, value_name = "N")]
    tokens: u64,

    /// Show the bucket, and add nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    why: Why,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let client = Client::of_server(&arguments.server)?;
    let bucket = match &arguments.action {
        Action::Show(bucket) => client.json(&bucket.look())?,
        Action::Reset(reset) => {
            let now = client.json(&reset.bucket.look())?;
            if reset.change.dry_run {
                say("Nothing was changed; the bucket is:");
                now
            } else {
                let key = text_of(&now["bucket_key"]);
                let (left, limit) = (text_of(&now["remaining"]), text_of(&now["limit"]));
                let question = format!("Reset the bucket {key}, which has {left} of {limit}?");
                confirm(&question, reset.change.yes)?;
                let call = reset.bucket.act("reset", json!({})).because(&reset.why);
                let reset = client.json(&call)?;
                say("The bucket was reset.");
                reset
            }
        }
        Action::Grant(credit) => credit.give("grant", &client)?,
        Action::Refund(credit) => credit.give("refund", &client)?,
    };
    arguments.form.output().show(&bucket, || shown(&bucket))?;
    Ok(Exit::Done)
}

impl Bucket {
    fn path(&self) -> String {
        format!("/v1/buckets/{}/{}", self.rule, segment(&self.subject))
    }

    fn further(&self, call: Call) -> Call {
        self.further.iter().fold(call, |call, (name, value)| call.with(name, value))
    }

    fn look(&self) -> Call {
        self.further(Call::get(self.path()))
    }

    fn act(&self, action: &str, body: Value) -> Call {
        self.further(Call::post(format!("{}/{action}", self.path()), body))
    }
}

impl Credit {
    fn give(&self, action: &str, client: &Client) -> CliResult<Value> {
        if self.dry_run {
            say("Nothing was changed; the bucket is:");
            return client.json(&self.bucket.look());
        }
        let call = self.bucket.act(action, json!({"tokens": self.tokens})).because(&self.why);
        let bucket = client.json(&call)?;
        say(&format!("The bucket now has {}.", text_of(&bucket["remaining"])));
        Ok(bucket)
    }
}

fn shown(bucket: &Value) -> String {
    let mut members = Vec::new();
    for name in ["bucket_key", "rule_id", "subject", "remaining", "limit"] {
        members.push((name, text_of(&bucket[name])));
    }
    members.push(("full in", waits::millis(&bucket["reset_after_ms"])));
    if !bucket["override"].is_null() {
        members.push(("override", text_of(&bucket["override"])));
    }
    card(&members)
}
