//! Loading: reads all sources in order of precedence, and collects all errors.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::error::{ConfigErrors, Place, Problem};
use super::keys::{Key, keys};
use super::{Config, Door, Privacy, Record, RulesFrom, ServedOn, StoreUrl, env, file, files};

/// File that is read if it exists and no other is named.
pub const FILE_NAME: &str = "sluicegate.toml";

/// Maximum size of a settings file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Minimum length of a secret: shorter ones can be guessed by brute force.
const SECRET_BYTES_MIN: usize = 16;

/// Sources of settings.
#[derive(Debug, Default)]
pub struct Sources {
    /// File that was named; if none, [`FILE_NAME`] in the working directory, if it exists.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags with their values.
    pub flags: Vec<(&'static Key, String)>,
}

/// Settings, and the origin of each.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The same as text, in the order of [`keys`].
    pub settings: Vec<Setting>,
    /// The file that was read.
    pub file: Option<ConfigFile>,
}

/// A file of settings.
#[derive(Debug)]
pub struct ConfigFile {
    /// Path, as it was given.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
}

impl ConfigFile {
    /// A path in the file, which is relative to the file's folder.
    pub(super) fn resolve(&self, path: &str) -> String {
        let folder = self.path.parent().unwrap_or(&self.path);
        folder.join(path).to_string_lossy().into_owned()
    }
}

/// A setting's value and origin.
#[derive(Debug)]
pub struct Setting {
    /// The setting.
    pub key: &'static Key,
    /// Value without passwords; a placeholder if it is a secret.
    pub shown: String,
    /// Source of the value.
    pub origin: Origin,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The setting's default.
    Default,
    /// The file, at this byte range.
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
    /// Loads all sources and checks the settings against each other.
    ///
    /// # Errors
    ///
    /// All errors of all sources.
    pub fn load(&self) -> Result<Loaded, ConfigErrors> {
        self.load_and(Loader::check_together)
    }

    /// Loads all sources without checking settings against each other, for commands that need few of them: a listener
    /// without a token, for example, concerns only a server.
    ///
    /// # Errors
    ///
    /// All errors of single settings.
    pub fn load_apart(&self) -> Result<Loaded, ConfigErrors> {
        self.load_and(|_, _| {})
    }

    fn load_and(
        &self,
        check: impl FnOnce(&mut Loader, Option<&ConfigFile>),
    ) -> Result<Loaded, ConfigErrors> {
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
        // Only valid settings can be checked against each other.
        if loader.problems.is_empty() {
            check(&mut loader, file.as_ref());
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

/// Message of an I/O error, in lower case and without the operating system's number.
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
            settings: keys().map(setting).collect(),
            problems: Vec::new(),
        }
    }

    /// Adds a warning.
    pub(super) fn note(&mut self, note: String) {
        self.config.notes.push(note);
    }

    /// Sets a value from a source, or records the error.
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

    fn origin(&self, name: &str) -> Origin {
        let setting = self.settings.iter().find(|setting| setting.key.name == name);
        setting.map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// Checks settings against each other.
    fn check_together(&mut self, file: Option<&ConfigFile>) {
        self.check_rules();
        self.check_audit();
        self.check_tls();
        if let Err((key, message)) = self.config.store.check() {
            self.problems.push(Problem::new(Place::from(&self.origin(key)), message));
        }
        let has_files = !self.config.store.tls.is_empty();
        if has_files && matches!(self.config.store.url, StoreUrl::Memory) {
            let note = "store.tls_ca, store.tls_certificate and store.tls_key do nothing: the store is `memory:`";
            self.config.notes.push(note.into());
        }
        self.check_listeners();
        self.check_password();
        self.check_anonymous();
        self.check_token();
        let notes = files::notes(&self.config, &self.settings, file);
        self.config.notes.extend(notes);
    }
}

impl Loader {
    fn check_listeners(&mut self) {
        if self.config.listen.addresses().next().is_none() {
            let place = Place::from(&self.origin("listen.http"));
            let message = "all listeners are disabled: enable one of listen.http, listen.grpc, listen.resp and listen.admin";
            self.problems.push(Problem::new(place, message));
        }
        if !self.config.listen.proxied.is_empty() && self.config.proxies.trusted.is_empty() {
            let place = Place::from(&self.origin("listen.proxy_protocol"));
            let message =
                "listen.proxy_protocol needs trusted proxies, and proxies.trusted is empty";
            let help = "set trusted in [proxies] to the networks of your proxies";
            self.problems.push(Problem::new(place, message).help(help));
        }
        self.check_administration();
    }

