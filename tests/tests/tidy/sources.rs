//! Files of the repository, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the crate lies in a folder of the repository").to_owned()
}

/// Text files below a folder of the repository whose names end in `ending`, as paths from that folder and contents.
pub(crate) fn below(folder: &str, ending: &str) -> Vec<(String, String)> {
    let start = root().join(folder);
    let mut found = Vec::new();
    collect(&start, &start, ending, &mut found);
    assert!(!found.is_empty(), "no {ending} below {folder}");
    found.sort();
    found
}

/// Folders with what is built or fetched.
const NOT_OURS: [&str; 5] = ["target", "node_modules", "dist", ".git", "__pycache__"];

fn collect(start: &Path, folder: &Path, ending: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !NOT_OURS.contains(&name) {
                collect(start, &path, ending, found);
            }
        } else if name.ends_with(ending)
            && let Ok(text) = fs::read_to_string(&path)
        {
            let name = path.strip_prefix(start).expect("below the start").display().to_string();
            found.push((name, text));
        }
    }
}
