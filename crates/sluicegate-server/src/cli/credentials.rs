//! Steps that `tokens` and `callers` share: a new token is written once, and either is revoked by name.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::confirm::confirm;
use super::database::author;
use super::failure::{CliResult, Failure};
use super::options::{Change, Why};
use super::output::{Output, say};
use super::{Exit, files};
use crate::auth::tokens;
use crate::config::Secret;
use crate::data::{Author, DataError};

/// A token that is not stored yet, and the place that it is written to.
#[derive(Debug)]
pub(super) struct NewToken {
    token: Secret,
    pub(super) hash: [u8; 32],
    /// File to write it to; `None` for standard output.
    path: Option<PathBuf>,
    sink: files::Sink,
}

/// Name of what is revoked, confirmation and reason.
#[derive(Debug, Args)]
pub(super) struct Revocation {
    /// Name to revoke
    name: String,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

impl NewToken {
    /// Creates a token, and opens the file that it is to be written to.
    pub(super) fn mint(out: Option<&Path>) -> CliResult<Self> {
        let none = |error| Failure::unavailable(format!("no random numbers: {error}"));
        let (token, hash) = tokens::mint().map_err(none)?;
        let path = out.filter(|path| *path != Path::new("-"));
        let sink = files::Sink::secret(path)?;
        Ok(Self { token, hash, path: path.map(Into::into), sink })
    }

    /// Removes the file: the token was not stored.
    pub(super) fn discard(self) {
        self.sink.discard();
    }

    /// Writes the token, and shows its stored row. `what` names the token: `the token deploy, which may read`.
    pub(super) fn write(mut self, mut stored: Value, what: &str, output: Output) -> CliResult<()> {
        let line = format!("{}\n", self.token.expose());
        if let Some(path) = &self.path {
            self.sink.write(&line)?;
            output.show(&stored, String::new)?;
            say(&format!("{} holds {what}. It is not shown again.", path.display()));
        } else {
            stored["token"] = json!(self.token.expose());
            output.show(&stored, || line)?;
            say(&format!("This is {what}. It is not shown again."));
        }
        Ok(())
    }
}

impl Revocation {
    /// Name of what is revoked.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Revokes the `kind` (`token`) whose row is `found`, after confirmation. `may` names what it is allowed to do.
    pub(super) async fn run(
        &self,
        kind: &str,
        found: Option<(Value, String)>,
        output: Output,
        delete: impl AsyncFnOnce(&Author) -> Result<Value, DataError>,
    ) -> CliResult {
        let name = &self.name;
        let Some((found, may)) = found else {
            return Err(Failure::usage(format!("no {kind} is called {name}")));
        };
        if self.change.dry_run {
            say(&format!("Nothing was revoked; the {kind} is:"));
            output.show(&found, || format!("{name}\n"))?;
            return Ok(Exit::Done);
        }
        confirm(&format!("Revoke the {kind} {name}, which may {may}?"), self.change.yes)?;
        let revoked = delete(&author(&self.why)).await?;
        say(&format!("The {kind} {name} was revoked."));
        output.show(&json!({"revoked": revoked}), String::new)?;
        Ok(Exit::Done)
    }
}
