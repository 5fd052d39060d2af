//! Whose bucket is meant: the subject of a rule, as a client writes it.

use std::borrow::Cow;
use std::net::IpAddr;

use sluicegate::Rule;
use sluicegate::rules::Attribute;

use crate::app::RequestLimits;
use crate::observe::audit::Pseudonyms;
use crate::web::check_body::address;
use crate::web::problem::Problem;

/// A subject of this rule in its one spelling, in which requests have it too.
///
/// # Errors
///
/// That this cannot be one.
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
        let detail = format!("this rule has one bucket for all, whose subject is {only:?}");
        return Err(Problem::field("subject", detail));
    };
    value("subject", attribute, text, limits)
}

/// The value of an attribute in its one spelling. `field` is what the client calls it.
///
/// # Errors
///
/// That this cannot be one.
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

/// What a subject of this rule is called in the log: what is recorded of it. Of a rule that there is not any more,
/// what looks like an address is one.
pub(crate) fn recorded<'a>(
    pseudonyms: &Pseudonyms,
    rule: Option<&Rule>,
    subject: &'a str,
) -> Cow<'a, str> {
    match rule.map(Rule::subject_attribute) {
        Some(Some(attribute)) => pseudonyms.attribute(attribute, subject),
        // The name of the one bucket for all.
        Some(None) => Cow::Borrowed(subject),
        None if subject.parse::<IpAddr>().is_ok() => pseudonyms.ip(subject),
        None => pseudonyms.id(subject),
    }
}
