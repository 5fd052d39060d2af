//! The snapshot file: the last good rules, overrides and tokens, to start from while the database is down.
//!
//! It is replaced as a whole, and only its owner may read it. It is read only if other users cannot have written it: it
//! names the administrators.

use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluicegate::rules::{FieldError, Override};
use sluicegate::{Algorithm, Quota, Rate, Refill, UnknownName};
use thiserror::Error;

use crate::config::reason;
use crate::data::{
    Loaded, OverrideSpec, Right, StoredCaller, StoredOverride, StoredRule, StoredToken, rule_json,
};
use crate::json::rule::Columns;
use crate::private_file;
use crate::time::Timestamp;

/// Ten thousand rules and a million overrides fit.
const BYTES_MAX: u64 = 512 << 20;

/// Version of the format. A file of another version is refused.
const FORMAT: u32 = 2;

/// Error of the snapshot file.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    /// It cannot be read or written.
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
    /// Its content is wrong.
    #[error("{0}")]
    Content(String),
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    format: u32,
    written_at: Timestamp,
    generation: u64,
    /// As the API shows them.
    rules: Vec<Value>,
    overrides: Vec<OverrideRow>,
    tokens: Vec<TokenRow>,
    /// Absent in files of versions without callers.
    #[serde(default)]
    callers: Vec<CallerRow>,
}

