//! What others call the attributes of a request, and the units of a limit.

use sluicegate::rules::Attribute;

/// The attribute that is the domain of a call of Envoy.
pub(crate) const DOMAIN: &str = "domain";
/// The attribute that is the keys of a descriptor, in their order,
pub(crate) const DESCRIPTOR: &str = "descriptor";
/// with these between. Imported rules have a condition on both.
pub(crate) const BETWEEN_KEYS: &str = ",";

const DAY: u64 = 24 * 60 * 60;

/// The units that a limit of Envoy may have, by their seconds. Months and years are as long as Envoy counts them.
const UNITS: [(&str, u64); 7] = [
    ("SECOND", 1),
    ("MINUTE", 60),
    ("HOUR", 60 * 60),
    ("DAY", DAY),
    ("WEEK", 7 * DAY),
    ("MONTH", 30 * DAY),
    ("YEAR", 365 * DAY),
];

/// How many seconds a unit has, in whatever case it is written.
pub(crate) fn unit_seconds(name: &str) -> Option<u64> {
    let found = UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name));
    found.map(|(_, seconds)| *seconds)
}

/// The unit that has so many seconds.
pub(crate) fn unit_of(seconds: u64) -> Option<&'static str> {
    UNITS.iter().find(|(_, length)| *length == seconds).map(|(unit, _)| *unit)
}

/// Our name for an attribute; none if it cannot be the name of one.
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
