//! What others call the attributes of a request.

use tollgate::rules::Attribute;

/// Our name for an attribute; none if it cannot be the name of one.
pub(super) fn attribute(name: &str) -> Option<String> {
    let known = match name {
        "remote_address" | "source_address" | "source.address" | "client_ip" => "ip",
        "path" | ":path" | "req.path" | "request.path" | "request.url_path" => "endpoint",
        "user" | "auth.identity.userid" | "auth.identity.user_id" => "user_id",
        ":method" | "req.method" | "request.method" => "method",
        other => other,
    };
    Attribute::is_name(known).then(|| known.to_owned())
}

/// Text that can stand in a key pattern as it is.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['{', '}']) && !text.contains(char::is_control)
}
