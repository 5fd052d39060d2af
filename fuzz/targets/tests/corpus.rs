//! Runs every target over its corpus, on any compiler and without sanitizers.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use sluicegate_fuzz_targets::TARGETS;

/// Maximum bytes of a file in a corpus.
const FILE_BYTES_MAX: u64 = 8192;

/// Maximum number of files in a corpus.
const FILES_MAX: usize = 100;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_holds_on_its_corpus() {
    for (name, target) in TARGETS {
        let files = files(&folder().join(name));
        assert!((1..=FILES_MAX).contains(&files.len()), "{name} has {} files", files.len());
        for file in &files {
            let bytes = fs::read(file).unwrap();
            assert!(bytes.len() as u64 <= FILE_BYTES_MAX, "{} is too long", file.display());
            // If the target panics, this is the last line.
            println!("{}", file.strip_prefix(folder()).unwrap().display());
            target(&bytes);
        }
        println!("{name}: {} files", files.len());
    }
}

#[test]
fn every_target_has_a_binary_and_every_corpus_a_target() {
    let targets: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let names = |folder: PathBuf| -> Vec<_> { files(&folder).into_iter().map(stem).collect() };
    assert_eq!(names(folder()), targets);
    let binaries = folder().join("../fuzz_targets");
    assert_eq!(names(binaries.clone()), targets);
    let manifest = fs::read_to_string(folder().join("../Cargo.toml")).unwrap();
    for name in targets {
        // `make test` does not compile them.
        let binary = fs::read_to_string(binaries.join(format!("{name}.rs"))).unwrap();
        let call = format!("fuzz_target!(|data: &[u8]| sluicegate_fuzz_targets::{name}(data));");
        assert!(binary.contains(&call), "{name}: {binary}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
