//! Names of attributes and units in Envoy and other limiters.

use sluicegate::rules::Attribute;

/// Attribute with the domain of an Envoy call.
pub(crate) const DOMAIN: &str = "domain";
/// Attribute with the keys of a descriptor, in order,
pub(crate) const DESCRIPTOR: &str = "descriptor";
/// separated by this. Imported rules have a condition on both attributes.
pub(crate) const BETWEEN_KEYS: &str = ",";

const DAY: u64 = 24 * 60 * 60;

/// Units of an Envoy limit and their seconds. Months and years have Envoy's lengths.
const UNITS: [(&str, u64); 7] = [
    ("SECOND", 1),
    ("MINUTE", 60),
    ("HOUR", 60 * 60),
    ("DAY", DAY),
    ("WEEK", 7 * DAY),
    ("MONTH", 30 * DAY),
    ("YEAR", 365 * DAY),
];

/// Seconds of a unit. Case does not matter.
pub(crate) fn unit_seconds(name: &str) -> Option<u64> {
    let found = UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name));
    found.map(|(_, seconds)| *seconds)
}

/// Unit with this number of seconds.
pub(crate) fn unit_of(seconds: u64) -> Option<&'static str> {
    UNITS.iter().find(|(_, length)| *length == seconds).map(|(unit, _)| *unit)
}

/// Our name of an attribute; `None` if it cannot be an attribute's name.
pub(crate) fn attribute(name: &str) -> Option<&str> {
    let known = match name {
        "remote_address" | "source_address" | "source.address" | "client_ip" => "ip",
        "path" | ":path" | "req.path" | "request.path" | "request.url_path" => "endpoint",
        "user" | "auth.identity.userid" | "auth.identity.user_id" => "user_id",
        ":method" | "req.method" | "request.method" => "method",
        other => other,
    };
    Attribute::is_name(known).then_some(known)
}
