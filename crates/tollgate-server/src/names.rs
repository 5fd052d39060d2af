//! What others call the attributes of a request.

use tollgate::rules::Attribute;

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
