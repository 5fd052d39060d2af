//! `[database]`: the database of rules, overrides, tokens and violations.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// `[database]`
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// URL; without one there is no database.
    pub url: Option<DatabaseUrl>,
    /// File with a copy of the last valid rules.
    pub snapshot: Option<PathBuf>,
    /// Timeout of a statement.
    pub timeout: Duration,
}

/// URL of a database. Printing it never shows a password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server: the whole URL.
    Postgres(Box<str>),
}

impl DatabaseUrl {
    /// Parses a URL; none if it is empty.
    ///
    /// # Errors
    ///
    /// The reason, without the URL: it may hold a password.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.starts_with(":memory:") || path.contains('?') {
                return Err(
                    "`sqlite:` must be followed by the path of a file and nothing else".into()
                );
            }
            return Ok(Some(Self::Sqlite(path.into())));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match text.parse::<sqlx::postgres::PgConnectOptions>() {
                Ok(_) => Ok(Some(Self::Postgres(text.into()))),
                Err(_) => Err("is not a URL such as postgres://user@host:5432/database".into()),
            };
        }
        Err("must begin with `sqlite:` or `postgres://`".into())
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Scheme, user, host and database: parameters may hold a password as well.
fn without_password(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return "***".into() };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = user.split(':').next().unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}://{user}{at}{host}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_shown_without_passwords() {
        assert_eq!(DatabaseUrl::parse(""), Ok(None));
        for (text, shown) in [
            ("sqlite:sluicegate.db", "sqlite:sluicegate.db"),
            ("sqlite:///var/lib/t.db", "sqlite:/var/lib/t.db"),
            (
                "postgres://u:canary@h:5432/d?sslmode=require&password=canary",
                "postgres://u@h:5432/d",
            ),
            ("postgresql://h/d", "postgresql://h/d"),
        ] {
            let url = DatabaseUrl::parse(text).unwrap().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("canary"));
        }
        for wrong in
            ["sqlite:", "sqlite::memory:", "mysql://canary@h", "canary", "postgres://h:canary/d"]
        {
            assert!(!DatabaseUrl::parse(wrong).unwrap_err().contains("canary"), "{wrong}");
        }
    }
}
