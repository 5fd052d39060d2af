//! The caller of a suite that runs again with callers configured.
//!
//! With `SLUICEGATE_TEST_CALLERS=1`, every service that a test starts has the caller `suite` in its database, with the
//! rights of an anonymous client (all but `refund`) and no namespace, and the helpers that send requests authenticate as
//! this caller unless a test sends its own credentials. Without the variable nothing of this happens.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::Launch;

/// Environment variable that turns it on.
const VARIABLE: &str = "SLUICEGATE_TEST_CALLERS";
/// Name of the caller.
const NAME: &str = "suite";
/// Database of a service whose settings name none.
const DATABASE: &str = "sqlite:sluicegate.db";

/// Paths of the HTTP listener that need a caller.
const DATA_PATHS: [&str; 6] = [
    "/v1/check",
    "/v1/check/batch",
    "/v1/take",
    "/v1/refund",
    "/json",
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
];

/// Endings of the files of an SQLite database: what it contains, and what is not yet merged.
const ENDINGS: [&str; 2] = ["", "-wal"];

/// Token of the caller, and the files of an SQLite database that contains it.
struct SuiteCaller {
    token: String,
    files: [Vec<u8>; ENDINGS.len()],
}

/// The caller of this run; `None` without the variable. Created once.
fn suite_caller() -> Option<&'static SuiteCaller> {
    static CALLER: OnceLock<Option<SuiteCaller>> = OnceLock::new();
    let create = || {
        std::env::var_os(VARIABLE).filter(|value| value != "0")?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sluicegate.db");
        let token = create_in(&format!("sqlite:{}", file.display())).unwrap();
        let file = file.display();
        let files = ENDINGS.map(|ending| fs::read(format!("{file}{ending}")).unwrap_or_default());
        Some(SuiteCaller { token, files })
    };
    CALLER.get_or_init(create).as_ref()
}

/// Migrates a database, creates the caller in it, and returns the caller's token; the error is the output of a command.
fn create_in(url: &str) -> Result<String, String> {
    let rights = "check,take,authorize";
    let run = |arguments: &[&str]| {
        let done = Launch::new(arguments).env("SLUICEGATE_DATABASE_URL", url).run();
        if done.code == Some(0) { Ok(done.stdout.trim().to_owned()) } else { Err(done.stderr) }
    };
    run(&["migrate"])?;
    run(&["callers", "create", NAME, "--may", rights])
}

/// Puts the caller into the database of a service that is about to start in this folder. A file that exists stays as it
/// is, and a database that does not answer is left alone.
pub(super) fn install(folder: &Path, url: Option<&str>) {
    let Some(caller) = suite_caller() else { return };
    let url = url.unwrap_or(DATABASE);
    if let Some(file) = url.strip_prefix("sqlite:") {
        let mut new = fs::OpenOptions::new();
        new.write(true).create_new(true).mode(0o600);
        for (ending, bytes) in ENDINGS.iter().zip(&caller.files) {
            let Ok(mut file) = new.open(folder.join(format!("{file}{ending}"))) else { return };
            file.write_all(bytes).unwrap();
        }
    } else if create_in(url).is_ok() {
        // The command makes a token of its own.
        let hash: [u8; 32] = Sha256::digest(&caller.token).into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let update = async {
            let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(url).await?;
            sqlx::query("UPDATE rate_limit_callers SET hash = $1 WHERE name = $2")
                .bind(&hash[..])
                .bind(NAME)
                .execute(&mut connection)
                .await
        };
        runtime.block_on(update).unwrap();
    }
}

/// Value of `Authorization` for requests that name no credentials; `None` without the variable.
pub(crate) fn suite_bearer() -> Option<String> {
    suite_caller().map(|caller| format!("Bearer {}", caller.token))
}

/// Header field with the credentials for a path, such as `authorization: Bearer sg_...`; `None` for paths that need no
/// caller, and without the variable.
fn suite_field(path: &str) -> Option<(&'static str, String)> {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        "/v1/authorize" => Some(("x-sluicegate-token", suite_caller()?.token.clone())),
        path if DATA_PATHS.contains(&path) => Some(("authorization", suite_bearer()?)),
        _ => None,
    }
}

/// Line of a header with the credentials for a path, for requests that a test writes itself; may be empty.
pub(crate) fn suite_line(path: &str) -> String {
    suite_field(path).map_or_else(String::new, |(name, value)| format!("{name}: {value}\r\n"))
}
