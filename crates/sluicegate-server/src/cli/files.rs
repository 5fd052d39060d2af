//! Files that commands read and write; `-` is standard input or output.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::failure::{CliResult, Failure};
use super::output::Output;
use crate::config::reason;
use crate::observe::logging::escaped;

/// Mode of a new file that only its owner may read.
const PRIVATE_MODE: u32 = 0o600;

/// Destination of data that is written in parts.
#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File(PathBuf, File),
}

/// Reads a file, or standard input for `-`, of at most `bytes_max` bytes.
pub(super) fn read(path: &Path, bytes_max: u64) -> CliResult<String> {
    let cannot = |error: &io::Error| {
        Failure::usage(format!("cannot read {}: {}", path.display(), reason(error)))
    };
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(bytes_max + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_string(&mut text))
    };
    let length = read.map_err(|error| cannot(&error))?;
    if length as u64 > bytes_max {
        return Err(Failure::usage(format!("{} has more than {bytes_max} bytes", path.display())));
    }
    Ok(text)
}

/// Writes a file, or to standard output for `-` or no path.
pub(super) fn write(path: Option<&Path>, text: &str) -> CliResult<()> {
    match path {
        None => Output::data(&for_stdout(text)),
        Some(path) if path == Path::new("-") => Output::data(&for_stdout(text)),
        Some(path) => fs::write(path, text).map_err(|error| cannot_write(path, &error)),
    }
}

impl Sink {
    /// A file, readable by its owner only if it is new, or standard output for `-` or no path.
    pub(super) fn private(path: Option<&Path>) -> CliResult<Self> {
        Self::open(path, OpenOptions::new().create(true).truncate(true))
    }

    /// Like [`private`](Self::private), but the file must not exist: an existing one may be readable by others.
    pub(super) fn secret(path: Option<&Path>) -> CliResult<Self> {
        Self::open(path, OpenOptions::new().create_new(true))
    }

    fn open(path: Option<&Path>, options: &mut OpenOptions) -> CliResult<Self> {
        match path.filter(|path| *path != Path::new("-")) {
            None => Ok(Self::Stdout),
            Some(path) => {
                let file = options.write(true).mode(PRIVATE_MODE).open(path);
                let file = file.map_err(|error| cannot_write(path, &error))?;
                Ok(Self::File(path.into(), file))
            }
        }
    }

    /// Removes the file, to which nothing was written.
    pub(super) fn discard(self) {
        if let Self::File(path, _) = self {
            // If that fails, an empty file stays.
            let _ = fs::remove_file(path);
        }
    }

    /// Writes a part. Returns `false` if the pipe is closed.
    pub(super) fn write(&mut self, text: &str) -> CliResult<bool> {
        match self {
            Self::Stdout => Output::piece(&for_stdout(text)),
            Self::File(path, file) => {
                file.write_all(text.as_bytes()).map_err(|error| cannot_write(path, &error))?;
                Ok(true)
            }
        }
    }
}

/// Data for standard output: unchanged, except that a terminal gets no control characters that clients have chosen.
fn for_stdout(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() {
        escaped(&text.replace("\r\n", "\n"), true).into_owned().into()
    } else {
        text.into()
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::unavailable(format!("cannot write {}: {}", path.display(), reason(error)))
}
