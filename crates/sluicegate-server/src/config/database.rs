//! Where rules, overrides, tokens and violations are kept.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// `[database]`
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Where it is; there is none if none.
    pub url: Option<DatabaseUrl>,
    /// The file of the last good rules.
    pub snapshot: Option<PathBuf>,
    /// The longest wait of a call.
    pub timeout: Duration,
}

/// The address of a database. What it shows of itself has no password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A server of PostgreSQL, by its whole URL.
    Postgres(Box<str>),
}

impl DatabaseUrl {
    /// The address that a text names; none if it is empty.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without repeating it: it may hold a password.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.starts_with(":memory:") || path.contains('?') {
                return Err("after `sqlite:` comes the path of a file, and nothing else".into());
            }
            return Ok(Some(Self::Sqlite(path.into())));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match text.parse::<sqlx::postgres::PgConnectOptions>() {
                Ok(_) => Ok(Some(Self::Postgres(text.into()))),
                Err(_) => Err("is no URL such as postgres://user@host:5432/database".into()),
            };
        }
        Err("begins with neither `sqlite:` nor `postgres://`".into())
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
