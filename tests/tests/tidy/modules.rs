//! One module style: a module with parts is `x/mod.rs`, never `x.rs` beside a folder `x`.

use super::sources::below;

#[test]
fn no_file_stands_beside_a_folder_of_its_name() {
    let mut wrong = Vec::new();
    for folder in ["crates", "tests", "bench", "fuzz"] {
        let files: Vec<_> = below(folder, ".rs").into_iter().map(|(file, _)| file).collect();
        wrong.extend(beside_folder(&files).into_iter().map(|file| format!("{folder}/{file}")));
    }
    assert!(wrong.is_empty(), "move x.rs to x/mod.rs:\n{}", wrong.join("\n"));
}

/// The check itself finds a file beside its folder, and no other.
#[test]
fn a_file_beside_its_folder_is_found() {
    let files = ["a/mod.rs", "a/b.rs", "a/b/c.rs", "a/bc/mod.rs", "a/c.rs"].map(str::to_owned);
    assert_eq!(beside_folder(&files), ["a/b.rs"]);
}

/// Files `x.rs` for which there are files below `x/`.
fn beside_folder(files: &[String]) -> Vec<&str> {
    let has_folder = |file: &&str| {
        let folder = format!("{}/", file.trim_end_matches(".rs"));
        files.iter().any(|other| other.starts_with(&folder))
    };
    files.iter().map(String::as_str).filter(has_folder).collect()
}
