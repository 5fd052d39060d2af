//! From the sources to the settings: each source over the one before, and all mistakes at once.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::error::{ConfigErrors, Place, Problem};
use super::keys::{Key, keys};
use super::{Config, Door, Privacy, Record, RulesFrom, StoreUrl, env, file};

/// The file that is read if there is one and no other is named.
pub const FILE_NAME: &str = "sluicegate.toml";

/// Settings take a screen; what is longer than this is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A shorter secret than this can be guessed by whoever tries them all.
const SECRET_BYTES_MIN: usize = 16;

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
    /// The same as text, in the order of [`keys`], for people.
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
        self.load_and(Loader::check_together)
    }

    /// Reads them all for somebody who needs a few of them: what only a server minds is not looked at, such as a
    /// listener without a token.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with a setting alone.
    pub fn load_apart(&self) -> Result<Loaded, ConfigErrors> {
        self.load_and(|_| {})
    }

    fn load_and(&self, check: impl FnOnce(&mut Loader)) -> Result<Loaded, ConfigErrors> {
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
            check(&mut loader);
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
            settings: keys().map(setting).collect(),
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

    fn origin(&self, name: &str) -> Origin {
        let setting = self.settings.iter().find(|setting| setting.key.name == name);
        setting.map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// What no setting alone can say.
    fn check_together(&mut self) {
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
    }
}

impl Loader {
    fn check_listeners(&mut self) {
        let listeners: Vec<_> = self.config.listen.addresses().collect();
        if listeners.is_empty() {
            let place = Place::from(&self.origin("listen.http"));
            let message = "every listener is switched off: there is nothing to serve";
            self.problems.push(Problem::new(place, message));
        }
        if !self.config.listen.proxied.is_empty() && self.config.proxies.trusted.is_empty() {
            let place = Place::from(&self.origin("listen.proxy_protocol"));
            let message = "the PROXY protocol is expected, and no proxy is trusted to speak it";
            let help = "set trusted in [proxies] to the networks of your proxies";
            self.problems.push(Problem::new(place, message).help(help));
        }
        for (listener, address) in listeners {
            if self.config.listen.is_local(listener, address) {
                continue;
            }
            let setting = if is_loopback(address) {
                // A proxy on this machine brings others with it.
                "listen.proxy_protocol"
            } else {
                listener.setting()
            };
            let place = Place::from(&self.origin(setting));
            if !self.check_token(address, place) {
                return;
            }
        }
    }

    /// The Redis protocol knows no token: where others can come, there should be a password.
    fn check_password(&mut self) {
        let listen = &self.config.listen;
        let others = listen.resp.filter(|address| !listen.is_local(Door::Resp, *address));
        if let (Some(address), None) = (others, &self.config.resp.password) {
            self.config.notes.push(format!(
                "others can reach the Redis protocol at {address} without a password, and take from every \
                 bucket: write one to a file and name that in SLUICEGATE_RESP_PASSWORD_FILE"
            ));
        }
    }

    /// Where others can come, there is a token, and it should be one that they do not guess. Says whether there
    /// is one.
    fn check_token(&mut self, address: SocketAddr, place: Place) -> bool {
        let Some(token) = &self.config.admin.token else {
            let message =
                format!("others can reach {address}, and there is no token for administration");
            let help = "write one to a file and name that in SLUICEGATE_ADMIN_TOKEN_FILE, \
                        or set token in [admin], or listen on 127.0.0.1";
            self.problems.push(Problem::new(place, message).help(help));
            return false;
        };
        if token.expose().len() < SECRET_BYTES_MIN {
            self.config.notes.push(format!(
                "others can reach {address}, and admin.token has less than {SECRET_BYTES_MIN} bytes: \
                 make one with `openssl rand -hex 32`"
            ));
        }
        true
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
            let message = "rules come from the database, and there is none";
            let help = "set url in [database], or source in [rules] to \"file\"";
            let place = Place::from(&self.origin("database.url"));
            self.problems.push(Problem::new(place, message).help(help));
        }
    }

    fn check_audit(&mut self) {
        if self.config.database.url.is_none() {
            // There is nowhere to record anything.
            self.config.audit.record = Record::Nothing;
        }
        let audit = &self.config.audit;
        if audit.privacy == Privacy::Hashed && audit.privacy_key.is_none() {
            let place = Place::from(&self.origin("audit.privacy"));
            let help = "write one to a file and name that in SLUICEGATE_AUDIT_PRIVACY_KEY_FILE, or set privacy_key in [audit]";
            let message = "hashing needs a key";
            self.problems.push(Problem::new(place, message).help(help));
        }
        let key = self.config.audit.privacy_key.as_ref();
        if key.is_some_and(|key| key.expose().len() < SECRET_BYTES_MIN) {
            let place = Place::from(&self.origin("audit.privacy_key"));
            let message = format!("audit.privacy_key has at least {SECRET_BYTES_MIN} bytes");
            let help = "make one with `openssl rand -hex 32`: whoever guesses it can tell whose the hashes are";
            self.problems.push(Problem::new(place, message).help(help));
        }
    }

    fn check_tls(&mut self) {
        let tls = &self.config.listen.tls;
        let (given, missing) = match (&tls.certificate, &tls.key, &tls.client_ca) {
            (Some(_), None, _) => ("listen.tls_certificate", "listen.tls_key"),
            (None, Some(_), _) => ("listen.tls_key", "listen.tls_certificate"),
            (None, None, Some(_)) => ("listen.tls_client_ca", "listen.tls_certificate"),
            _ => return,
        };
        let place = Place::from(&self.origin(given));
        self.problems.push(Problem::new(place, format!("{missing} is needed, too")));
    }
}

impl Origin {
    /// Of two, the higher one counts.
    fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(_) => 1,
            Self::Variable(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

/// Whether only this machine can reach an address.
pub(super) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