#[derive(Debug, Serialize, Deserialize)]
struct QuotaRow {
    tokens: u64,
    period_us: u64,
    burst_capacity: Option<u64>,
    algorithm: String,
    refill: String,
    max_wait_us: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OverrideRow {
    override_id: u64,
    rule_id: u64,
    subject: String,
    #[serde(flatten)]
    instead: Instead,
    reason: String,
    expires_at: Option<Timestamp>,
    created_by: String,
    created_at: Timestamp,
    version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Instead {
    Quota { quota: QuotaRow },
    Unlimited,
    Blocked,
}

#[derive(Serialize, Deserialize)]
struct TokenRow {
    token_id: u64,
    name: String,
    role: String,
    hash: [u8; 32],
    created_by: String,
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct CallerRow {
    caller_id: u64,
    name: String,
    rights: Vec<String>,
    namespace: Option<String>,
    hash: Option<[u8; 32]>,
    certificate: Option<String>,
    expires_at: Option<Timestamp>,
    created_by: String,
    created_at: Timestamp,
}

/// Writes the rules, overrides, tokens and callers in force.
pub(super) fn write(path: &Path, loaded: &Loaded, now: Timestamp) -> Result<(), FileError> {
    let snapshot = Snapshot {
        format: FORMAT,
        written_at: now,
        generation: loaded.generation,
        rules: loaded.rules.iter().map(rule_json).collect(),
        overrides: loaded.overrides.iter().map(OverrideRow::new).collect(),
        tokens: loaded.tokens.iter().map(TokenRow::new).collect(),
        callers: loaded.callers.iter().map(CallerRow::new).collect(),
    };
    let text = serde_json::to_vec(&snapshot).map_err(|error| content(&error))?;
    Ok(private_file::replace(path, &text)?)
}

/// Reads the rules, overrides, tokens and callers that were in force, and when they were written.
///
/// # Errors
///
/// If the file is invalid, or other users may have written it.
pub(super) fn read(path: &Path) -> Result<(Loaded, Timestamp), FileError> {
    let mut text = Vec::new();
    private_file::open(path)?.take(BYTES_MAX).read_to_end(&mut text)?;
    parse(&text)
}

/// Parses the content of the file.
pub(crate) fn parse(text: &[u8]) -> Result<(Loaded, Timestamp), FileError> {
    let Snapshot { format, written_at, generation, rules, overrides, tokens, callers } =
        serde_json::from_slice(text).map_err(|error| content(&error))?;
    if format != FORMAT {
        return Err(content(&format_args!("its format is {format}, not {FORMAT}")));
    }
    let loaded = Loaded {
        generation,
        rules: rules.iter().map(rule).collect::<Result<_, _>>()?,
        overrides: overrides.into_iter().map(OverrideRow::stored).collect::<Result<_, _>>()?,
        tokens: tokens.into_iter().map(TokenRow::stored).collect::<Result<_, _>>()?,
        callers: callers.into_iter().map(CallerRow::stored).collect(),
    };
    Ok((loaded, written_at))
}

fn content(error: &dyn std::fmt::Display) -> FileError {
    FileError::Content(error.to_string())
}

fn named<T: FromStr<Err = UnknownName>>(text: &str) -> Result<T, FileError> {
    text.parse().map_err(|error| content(&format_args!("`{text}` {error}")))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A rule from its JSON form.
fn rule(shown: &Value) -> Result<StoredRule, FileError> {
    let columns = Columns::deserialize(shown).map_err(|error| content(&error))?;
    let wrong = |errors: Vec<FieldError>| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        content(&errors.join("; "))
    };
    let spec = columns.rule(0).map_err(wrong)?;
    let (Some(created_at), Some(version)) = (columns.created_at(), columns.version()) else {
        return Err(content(&"a rule without created_at or version"));
    };
    // As the database has it: complete, and the same however it was written.
    let spec = spec.build().map_err(wrong)?.spec();
    Ok(StoredRule { spec, created_at, version })
}

impl QuotaRow {
    fn new(quota: &Quota) -> Self {
        let (tokens, period_us) = quota.rate().tokens_and_period_us();
        Self {
            tokens,
            period_us,
            burst_capacity: Some(quota.capacity()),
            algorithm: quota.algorithm().name().into(),
            refill: quota.refill().name().into(),
            max_wait_us: quota.max_wait().map(micros),
        }
    }

    fn algorithm(&self) -> Result<Algorithm, FileError> {
        named(&self.algorithm)
    }

    fn refill(&self) -> Result<Refill, FileError> {
        named(&self.refill)
    }

    fn quota(&self) -> Result<Quota, FileError> {
        let rate = Rate::new(self.tokens, Duration::from_micros(self.period_us));
        let rate = rate.map_err(|error| content(&error))?;
        let max_wait = self.max_wait_us.map(Duration::from_micros);
        let (algorithm, refill) = (self.algorithm()?, self.refill()?);
        Quota::build(rate, algorithm, refill, self.burst_capacity, max_wait)
            .map_err(|error| content(&error))
    }
}

impl OverrideRow {
    fn new(row: &StoredOverride) -> Self {
        let spec = row.spec.clone();
        let instead = match &spec.instead {
            Override::Quota(quota) => Instead::Quota { quota: QuotaRow::new(quota) },
            Override::Unlimited => Instead::Unlimited,
            Override::Blocked => Instead::Blocked,
        };
        Self {
            override_id: row.override_id,
            rule_id: spec.rule_id,
            subject: spec.subject,
            instead,
            reason: spec.reason,
            expires_at: spec.expires_at,
            created_by: row.created_by.clone(),
            created_at: row.created_at,
            version: row.version,
        }
    }

    fn stored(self) -> Result<StoredOverride, FileError> {
        let instead = match self.instead {
            Instead::Quota { quota } => Override::Quota(quota.quota()?),
            Instead::Unlimited => Override::Unlimited,
            Instead::Blocked => Override::Blocked,
        };
        let spec = OverrideSpec {
            rule_id: self.rule_id,
            subject: self.subject,
            instead,
            reason: self.reason,
            expires_at: self.expires_at,
        };
        let (override_id, created_by) = (self.override_id, self.created_by);
        let (created_at, version) = (self.created_at, self.version);
        Ok(StoredOverride { override_id, spec, created_by, created_at, version })
    }
}

impl TokenRow {
    fn new(token: &StoredToken) -> Self {
        Self {
            token_id: token.token_id,
            name: token.name.clone(),
            role: token.role.name().into(),
            hash: token.hash,
            created_by: token.created_by.clone(),
            created_at: token.created_at,
        }
    }

    fn stored(self) -> Result<StoredToken, FileError> {
        Ok(StoredToken {
            token_id: self.token_id,
            role: named(&self.role)?,
            name: self.name,
            hash: self.hash,
            created_by: self.created_by,
            created_at: self.created_at,
        })
    }
}

impl CallerRow {
    fn new(caller: &StoredCaller) -> Self {
        Self {
            caller_id: caller.caller_id,
            name: caller.name.clone(),
            rights: caller.rights.iter().map(|right| right.name().into()).collect(),
            namespace: caller.namespace.clone(),
            hash: caller.hash,
            certificate: caller.certificate.clone(),
            expires_at: caller.expires_at,
            created_by: caller.created_by.clone(),
            created_at: caller.created_at,
        }
    }

    fn stored(self) -> StoredCaller {
        StoredCaller {
            caller_id: self.caller_id,
            // As from the database: rights that do not exist here are none.
            rights: self.rights.iter().filter_map(|right| right.parse::<Right>().ok()).collect(),
            name: self.name,
            namespace: self.namespace,
            hash: self.hash,
            certificate: self.certificate,
            expires_at: self.expires_at,
            created_by: self.created_by,
            created_at: self.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use sluicegate::rules::RuleSpec;
    use sluicegate::{Mode, OnError, Scope};

    use super::*;
    use crate::data::{Rights, Role};

    fn loaded() -> Loaded {
        let spec = |rule_id, key_pattern: &str| RuleSpec {
            rule_id,
            key_pattern: key_pattern.into(),
            scope: Some(Scope::User),
            tokens: Some(999),
            period: Some(Duration::from_micros(62_500_001)),
            burst_capacity: Some(7),
            plan: "free".into(),
            mode: Mode::Shadow,
            on_error: OnError::Deny,
            description: "a \"note\"\n".into(),
            conditions: vec![("endpoint".into(), "/login".into())],
            name: "a name".into(),
            replaces: vec!["one".into(), "another".into()],
            ..RuleSpec::default()
        };
        let at = Timestamp::from_micros(1_785_585_600_000_001);
        let rule = |id, pattern| StoredRule { spec: spec(id, pattern), created_at: at, version: 3 };
        let instead = |override_id, instead| {
            let spec = OverrideSpec {
                rule_id: 1,
                subject: format!("s{override_id}"),
                instead,
                reason: "incident".into(),
                expires_at: Some(at),
            };
            let created_by = "admin".into();
            StoredOverride { override_id, spec, created_by, created_at: at, version: 1 }
        };
        Loaded {
            generation: 12,
            rules: vec![rule(1, "user:{user_id}"), rule(1 << 52, "other:{user_id}")],
            overrides: vec![
                instead(1, Override::Quota("5/minute burst 9".parse().unwrap())),
                instead(2, Override::Unlimited),
                instead(3, Override::Blocked),
            ],
            tokens: vec![StoredToken {
                token_id: 1,
                name: "deploy".into(),
                role: Role::Read,
                hash: [200; 32],
                created_by: "admin".into(),
                created_at: at,
            }],
            callers: vec![StoredCaller {
                caller_id: 7,
                name: "checkout".into(),
                rights: Rights::from_iter([Right::Check, Right::Refund]),
                namespace: Some("team-a".into()),
                hash: Some([201; 32]),
                certificate: Some("checkout.example".into()),
                expires_at: Some(at),
                created_by: "admin".into(),
                created_at: at,
            }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot.json");
        let now = Timestamp::from_micros(1_785_585_600_000_002);
        assert!(matches!(read(&path), Err(FileError::Io(_))));
        write(&path, &loaded(), now).unwrap();
        assert_eq!(read(&path).unwrap(), (loaded(), now));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot.json");
        write(&path, &loaded(), Timestamp::from_micros(0)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("\"format\":2", "\"format\":1"),
            ("shadow", "dark"),
            ("\"role\":\"read\"", "\"role\":\"root\""),
            ("\"kind\":\"blocked\"", "\"kind\":\"?\""),
            ("\"tokens\":5,", "\"tokens\":0,"),
            ("\"rules\":[", "\"rules\":"),
        ] {
            assert!(text.contains(from), "{from}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            assert!(matches!(read(&path), Err(FileError::Content(_))), "{from}");
        }
    }
}
