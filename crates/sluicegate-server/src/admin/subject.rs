//! Subjects of rules, parsed from a path or body.

use std::borrow::Cow;

use sluicegate::rules::{Attribute, fold};
use sluicegate::{PathForm, Rule};

use crate::app::RequestLimits;
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
