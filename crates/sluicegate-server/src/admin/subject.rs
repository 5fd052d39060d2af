//! Subjects of rules: parsing them from a path or body, and their pseudonyms in the log.

use std::borrow::Cow;
use std::net::IpAddr;

use sluicegate::rules::{Attribute, fold};
use sluicegate::{PathForm, Rule};

use crate::app::RequestLimits;
use crate::observe::audit::Pseudonyms;
use crate::web::check_body::address;
use crate::web::problem::Problem;

/// Subject of this rule, normalised as in checks.
///
/// # Errors
///
/// If the text is not a valid subject of the rule.
pub(crate) fn subject<'a>(
    rule: &Rule,
    text: &'a str,
    limits: &RequestLimits,
) -> Result<Cow<'a, str>, Problem> {
    let Some(attribute) = rule.subject_attribute() else {
        let only = rule.key_pattern().as_str();
        if text == only {
            return Ok(Cow::Borrowed(text));
        }
        let detail = format!("this rule has one bucket for all requests: its subject is {only:?}");
        return Err(Problem::field("subject", detail));
    };
    let subject = value("subject", attribute, text, limits)?;
    Ok(match (rule.path(), attribute) {
        (PathForm::Folded, Attribute::Endpoint) => fold(text),
        _ => subject,
    })
}

/// Value of an attribute, normalised as in checks. `field` is the name in the error.
///
/// # Errors
///
/// If the text is not a valid subject of the rule.
pub(crate) fn value<'a>(
    field: &str,
    attribute: &Attribute,
    text: &'a str,
    limits: &RequestLimits,
) -> Result<Cow<'a, str>, Problem> {
    limits.check_length(field, text.len())?;
    match attribute {
        Attribute::Ip => address(field, text),
        _ => Ok(Cow::Borrowed(text)),
    }
}

/// The subject as written to the log: pseudonymised like a violation's. Without a rule (it was deleted, or the
/// bucket has none), text that parses as an address is treated as one.
pub(crate) fn recorded<'a>(
    pseudonyms: &Pseudonyms,
    rule: Option<&Rule>,
    subject: &'a str,
) -> Cow<'a, str> {
    match rule.map(Rule::subject_attribute) {
        Some(Some(attribute)) => pseudonyms.attribute(attribute, subject),
        // The rule has a single bucket: the subject is its key pattern.
        Some(None) => Cow::Borrowed(subject),
        None if subject.parse::<IpAddr>().is_ok() => pseudonyms.ip(subject),
        None => pseudonyms.id(subject),
    }
}
