//! A wall clock that a test can step, for any child process.
//!
//! A small library (`shim/clock.c`) is preloaded into the child and shifts its wall clock. Monotonic clocks
//! stay unchanged, as when an administrator or a time daemon steps the clock of a machine.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::NamedTempFile;

const SOURCE: &str = include_str!("../shim/clock.c");

/// Variable with the path of the offset file, for the library.
const VARIABLE: &str = "SLUICEGATE_CLOCK_OFFSET";

/// Time for which a server may use a cached clock.
const SEEN_WITHIN: Duration = Duration::from_millis(2);

/// An offset that any number of child processes can share. Clones share the clock.
#[derive(Clone, Debug)]
pub struct ClockShim {
    file: Arc<NamedTempFile>,
    offset_us: Arc<Mutex<i64>>,
}

/// Direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the future.
    Forward,
    /// Into the past.
    Back,
}

impl ClockShim {
    /// A clock without an offset. The library is compiled on first use.
    ///
    /// # Panics
    ///
    /// If gcc is missing or fails.
    pub fn new() -> Self {
        library();
        let file = NamedTempFile::with_prefix("sluicegate-clock-").expect("a temporary file");
        let shim = Self { file: Arc::new(file), offset_us: Arc::default() };
        shim.set_us(0);
        shim
    }

    /// Steps the clock of every process that was started with this shim, and returns when they see it: Valkey
    /// 9 uses its monotonic clock for up to a millisecond.
    ///
    /// # Panics
    ///
    /// If the sum of all steps exceeds 64 bits of microseconds.
    pub fn step(&self, by: Duration, way: Step) {
        let us = i64::try_from(by.as_micros()).expect("a step fits");
        let mut offset_us = self.offset_us.lock();
        *offset_us = match way {
            Step::Forward => offset_us.checked_add(us),
            Step::Back => offset_us.checked_sub(us),
        }
        .expect("the sum of all steps fits");
        self.write(*offset_us);
    }

    /// Sets the offset; takes effect as [`Self::step`] does.
    pub fn set_us(&self, offset: i64) {
        let mut offset_us = self.offset_us.lock();
        *offset_us = offset;
        self.write(offset);
    }

    /// Offset of the clock in microseconds.
    pub fn offset_us(&self) -> i64 {
        *self.offset_us.lock()
    }

    /// Makes a process that is to be started use this clock, and its children too.
    pub fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env(VARIABLE, self.file.path());
    }

    fn write(&self, offset_us: i64) {
        // One aligned write of eight bytes: a reader sees the old or the new value.
        self.file
            .as_file()
            .write_all_at(&offset_us.to_ne_bytes(), 0)
            .expect("the offset is written");
        std::thread::sleep(SEEN_WITHIN);
    }
}

impl Default for ClockShim {
    fn default() -> Self {
        Self::new()
    }
}

/// The compiled library, in the folder for temporary files of this build.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = target_folder().join("sluicegate-clock.so");
        if fs::read(library.with_extension("c")).is_ok_and(|built| built == SOURCE.as_bytes())
            && library.exists()
        {
            return library;
        }
        compile(&library);
        library
    })
}

/// Folder of this test's program, in the build's target folder.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    program.parent().expect("a program is in a folder").to_owned()
}

/// Compiles to a temporary file and renames it, so that concurrent tests never see a partial file.
fn compile(library: &Path) {
    let folder = library.parent().expect("a file is in a folder");
    let work = tempfile::tempdir_in(folder).expect("a temporary folder");
    let (source, object) = (work.path().join("clock.c"), work.path().join("clock.so"));
    fs::write(&source, SOURCE).expect("the source is written");
    let output = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"])
        .args([&object, &source])
        .arg("-ldl")
        .output()
        .expect("gcc can be run (`make servers` installs it)");
    assert!(output.status.success(), "gcc failed:\n{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&object, library).expect("the library is moved");
    fs::rename(&source, library.with_extension("c")).expect("the source is moved");
}
