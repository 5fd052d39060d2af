//! Warnings about files of the settings that other users of this machine can read, write or replace.
//!
//! They are warnings and not errors, because container platforms mount files with such modes.

use std::fs;
use std::path::Path;

use super::load::ConfigFile;
use super::{Config, DatabaseUrl, Origin, Setting};
use crate::private_file::{
    forgeable, is_readable_by_all, is_replaceable_by_all, is_writable_by_all,
};

/// Warnings about the files that these settings name, and about the file that they come from.
pub(super) fn notes(
    config: &Config,
    settings: &[Setting],
    file: Option<&ConfigFile>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(ConfigFile { path, .. }) = file {
        let is_secret = |it: &Setting| it.key.is_secret() && matches!(it.origin, Origin::File(_));
        if settings.iter().any(is_secret) {
            notes.extend(readable("the settings file with its secrets", path));
        }
        notes.extend(writable("the settings file", path));
    }
    let store_key = config.store.tls.key.as_deref().map(|key| ("store.tls_key".to_owned(), key));
    for (setting, key) in config.listen.key_files().chain(store_key) {
        notes.extend([readable(&setting, key), writable(&setting, key)].into_iter().flatten());
    }
    notes.extend(config.rules.file.iter().filter_map(|file| writable("rules.file", file)));
    if let Some(DatabaseUrl::Sqlite(path)) = &config.database.url {
        let reason = fs::metadata(path).ok().and_then(|metadata| forgeable(&metadata, path));
        notes.extend(reason.map(|reason| format!("database.url: {}: {reason}", path.display())));
        notes.extend(replaceable("database.url", path));
    }
    if config.database.url.is_some() {
        let snapshot = config.database.snapshot.as_deref();
        notes.extend(snapshot.and_then(|path| replaceable("database.snapshot", path)));
    }
    notes
}

/// Warning if every user can read a file with a secret.
pub(super) fn readable(setting: &str, path: &Path) -> Option<String> {
    let shown = path.display();
    is_readable_by_all(path).then(|| {
        format!(
            "{setting}: every user of this machine can read {shown}: run `chmod o-r {shown}`, \
             or mount it with another mode"
        )
    })
}

/// Warning if every user can write to a file.
fn writable(setting: &str, path: &Path) -> Option<String> {
    let shown = path.display();
    is_writable_by_all(path).then(|| {
        format!(
            "{setting}: every user of this machine can write to {shown}: check its content, \
             then run `chmod o-w {shown}`"
        )
    })
}

/// Warning if every user can replace a file.
fn replaceable(setting: &str, path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let shown = folder.display();
    is_replaceable_by_all(folder).then(|| {
        format!(
            "{setting}: every user of this machine can replace files in {shown}: \
             run `chmod o-w {shown}`, or use another folder"
        )
    })
}
