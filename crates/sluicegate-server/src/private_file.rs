//! Files with secrets: written for their owner alone, and checked for access by other users.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// Mode of new files: only the owner may read and write.
const MODE: u32 = 0o600;

const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
const OTHERS_WRITE: u32 = 0o002;
const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o001;
/// On a directory: only the owner of a file may rename or delete it.
const STICKY: u32 = 0o1000;

/// Age from which a temporary file is not one that another process is writing.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);
/// Maximum number of entries of a folder that are searched for leftovers.
const ENTRIES_MAX: usize = 10_000;

/// Creates a file that only its owner may read. Fails if the path exists, even as a link that leads nowhere.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// Replaces a file as a whole: readers see the old content or the new one. The new content is written beside it, under
/// a name that other users cannot guess, so they cannot have prepared a link there. Files that remained beside it because
/// a process was killed between creating and renaming one are removed.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    let beside = Path::new(&beside);
    let mut file = create(beside)?;
    let replaced = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(beside, path));
    // The content is complete whether or not the following succeeds; after an error, the first one is reported.
    match replaced {
        Ok(()) => drop(remove_leftovers(path, &file)),
        Err(_) => drop(fs::remove_file(beside)),
    }
    replaced
}

/// Removes old temporary files of this path that belong to the owner of the file just written.
fn remove_leftovers(path: &Path, written: &File) -> io::Result<()> {
    let (Some(folder), Some(name)) = (folder(path), path.file_name()) else { return Ok(()) };
    let written = written.metadata()?;
    let old = written.modified()?.checked_sub(LEFTOVER_AGE);
    for entry in fs::read_dir(folder)?.take(ENTRIES_MAX) {
        let entry = entry?;
        if !is_temporary(&entry.file_name(), name) {
            continue;
        }
        // Of a link, this is the link itself.
        let found = entry.metadata()?;
        let is_old = old.is_some_and(|old| found.modified().is_ok_and(|at| at < old));
        if found.is_file() && found.uid() == written.uid() && is_old {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// True for the names that [`replace`] gives to temporary files: a dot and 16 hexadecimal digits after the name.
fn is_temporary(candidate: &OsStr, name: &OsStr) -> bool {
    let rest = candidate.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let digits = rest.and_then(|rest| rest.strip_prefix(b"."));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Opens a file whose content other users cannot have chosen.
///
/// # Errors
///
/// If it is not a regular file, belongs to a user other than this one and root, or can be written by others. The message
/// says how to mend it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Opening a pipe that another user has put there would otherwise wait for a writer.
    let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    match forgeable(&file.metadata()?, path) {
        None => Ok(file),
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
    }
}

/// The reason why other users may have chosen the content of a file, if they may.
pub(crate) fn forgeable(metadata: &Metadata, path: &Path) -> Option<String> {
    let (owner, mode, path) = (metadata.uid(), metadata.mode() & 0o7777, path.display());
    if !metadata.is_file() {
        return Some("it is not a regular file".into());
    }
    if owner != 0 && owner != geteuid().as_raw() {
        return Some(format!(
            "it belongs to another user (id {owner}), who could have forged it: remove it, or check its content and change its owner"
        ));
    }
    (mode & GROUP_OR_OTHERS_WRITE != 0).then(|| {
        format!("other users can write to it (mode {mode:o}): check its content, then run `chmod 600 {path}`")
    })
}

/// True if every user of this machine can read the file; also false if that cannot be found out.
pub(crate) fn is_readable_by_all(path: &Path) -> bool {
    is_in_open_folder(path)
        && fs::metadata(path).is_ok_and(|metadata| metadata.mode() & OTHERS_READ != 0)
}

/// True if every user of this machine can write to the file; also false if that cannot be found out.
pub(crate) fn is_writable_by_all(path: &Path) -> bool {
    is_in_open_folder(path)
        && fs::metadata(path).is_ok_and(|metadata| metadata.mode() & OTHERS_WRITE != 0)
}

/// True if every user of this machine can reach files in the folder of this path.
fn is_in_open_folder(path: &Path) -> bool {
    folder(path).is_none_or(|folder| {
        fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & OTHERS_ENTER != 0)
    })
}

/// Folder of a path; `None` for the root.
fn folder(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    Some(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// True if every user of this machine can replace the files in this folder; also false if that cannot be found out.
pub(crate) fn is_replaceable_by_all(folder: &Path) -> bool {
    fs::metadata(folder)
        .is_ok_and(|metadata| metadata.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_are_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("target"), folder.path().join("file"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let written = fs::symlink_metadata(&path).unwrap();
        assert!(written.is_file());
        assert_eq!(written.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
        // A link that leads nowhere creates nothing.
        fs::remove_file(&path).unwrap();
        symlink(folder.path().join("nowhere"), &path).unwrap();
        create(&path).unwrap_err();
        assert!(!folder.path().join("nowhere").exists());
    }

    #[test]
    fn a_failed_replacement_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folder");
        fs::create_dir(&path).unwrap();
        replace(&path, b"new").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_left_by_a_killed_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let old = std::time::SystemTime::UNIX_EPOCH;
        for (name, modified, is_removed) in [
            ("file.0123456789abcdef", Some(old), true),
            ("file.fedcba9876543210", Some(old), true),
            // Another process may be writing it.
            ("file.00000000deadbeef", None, false),
            ("file.0123456789abcde", Some(old), false),
            ("file.0123456789abcdeg", Some(old), false),
            ("other.0123456789abcdef", Some(old), false),
        ] {
            let beside = folder.path().join(name);
            let file = create(&beside).unwrap();
            if let Some(modified) = modified {
                file.set_modified(modified).unwrap();
            }
            replace(&path, b"new").unwrap();
            assert_eq!(beside.exists(), !is_removed, "{name}");
        }
        let link = folder.path().join("file.aaaaaaaaaaaaaaaa");
        symlink(&path, &link).unwrap();
        replace(&path, b"newer").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
    }

    #[test]
    fn content_that_others_can_choose_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, b"content").unwrap();
        for mode in [0o600, 0o400, 0o644, 0o640] {
            set_mode(&path, mode);
            open(&path).unwrap();
        }
        for mode in [0o602, 0o620, 0o666, 0o777] {
            set_mode(&path, mode);
            let refused = open(&path).unwrap_err().to_string();
            let remedy = format!("(mode {mode:o}): check its content, then run `chmod 600 ");
            assert!(refused.contains(&remedy), "{refused}");
        }
        set_mode(&path, 0o600);
        // Only root can give a file away.
        if chown(&path, Some(65_534), None).is_ok() {
            let refused = open(&path).unwrap_err().to_string();
            assert!(refused.contains("belongs to another user (id 65534)"), "{refused}");
        }
        let refused = open(folder.path()).unwrap_err().to_string();
        assert_eq!(refused, "it is not a regular file");
        let missing = open(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn access_by_all_users_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        fs::write(&path, "key").unwrap();
        for (of_folder, of_file, is_readable, is_writable) in [
            (0o755, 0o644, true, false),
            (0o755, 0o666, true, true),
            (0o755, 0o660, false, false),
            (0o700, 0o666, false, false),
        ] {
            set_mode(folder.path(), of_folder);
            set_mode(&path, of_file);
            assert_eq!(is_readable_by_all(&path), is_readable, "{of_folder:o} {of_file:o}");
            assert_eq!(is_writable_by_all(&path), is_writable, "{of_folder:o} {of_file:o}");
        }
        assert!(!is_readable_by_all(&folder.path().join("missing")));
        for (mode, is_replaceable) in [(0o777, true), (0o1777, false), (0o755, false)] {
            set_mode(folder.path(), mode);
            assert_eq!(is_replaceable_by_all(folder.path()), is_replaceable, "{mode:o}");
        }
    }
}
