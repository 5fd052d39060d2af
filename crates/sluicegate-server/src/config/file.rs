//! Settings from `sluicegate.toml`.

use std::ops::Range;

use sluicegate::closest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem};
use super::keys::{Key, Kind, keys};
use super::listen::NONE;
use super::load::{ConfigFile, Loader, Origin};

/// Reads every value of the file, and records all errors in the order of the text.
pub(super) fn read(file: &ConfigFile, loader: &mut Loader) {
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    let first = loader.problems.len();
    loader.problems.extend(errors.iter().map(|error| {
        let place = error.span().map_or(Place::Nowhere, Place::File);
        Problem::new(place, error.message())
    }));
    // Values of text with syntax errors may not be what was meant: only the syntax errors are reported.
    if errors.is_empty() {
        for (section, value) in table.get_ref() {
            read_section(file, section, value, loader);
        }
    }
    loader.problems[first..].sort_by_key(|problem| problem.place.position());
}

fn read_section(
    file: &ConfigFile,
    section: &Spanned<impl AsRef<str>>,
    value: &Spanned<DeValue<'_>>,
    loader: &mut Loader,
) {
    let name = section.get_ref().as_ref();
    let keys: Vec<_> = keys().filter(|key| key.section_and_name().0 == name).collect();
    if keys.is_empty() {
        loader.problems.push(unknown_section(name, section.span()));
        return;
    }
    let DeValue::Table(table) = value.get_ref() else {
        let message = format!("`{name}` must be a section: write [{name}]");
        loader.problems.push(Problem::new(Place::File(value.span()), message));
        return;
    };
    for (key, value) in table {
        let known = keys.iter().find(|known| known.section_and_name().1 == key.get_ref().as_ref());
        match known {
            Some(known) => read_value(file, known, value, loader),
            None => loader.problems.push(unknown_key(name, key.get_ref(), key.span(), &keys)),
        }
    }
}

fn read_value(
    file: &ConfigFile,
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    loader: &mut Loader,
) {
    let origin = Origin::File(value.span());
    match (&key.kind, value.get_ref()) {
        (Kind::Number { .. }, DeValue::Integer(integer)) => {
            let decimal = i128::from_str_radix(integer.as_str(), integer.radix());
            let text = decimal.map_or_else(|_| integer.to_string(), |number| number.to_string());
            loader.give(key, &text, origin);
        }
        (Kind::Choice { choices, .. }, DeValue::Boolean(is_on)) => {
            let [on, off] = if choices.contains(&"on") { ["on", "off"] } else { ["true", "false"] };
            loader.give(key, if *is_on { on } else { off }, origin);
        }
        (Kind::Path { .. }, DeValue::String(path)) if !path.is_empty() => {
            loader.give(key, &file.resolve(path), origin);
        }
        (Kind::FileOrNone { .. }, DeValue::String(path))
            if !path.is_empty() && path.as_ref() != NONE =>
        {
            loader.give(key, &file.resolve(path), origin);
        }
        (Kind::List { .. }, DeValue::Array(members)) => {
            let texts: Option<Vec<_>> =
                members.iter().map(|member| member.get_ref().as_str()).collect();
            match texts {
                Some(texts) => loader.give(key, &texts.join(","), origin),
                None => {
                    let message = format!("`{}` must be a list of strings", key.name);
                    loader.problems.push(Problem::new(Place::from(&origin), message));
                }
            }
        }
        (
            Kind::Text { .. }
            | Kind::List { .. }
            | Kind::Choice { .. }
            | Kind::Path { .. }
            | Kind::FileOrNone { .. }
            | Kind::Url { .. }
            | Kind::Secret { .. },
            DeValue::String(text),
        ) => loader.give(key, text, origin),
        (kind, other) => {
            let wanted = match kind {
                Kind::Number { .. } => "a whole number",
                Kind::List { .. } => "a list of strings",
                _ => "a string",
            };
            let message = format!("`{}` must be {wanted}, not {}", key.name, a_kind_of(other));
            loader.problems.push(Problem::new(Place::from(&origin), message));
        }
    }
}

fn a_kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn unknown_section(name: &str, span: Range<usize>) -> Problem {
    let sections = keys().map(|key| key.section_and_name().0);
    let message = match (belongs_in(name), closest(name, sections)) {
        (Some(section), _) => format!("`{name}` belongs in [{section}]"),
        (None, Some(section)) => format!("unknown section `{name}`: did you mean `{section}`?"),
        (None, None) => format!("unknown section `{name}`"),
    };
    Problem::new(Place::File(span), message)
}

fn unknown_key(section: &str, name: &str, span: Range<usize>, keys: &[&Key]) -> Problem {
    let names = || keys.iter().map(|key| key.section_and_name().1);
    let message = match (belongs_in(name), closest(name, names())) {
        (Some(section), _) => format!("`{name}` belongs in [{section}]"),
        (None, Some(key)) => format!("unknown key `{name}`: did you mean `{key}`?"),
        (None, None) => {
            let all: Vec<_> = names().map(|name| format!("`{name}`")).collect();
            format!("unknown key `{name}`: [{section}] has {}", all.join(", "))
        }
    };
    Problem::new(Place::File(span), message)
}

/// Section that has a key of this name.
fn belongs_in(name: &str) -> Option<&'static str> {
    keys().map(Key::section_and_name).find(|(_, key)| *key == name).map(|(section, _)| section)
}
