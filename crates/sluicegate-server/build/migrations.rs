//! Generates the list of migrations from the files in `migrations/`.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Folder with one folder of scripts per dialect.
const FOLDER: &str = "migrations";

/// Writes `migrations.rs`: a `Step` for each `NNNN_name.up.sql`. Its version is the number, its description the first
/// sentence of the script for PostgreSQL.
pub(crate) fn generate(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let root = Path::new(FOLDER).canonicalize()?;
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("postgres"))? {
        let name = entry?.file_name().into_string().map_err(|_| "a migration has an odd name")?;
        names.extend(name.strip_suffix(".up.sql").map(str::to_owned));
    }
    names.sort();
    let mut steps = String::from("&[\n");
    for name in names {
        let file = |dialect: &str, way: &str| root.join(dialect).join(format!("{name}.{way}.sql"));
        let scripts = |dialect: &str| {
            let (up, down) = (file(dialect, "up"), file(dialect, "down"));
            format!("Scripts {{ up: include_str!({up:?}), down: include_str!({down:?}) }}")
        };
        let version: i64 = name.split('_').next().unwrap_or_default().parse()?;
        let script = fs::read_to_string(file("postgres", "up"))?;
        let comment = script.lines().next().and_then(|line| line.strip_prefix("-- "));
        let comment = comment.ok_or("a migration begins with a comment that describes it")?;
        let description = comment.split('.').next().unwrap_or_default();
        let (sqlite, postgres) = (scripts("sqlite"), scripts("postgres"));
        writeln!(
            steps,
            "    Step {{ version: {version}, description: {description:?}, sqlite: {sqlite}, postgres: {postgres} }},"
        )?;
    }
    steps.push_str("]\n");
    fs::write(out.join("migrations.rs"), steps)?;
    Ok(())
}
