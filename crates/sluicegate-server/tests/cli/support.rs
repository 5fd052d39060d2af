//! A server with a separate database, a database without a server, and commands on either.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use crate::common::{Finished, Launch, Server};

/// Target of commands: a server or a database.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Arguments that select the target.
    target: Vec<String>,
    folder: PathBuf,
    server: Option<Server>,
    _folder: Option<TempDir>,
}

impl Gate {
    /// Server with the starter rules in a SQLite file.
    pub(crate) fn server() -> Self {
        Self::of(Launch::serve(&[]).start())
    }

    /// The given server.
    pub(crate) fn of(server: Server) -> Self {
        let target = vec!["--server".into(), format!("http://{}", server.address)];
        Self { target, folder: server.folder(), server: Some(server), _folder: None }
    }

    /// SQLite file with the starter rules, without a server.
    pub(crate) fn database() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("sluicegate.db").display());
        let made = Launch::new(&["migrate", "--database", &url]).run();
        assert_eq!(made.code, Some(0), "{made:?}");
        let target = vec!["--database".into(), url];
        Self { target, folder: folder.path().into(), server: None, _folder: Some(folder) }
    }

    /// A server, and a database without one.
    pub(crate) fn both() -> [Self; 2] {
        [Self::database(), Self::server()]
    }

    /// URL of the database.
    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.folder.join("sluicegate.db").display())
    }

    /// The server; panics without one.
    pub(crate) fn server_of(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// `true` if commands talk to a server.
    pub(crate) fn is_server(&self) -> bool {
        self.server.is_some()
    }

    /// Changes the database by hand.
    pub(crate) fn sql(&self, sql: &str) {
        let options = SqliteConnectOptions::new().filename(self.folder.join("sluicegate.db"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = options.connect().await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        });
    }

    /// Writes a file beside the database and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Contents of a file beside the database.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }

    /// Path of a file beside the database.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Command on this target.
    pub(crate) fn launch(&self, arguments: &[&str]) -> Launch {
        let target: Vec<_> = self.target.iter().map(String::as_str).collect();
        Launch::new(arguments).args(&target).env("USER", "tester")
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        self.launch(arguments).run()
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        finished.stdout
    }

    /// Runs a command with `--json` that must succeed, and returns its output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Runs a command that must fail with this exit code, and returns its standard error.
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        assert_eq!(finished.stdout, "", "{arguments:?}");
        assert!(finished.stderr.starts_with("error: "), "{arguments:?}: {finished:?}");
        finished.stderr
    }
}

/// Path of a fixture in this folder.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures").join(name);
    path.display().to_string()
}

/// Splits a command into words like a shell, with quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(closing)) if c == closing => quote = None,
            (c, Some(_)) => word.push(c),
            (c @ ('"' | '\''), None) => quote = Some(c),
            (' ', None) => words.push(std::mem::take(&mut word)),
            (c, None) => word.push(c),
        }
    }
    words.push(word);
    words
}