    /// Requires a token if other machines can reach the administration.
    fn check_administration(&mut self) {
        let listen = &self.config.listen;
        let door = listen.admin_door();
        if let Some(address) = &listen.of(door).address
            && !listen.is_local(door)
            && self.config.admin.token.is_none()
        {
            let setting = if address.is_of_this_machine() {
                // A proxy on this machine forwards requests of others.
                "listen.proxy_protocol"
            } else {
                door.setting()
            };
            let place = Place::from(&self.origin(setting));
            let message = format!(
                "other machines can reach the administration at {address}, and admin.token is not set"
            );
            let help = "write a token to a file and name the file in SLUICEGATE_ADMIN_TOKEN_FILE, \
                        or set token in [admin], or set listen.admin to an address of this machine, such as 127.0.0.1:8082";
            self.problems.push(Problem::new(place, message).help(help));
        }
        let chosen = [("listen.health", listen.health), ("listen.metrics", listen.metrics)];
        for (setting, on) in chosen {
            let (door, address) = match on {
                ServedOn::Both => continue,
                ServedOn::Http => (Door::Http, &listen.http.address),
                ServedOn::Admin => (Door::Admin, &listen.admin.address),
            };
            if address.is_none() {
                let of = door.setting();
                let note = format!("{setting} is `{}`, and {of} is empty", door.name());
                self.config.notes.push(note);
            }
        }
    }

    /// Warns if the password of the Redis protocol is short.
    fn check_password(&mut self) {
        let listen = &self.config.listen;
        let password = self.config.resp.password.as_ref().filter(|_| listen.resp.address.is_some());
        if password.is_some_and(|password| password.expose().len() < SECRET_BYTES_MIN) {
            self.config.notes.push(format!(
                "resp.password has less than {SECRET_BYTES_MIN} bytes and can be guessed: \
                 generate one with `openssl rand -hex 32`"
            ));
        }
    }

    /// Warns if other machines may use data listeners without proving anything.
    fn check_anonymous(&mut self) {
        if self.config.listen.is_anonymous_allowed
            && let Some(open) = self.config.open_listeners_shown()
        {
            self.config.notes.push(format!(
                "other machines can reach {open} and charge every bucket without a caller, because listen.anonymous is true"
            ));
        }
    }

    /// Requires a token that cannot be guessed.
    fn check_token(&mut self) {
        let token = self.config.admin.token.as_ref();
        if token.is_some_and(|token| token.expose().len() < SECRET_BYTES_MIN) {
            let place = Place::from(&self.origin("admin.token"));
            let message = format!("admin.token must have at least {SECRET_BYTES_MIN} bytes");
            let help = "generate one with `openssl rand -hex 32`: a short token can be guessed";
            self.problems.push(Problem::new(place, message).help(help));
        }
    }

    /// A file that is named is where rules come from, unless the database was asked for in the same place or a
    /// stronger one.
    fn check_rules(&mut self) {
        let (file, source) = (self.origin("rules.file"), self.origin("rules.source"));
        let rules = &mut self.config.rules;
        if rules.file.is_some() && rules.source == RulesFrom::Database {
            if file.rank() > source.rank() {
                rules.source = RulesFrom::File;
            } else {
                let message = "rules come from the database, and a file of rules is named as well";
                let help = "set source in [rules] to \"file\", or name no file";
                self.problems.push(Problem::new(Place::from(&source), message).help(help));
            }
        }
        if self.config.rules.source == RulesFrom::Database && self.config.database.url.is_none() {
            let message = "rules.source is \"database\", and database.url is empty";
            let help = "set url in [database], or source in [rules] to \"file\"";
            let place = Place::from(&self.origin("database.url"));
            self.problems.push(Problem::new(place, message).help(help));
        }
    }

    fn check_audit(&mut self) {
        if self.config.database.url.is_none() {
            // No database to record in.
            self.config.audit.record = Record::Nothing;
        }
        let audit = &self.config.audit;
        if audit.privacy == Privacy::Hashed && audit.privacy_key.is_none() {
            let place = Place::from(&self.origin("audit.privacy"));
            let help = "write one to a file and name that in SLUICEGATE_AUDIT_PRIVACY_KEY_FILE, or set privacy_key in [audit]";
            let message = "privacy \"hashed\" needs audit.privacy_key";
            self.problems.push(Problem::new(place, message).help(help));
        }
        let key = self.config.audit.privacy_key.as_ref();
        if key.is_some_and(|key| key.expose().len() < SECRET_BYTES_MIN) {
            let place = Place::from(&self.origin("audit.privacy_key"));
            let message = format!("audit.privacy_key must have at least {SECRET_BYTES_MIN} bytes");
            let help = "generate one with `openssl rand -hex 32`: the key tells whose the hashes are, so it must not be guessable";
            self.problems.push(Problem::new(place, message).help(help));
        }
    }

    fn check_tls(&mut self) {
        if let Err((given, missing)) = self.config.listen.check_tls() {
            let place = Place::from(&self.origin(&given));
            self.problems.push(Problem::new(place, format!("{given} needs {missing} as well")));
        }
    }
}

impl Origin {
    /// Precedence: the higher rank wins.
    fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(_) => 1,
            Self::Variable(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}
