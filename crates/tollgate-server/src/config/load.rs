//! From the sources to the settings: each source over the one before, and all mistakes at once.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::error::{ConfigErrors, Place, Problem};
use super::keys::{KEYS, Key};
use super::{Config, StoreUrl, env, file};

/// The file that is read if there is one and no other is named.
pub const FILE_NAME: &str = "tollgate.toml";

/// Settings take a screen; what is longer than this is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where settings come from.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file that was named; if none, [`FILE_NAME`] in the working directory, if it is there.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags that were given, and their values.
    pub flags: Vec<(&'static Key, String)>,
}

/// Settings, and where each came from.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The same as text, in the order of [`KEYS`], for people.
    pub settings: Vec<Setting>,
    /// The file that was read.
    pub file: Option<ConfigFile>,
}

/// A file of settings.
#[derive(Debug)]
pub struct ConfigFile {
    /// Its path, as it was given.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A setting's value and where it came from.
#[derive(Debug)]
pub struct Setting {
    /// Which.
    pub key: &'static Key,
    /// Its value without passwords, or that there is one where it is a secret.
    pub shown: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything else.
    Default,
    /// The file, at these bytes.
    File(Range<usize>),
    /// An environment variable.
    Variable(String),
    /// A flag, without its dashes.
    Flag(&'static str),
}

/// Settings while the sources are read.
pub(super) struct Loader {
    config: Config,
    settings: Vec<Setting>,
    pub(super) problems: Vec<Problem>,
}

impl Sources {
    /// Reads them all.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in any of them.
    pub fn load(&self) -> Result<Loaded, ConfigErrors> {
        let mut loader = Loader::new();
        let file = self.read_file().unwrap_or_else(|problem| {
            loader.problems.push(problem);
            None
        });
        if let Some(file) = &file {
            file::read(file, &mut loader);
        }
        env::read(&self.environment, &mut loader);
        for (key, text) in &self.flags {
            if let Some(flag) = key.flag {
                loader.give(key, text, Origin::Flag(flag));
            }
        }
        // Only sound settings can be held against each other.
        if loader.problems.is_empty() {
            loader.check_together();
        }
        if loader.problems.is_empty() {
            Ok(Loaded { config: loader.config, settings: loader.settings, file })
        } else {
            Err(ConfigErrors { file, problems: loader.problems })
        }
    }

    fn read_file(&self) -> Result<Option<ConfigFile>, Problem> {
        let path = self.file.as_deref().unwrap_or(Path::new(FILE_NAME));
        match read_bounded(path, FILE_BYTES_MAX) {
            Ok(text) => Ok(Some(ConfigFile { path: path.into(), text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.file.is_none() => {
                Ok(None)
            }
            Err(error) => Err(Problem::new(
                Place::Nowhere,
                format!("cannot read {}: {}", path.display(), reason(&error)),
            )),
        }
    }
}

/// The text of a file that is not too long.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<String> {
    if fs::metadata(path)?.len() > bytes_max {
        let message = format!("it is longer than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read_to_string(path)
}

/// What an error says, without the number of the operating system.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

impl Loader {
    fn new() -> Self {
        let setting =
            |key: &'static Key| Setting { key, shown: key.default_text(), origin: Origin::Default };
        Self {
            config: Config::default(),
            settings: KEYS.iter().map(setting).collect(),
            problems: Vec::new(),
        }
    }

    /// Takes a value from a source.
    pub(super) fn give(&mut self, key: &'static Key, text: &str, origin: Origin) {
        if let Err(wrong) = key.set(&mut self.config, text) {
            self.problems.push(Problem::new(Place::from(&origin), wrong));
            return;
        }
        let shown = key.shown(text);
        if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key.name == key.name)
        {
            (setting.shown, setting.origin) = (shown, origin);
        }
    }

    /// Notes that a setting of a later version was given.
    pub(super) fn note_later(&mut self, name: &str) {
        self.config
            .notes
            .push(format!("{name} comes with a later version, and does nothing in this one"));
    }

    fn origin(&self, name: &str) -> Origin {
        let setting = self.settings.iter().find(|setting| setting.key.name == name);
        setting.map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// What no setting alone can say.
    fn check_together(&mut self) {
        let is_database =
            |setting: &Setting| setting.key.name == "rules.source" && setting.shown == "database";
        if self.settings.iter().any(is_database) {
            self.note_later("rules.source = \"database\"");
        }
        if let Err((key, message)) = self.config.store.check() {
            self.problems.push(Problem::new(Place::from(&self.origin(key)), message));
        }
        let has_files = !self.config.store.tls.is_empty();
        if has_files && matches!(self.config.store.url, StoreUrl::Memory) {
            let note = "store.tls_ca, store.tls_certificate and store.tls_key do nothing: the store is `memory:`";
            self.config.notes.push(note.into());
        }
        let place = Place::from(&self.origin("listen.http"));
        let Some(address) = self.config.listen.http else {
            let message = "every listener is switched off: there is nothing to serve";
            self.problems.push(Problem::new(place, message));
            return;
        };
        if !is_loopback(address) && self.config.admin.token.is_none() {
            let message =
                format!("others can reach {address}, and there is no token for administration");
            let help = "write one to a file and name that in TOLLGATE_ADMIN_TOKEN_FILE, \
                        or set token in [admin], or listen on 127.0.0.1";
            self.problems.push(Problem::new(place, message).help(help));
        }
    }
}

/// Whether only this machine can reach an address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
