//! Errors in settings, shown with their place in the file.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::keys::{Key, keys};
use super::load::{ConfigFile, Origin};

/// All errors in the settings.
#[derive(Debug)]
pub struct ConfigErrors {
    pub(super) file: Option<ConfigFile>,
    pub(super) problems: Vec<Problem>,
}

/// An error in the settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) place: Place,
    message: String,
    help: Option<String>,
}

/// Place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the file, at this byte range.
    File(Range<usize>),
    Variable(String),
    Flag(&'static str),
    Nowhere,
}

impl Problem {
    pub(super) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Place {
    /// Byte offset in the file; 0 elsewhere.
    pub(super) fn position(&self) -> usize {
        if let Self::File(span) = self { span.start } else { 0 }
    }
}

impl From<&Origin> for Place {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Default => Self::Nowhere,
            Origin::File(span) => Self::File(span.clone()),
            Origin::Variable(name) => Self::Variable(name.clone()),
            Origin::Flag(flag) => Self::Flag(flag),
        }
    }
}

impl ConfigErrors {
    /// Renders all errors for a terminal, ending in a line break.
    #[must_use]
    pub fn render(&self, in_colours: bool) -> String {
        let renderer = if in_colours { Renderer::styled() } else { Renderer::plain() };
        let shown =
            self.file.as_ref().map(|file| (file.path.to_string_lossy(), masked(&file.text)));
        let mut text = String::new();
        for problem in &self.problems {
            let title = match &problem.place {
                Place::Variable(name) => format!("{name}: {}", problem.message),
                Place::Flag(flag) => format!("--{flag}: {}", problem.message),
                Place::File(_) | Place::Nowhere => problem.message.clone(),
            };
            let mut group = Group::with_title(Level::ERROR.primary_title(title));
            if let (Place::File(span), Some((path, text))) = (&problem.place, &shown) {
                let here = AnnotationKind::Primary.span(span.clone());
                let snippet = Snippet::source(text.as_str()).path(path.as_ref()).annotation(here);
                group = group.element(snippet);
            }
            if let Some(help) = &problem.help {
                group = group.element(Level::HELP.message(help));
            }
            text += &renderer.render(&[group]);
            text += "\n\n";
        }
        text.pop();
        text
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ConfigErrors {}

/// Masks possible secrets with asterisks, byte for byte, so that positions stay valid. Text that does not parse has no keys
/// and values yet, so this works by line: everything after `=` in a section that has a secret, and on lines that name a
/// secret or a URL, except a URL's scheme.
fn masked(text: &str) -> String {
    let secrets = || keys().filter(|key| key.is_secret()).map(Key::section_and_name);
    let urls = || keys().filter(|key| key.is_url()).map(Key::section_and_name);
    let mut in_secret_section = false;
    let mut masked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_header = line.trim_start().starts_with('[');
        if is_header {
            let name = |c: char| c == '[' || c.is_whitespace() || c == '"' || c == '\'';
            let header = line.trim_start_matches(name);
            in_secret_section = secrets().any(|(section, _)| header.starts_with(section));
        }
        let names_secret = secrets().any(|(_, name)| has_word(line, name));
        let names_url = urls().any(|(_, name)| has_word(line, name));
        // A line without `=` may continue a multi-line value.
        let value = line.find('=').map_or(0, |equals| equals + 1);
        let scheme = line.find("://").map(|scheme| scheme + 3);
        let shown = match scheme {
            _ if !is_header && (in_secret_section || names_secret) => value,
            Some(scheme) => scheme,
            None if !is_header && names_url => value,
            None => line.len(),
        };
        masked.push_str(&line[..shown]);
        let hide = |byte: u8| if byte.is_ascii_whitespace() { char::from(byte) } else { '*' };
        masked.extend(line[shown..].bytes().map(hide));
    }
    masked
}

/// Returns `true` if a word of the line begins with this name.
fn has_word(line: &str, name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| !line[..at].ends_with(is_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_everything_else_stays_in_place() {
        let text = "[listen]\nhttp = \"x\"\n[admin]\ntoken = canaryé # mine\n\"\"\"canary\"\"\"\n\
                    [store]\nmax_buckets = 1\n";
        let masked = masked(text);
        assert_eq!(masked.len(), text.len());
        assert!(!masked.contains("canary"), "{masked}");
        assert!(masked.starts_with("[listen]\nhttp = \"x\"\n[admin]\ntoken = ********"));
        assert!(masked.ends_with("[store]\nmax_buckets = 1\n"));
        assert!(!super::masked("admin = { token = \"canary\" }").contains("canary"));
        assert!(!super::masked("[admin]\ntokn = canary").contains("canary"));
        assert!(!super::masked("[ admin ]\ntokn = canary").contains("canary"));
        assert!(!super::masked("admin.token = 'canary'").contains("canary"));
    }

    /// A password may stand anywhere in a URL that is wrong.
    #[test]
    fn of_a_url_only_the_scheme_is_shown() {
        for url in ["me:canary@h@ost/0", ":canary", "host:canary", "h/m?sentinel_password=canary"] {
            let masked = masked(&format!("[store]\nurl = \"redis://{url}\"\n"));
            assert!(masked.starts_with("[store]\nurl = \"redis://***"), "{masked}");
            assert!(!masked.contains("canary"), "{masked}");
        }
        assert!(!masked("[store]\nurl = \"redis:me:canary@host\"").contains("canary"));
        assert!(!masked("store = { url = \"canary\" }").contains("canary"));
        assert!(!masked("[store]\nulr = \"redis://:canary@host\"").contains("canary"));
    }
}
