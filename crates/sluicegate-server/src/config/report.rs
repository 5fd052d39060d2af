//! Report of the settings in force and their origins, for `--check-config`.

use super::load::{Loaded, Origin, Setting};

impl Loaded {
    /// A line for every setting: name, value, origin; and one for every note. Secrets are not shown.
    #[must_use]
    pub fn report(&self) -> String {
        let rows: Vec<_> = self
            .settings
            .iter()
            .map(|setting| (setting.key.name, shown(setting), self.origin(&setting.origin)))
            .collect();
        let name_width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let value_width = rows.iter().map(|(_, value, _)| value.len()).max().unwrap_or(0);
        let settings = rows.iter().map(|(name, value, origin)| {
            format!("{name:name_width$}  {value:value_width$}  {origin}\n")
        });
        settings.chain(self.config.notes.iter().map(|note| format!("note: {note}\n"))).collect()
    }

    fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Default => "default".into(),
            Origin::File(span) => self.file.as_ref().map_or_else(String::new, |file| {
                let line = file.text[..span.start].matches('\n').count() + 1;
                format!("{}:{line}", file.path.display())
            }),
            Origin::Variable(name) => name.clone(),
            Origin::Flag(flag) => format!("--{flag}"),
        }
    }
}

fn shown(setting: &Setting) -> &str {
    if setting.shown.is_empty() { "(none)" } else { &setting.shown }
}
