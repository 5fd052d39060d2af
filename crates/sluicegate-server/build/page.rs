//! Generates a table of the page's files, which become part of the binary.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Output of `npm run build`. Exists in every checkout, empty until then.
const BUILT: &str = "../../dashboard/dist";

/// Writes `page.rs`: path and bytes of every file of the page; empty if it was not built.
pub(crate) fn generate(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={BUILT}");
    let mut files = Vec::new();
    // The published crate does not include the page.
    if let Ok(root) = Path::new(BUILT).join("page").canonicalize() {
        list(&root, &root, &mut files)?;
    }
    // Sorted by text, which the lookup compares: paths sort differently.
    files.sort();
    let mut table = String::from("&[\n");
    for (path, file) in files {
        writeln!(table, "    ({path:?}, include_bytes!({file:?})),")?;
    }
    table.push_str("]\n");
    fs::write(out.join("page.rs"), table)?;
    Ok(())
}

/// Lists the files of a folder recursively: URL path and file path of each.
fn list(
    root: &Path,
    folder: &Path,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if file.is_dir() {
            list(root, &file, files)?;
        } else {
            let path = file.strip_prefix(root)?;
            let path = path.to_str().ok_or("a file of the page has an odd name")?;
            files.push((format!("/{path}"), file.clone()));
        }
    }
    Ok(())
}
