//! Bodies made to cost more than they should, for the attack suite and for `make bench-bodies`.
//!
//! All have 4 KiB or more, and fit the default limit of their path.

/// Path of a single check.
pub const CHECK: &str = "/v1/check";
/// Path of a batch of checks.
pub const BATCH: &str = "/v1/check/batch";
/// Path of a bucket without a rule.
pub const TAKE: &str = "/v1/take";
/// Path of Envoy's protocol in JSON.
pub const JSON: &str = "/json";
/// Path of Envoy's protocol over gRPC; bodies are messages without their length prefix.
pub const GRPC: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Bytes of a hostile body, within the default of `limits.body_bytes_max`.
const LONG: usize = 15 * 1024;
/// Bytes of a hostile batch or message, within sixteen times that.
const VERY_LONG: usize = 250 * 1024;
/// Minimum bytes of a hostile body.
const SHORT: usize = 4 * 1024;

/// A body for a path.
#[derive(Clone, Debug)]
pub struct Body {
    /// Path that it is sent to.
    pub path: &'static str,
    /// Description for tables.
    pub name: String,
    /// Without the prefix of a gRPC message.
    pub bytes: Vec<u8>,
}

/// Ordinary bodies that are accepted, one or two of each path.
#[must_use]
pub fn accepted() -> Vec<Body> {
    let check = r#"{"user_id":"42","ip":"203.0.113.9","endpoint":"/api/search","method":"GET","plan":"free","cost":1,"attributes":{"tenant":"acme"}}"#;
    let batch = format!("[{}]", [check; 100].join(","));
    let take = r#"{"key":"user:123","capacity":10,"refill_rate":1,"refill_interval":1.0,"cost":1}"#;
    let json = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"remote_address","value":"203.0.113.9"},{"key":"path","value":"/api"}]}]}"#;
    let entries = [entry("remote_address", "203.0.113.9"), entry("path", "/api")].concat();
    let grpc = message(&[(2, entries)]);
    vec![
        body(CHECK, "ordinary", check),
        body(BATCH, "100 ordinary members", batch),
        body(TAKE, "ordinary", take),
        body(JSON, "ordinary", json),
        body(GRPC, "ordinary", grpc),
    ]
}

/// Bodies that cost as much as possible, nearly all of which are rejected.
#[must_use]
pub fn hostile() -> Vec<Body> {
    let mut bodies = of_check();
    bodies.extend(of_batch());
    bodies.extend(of_take());
    bodies.extend(of_json());
    bodies.extend(of_grpc());
    for Body { path, name, bytes } in &bodies {
        assert!((SHORT..=VERY_LONG + 1024).contains(&bytes.len()), "{path}, {name}");
    }
    bodies
}

fn body(path: &'static str, name: &str, bytes: impl Into<Vec<u8>>) -> Body {
    Body { path, name: name.to_owned(), bytes: bytes.into() }
}

/// `one(0)`, `one(1)` ... separated by commas, as long as fits.
fn list(bytes_max: usize, one: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let next = one(number);
        if text.len() + next.len() >= bytes_max {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&next);
    }
    text
}

fn of_check() -> Vec<Body> {
    let attributes = |members: &str| format!(r#"{{"attributes":{{{members}}}}}"#);
    let member = |number: usize| format!(r#""a{number:x}":0"#);
    let few = list(230, member);
    let same = list(LONG, |_| r#""a":0"#.to_owned());
    let unknown = format!(r#"{{"user_id":"42",{}}}"#, list(LONG, |n| format!(r#""x{n}":0"#)));
    let text = |field: &str, one: &str| {
        format!(r#"{{"{field}":"{}"}}"#, one.repeat((LONG - 64) / one.len()))
    };
    let digits = |before: &str, digit: &str| format!("{before}{}", digit.repeat(LONG - 64));
    let mut bodies = vec![
        body(CHECK, "short attributes, all different", attributes(&list(LONG, member))),
        body(CHECK, "the same attribute again and again", attributes(&same)),
        body(CHECK, "unknown fields", unknown),
        body(
            CHECK,
            "an unknown field with a long name",
            format!(r#"{{"{}":0}}"#, "x".repeat(LONG)),
        ),
        body(
            CHECK,
            "an attribute with a long name",
            attributes(&text("a", "\u{7f}")[1..LONG - 128].replace('"', "b")),
        ),
        body(CHECK, "spaces, then a wrong type", format!(r#"{{{}"cost":true}}"#, " ".repeat(LONG))),
        body(
            CHECK,
            "line feeds, then a wrong type",
            format!(r#"{{{}"cost":true}}"#, "\n".repeat(LONG)),
        ),
        body(
            CHECK,
            "line feeds, then bytes after the value",
            format!("{{}}{}x", "\n".repeat(LONG)),
        ),
        body(CHECK, "bytes after the value", format!("{{}}{}", "{}".repeat(LONG / 2))),
        body(
            CHECK,
            "ends early",
            format!(r#"{{{few}"user_id":"{}"#, "x".repeat(LONG)).replacen(&few, "", 1),
        ),
        body(CHECK, "nested lists", format!(r#"{{"attributes":{}"#, "[".repeat(LONG))),
        body(
            CHECK,
            "nested lists as an attribute",
            attributes(&format!(r#""a":{}"#, "[".repeat(LONG))),
        ),
        body(CHECK, "nested objects", r#"{"attributes":"#.repeat(LONG / 14)),
        body(
            CHECK,
            "a long list as an attribute",
            attributes(&format!(r#""a":[{}]"#, list(LONG, |_| "0".into()))),
        ),
        body(CHECK, "a long number", format!(r#"{{"cost":{}}}"#, digits("1", "0"))),
        body(CHECK, "a long fraction", format!(r#"{{"cost":{}}}"#, digits("0.", "1"))),
        body(CHECK, "a long exponent", format!(r#"{{"cost":{}}}"#, digits("1e-", "9"))),
        body(CHECK, "a long number as an id", format!(r#"{{"user_id":{}}}"#, digits("1.", "3"))),
        body(CHECK, "an address that is long", text("ip", "1.")),
        body(CHECK, "escapes", text("user_id", r"\n")),
        body(CHECK, "escaped code points", text("user_id", r"\u00e9")),
        body(CHECK, "escaped surrogates", text("user_id", r"\ud83e\udd80")),
        body(CHECK, "invalid UTF-8", [text("user_id", "x").as_bytes(), b"\xff"].concat()),
        body(CHECK, "invalid UTF-8 in the text", replaced(&text("user_id", "x"), b'x', 0xff)),
        body(CHECK, "ends in NUL", vec![0; LONG]),
    ];
    for (what, one) in [("letters", "x"), ("quotes", r#"\""#), ("DEL", "\u{7f}"), ("emoji", "🦀")]
    {
        for field in ["cost", "attributes", "unknown"] {
            bodies.push(body(CHECK, &format!("{field}: text of {what}"), text(field, one)));
        }
    }
    bodies.push(body(
        CHECK,
        "a text instead of an object",
        format!("\"{}\"", "\u{7f}".repeat(LONG)),
    ));
    bodies
}

fn of_batch() -> Vec<Body> {
    let batch = |members: String| format!("[{members}]");
    let ordinary = r#"{"user_id":"42","ip":"203.0.113.9","endpoint":"/api/search","plan":"free"}"#;
    let many = |bytes| list(bytes, |number| format!(r#""a{number:x}":0"#));
    let attributes = format!(r#"{{"attributes":{{{}}}}}"#, many(2_400));
    let long_attributes = format!(r#"[{{"attributes":{{{}}}}}]"#, many(VERY_LONG - 64));
    let ordinaries = [ordinary; 99].join(",");
    vec![
        body(BATCH, "one member, attributes all different", long_attributes),
        body(BATCH, "members with 300 attributes", batch(list(VERY_LONG, |_| attributes.clone()))),
        body(BATCH, "a wrong type in the last member", format!(r#"[{ordinaries},{{"cost":"1"}}]"#)),
        body(
            BATCH,
            "an unknown field in the last member",
            format!(r#"[{ordinaries},{{"x":"1"}}]"#),
        ),
        body(BATCH, "the last member is a number", format!("[{ordinaries},7]")),
        body(BATCH, "a bad address in the last member", format!(r#"[{ordinaries},{{"ip":"1"}}]"#)),
        body(BATCH, "a syntax error in the last member", format!(r#"[{ordinaries},{{"ip":1"#)),
        body(BATCH, "too many ordinary members", batch(list(VERY_LONG, |_| ordinary.into()))),
        body(BATCH, "empty members", batch(list(VERY_LONG, |_| "{}".into()))),
        body(BATCH, "lists", batch(list(VERY_LONG, |_| "[]".into()))),
        body(BATCH, "numbers", batch(list(VERY_LONG, |_| "0".into()))),
        body(BATCH, "nested lists", "[".repeat(VERY_LONG)),
        body(BATCH, "spaces", " ".repeat(VERY_LONG)),
    ]
}

fn of_take() -> Vec<Body> {
    let text = |field: &str, one: &str| {
        format!(r#"{{"key":"k","{field}":"{}"}}"#, one.repeat((LONG - 64) / one.len()))
    };
    let number = |field: &str, before: &str, digit: &str| {
        format!(r#"{{"key":"k","{field}":{before}{}}}"#, digit.repeat(LONG - 64))
    };
    let mut bodies = vec![
        body(TAKE, "a long key", text("algorithm", "x").replacen("k\"", "y\"", 1)),
        body(TAKE, "a long rate", number("refill_rate", "0.", "3")),
        body(TAKE, "a long interval", number("refill_interval", "1", "0")),
        body(TAKE, "a long wait", number("max_wait", "1e-", "9")),
        body(TAKE, "unknown fields", format!("{{{}}}", list(LONG, |n| format!(r#""x{n}":0"#)))),
        body(TAKE, "nested lists", format!(r#"{{"key":{}"#, "[".repeat(LONG))),
    ];
    for field in ["algorithm", "refill", "refill_rate", "capacity", "max_wait"] {
        bodies.push(body(TAKE, &format!("{field}: text of DEL"), text(field, "\u{7f}")));
    }
    bodies
}

fn of_json() -> Vec<Body> {
    let call = |descriptors: String| format!(r#"{{"domain":"d","descriptors":[{descriptors}]}}"#);
    let entries = |entries: String| call(format!(r#"{{"entries":[{entries}]}}"#));
    let del = "\u{7f}".repeat(LONG - 128);
    vec![
        body(JSON, "empty descriptors", call(list(LONG, |_| "{}".into()))),
        body(
            JSON,
            "descriptors with an empty entry",
            call(list(LONG, |_| r#"{"entries":[{}]}"#.into())),
        ),
        body(JSON, "empty entries", entries(list(LONG, |_| "{}".into()))),
        body(JSON, "small entries", entries(list(LONG, |_| r#"{"key":"a"}"#.into()))),
        body(JSON, "numbers as entries", entries(list(LONG, |_| "0".into()))),
        body(
            JSON,
            "unknown fields",
            entries(format!("{{{}}}", list(LONG, |n| format!(r#""x{n}":0"#)))),
        ),
        body(JSON, "nested lists", call("[".repeat(LONG))),
        body(JSON, "hits: text of DEL", format!(r#"{{"hitsAddend":"{del}"}}"#)),
        body(
            JSON,
            "a refund that is text of DEL",
            call(format!(r#"{{"isNegativeHits":"{del}"}}"#)),
        ),
        body(
            JSON,
            "a unit that is text of DEL",
            call(format!(r#"{{"limit":{{"unit":"{del}"}}}}"#)),
        ),
        body(JSON, "a limit that is text of DEL", call(format!(r#"{{"limit":"{del}"}}"#))),
        body(JSON, "a descriptor that is text of DEL", call(format!("\"{del}\""))),
        body(JSON, "descriptors that are text of DEL", format!(r#"{{"descriptors":"{del}"}}"#)),
        body(JSON, "digits as hits", format!(r#"{{"hitsAddend":"{}"}}"#, "9".repeat(LONG))),
        body(
            JSON,
            "a long path",
            entries(format!(r#"{{"key":"path","value":"/{}"}}"#, "a/../".repeat(LONG / 5))),
        ),
        body(
            JSON,
            "a long address",
            entries(format!(
                r#"{{"key":"remote_address","value":"{}"}}"#,
                "1.".repeat(LONG / 2 - 64)
            )),
        ),
    ]
}

fn of_grpc() -> Vec<Body> {
    let small = entry("a", "");
    let descriptor = |entries: usize| small.repeat(entries);
    let path = "/%41/../".repeat(7_000);
    vec![
        body(GRPC, "empty descriptors", message(&vec![(2, Vec::new()); VERY_LONG / 2 - 64])),
        body(
            GRPC,
            "descriptors with a small entry",
            message(&vec![(2, small.clone()); VERY_LONG / 9 - 64]),
        ),
        body(GRPC, "small entries", message(&[(2, descriptor(VERY_LONG / 7 - 64))])),
        body(GRPC, "empty entries", message(&[(2, [0x0a, 0].repeat(VERY_LONG / 2 - 64))])),
        body(
            GRPC,
            "the domain again and again",
            message(&vec![(1, Vec::new()); VERY_LONG / 2 - 64]),
        ),
        body(GRPC, "unknown fields", [0x78, 0].repeat(VERY_LONG / 2)),
        body(GRPC, "unknown groups", [0x7b, 0x7c].repeat(VERY_LONG / 2)),
        body(GRPC, "nested groups", vec![0x7b; VERY_LONG]),
        body(
            GRPC,
            "long varints",
            [[0x78].as_slice(), &[0x80; 9], &[0x01]].concat().repeat(VERY_LONG / 11),
        ),
        body(GRPC, "a long path", message(&[(2, entry("path", &path))])),
        body(GRPC, "long paths", message(&vec![(2, entry("path", &path[..3_900])); 60])),
        body(GRPC, "a long value", message(&[(2, entry("path", &"x".repeat(VERY_LONG - 64)))])),
        body(GRPC, "a long value of invalid UTF-8", replaced_message(VERY_LONG - 64)),
    ]
}

fn replaced(text: &str, from: u8, to: u8) -> Vec<u8> {
    text.bytes().map(|byte| if byte == from { to } else { byte }).collect()
}

/// A message of Envoy's protocol with the domain `d` and these fields.
fn message(fields: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = field(1, b"d");
    fields.iter().for_each(|(number, value)| bytes.extend(field(*number, value)));
    bytes
}

fn replaced_message(length: usize) -> Vec<u8> {
    let value = [field(1, b"user_id"), field(2, &vec![0xff; length])].concat();
    message(&[(2, field(1, &value))])
}

/// An entry of a descriptor.
fn entry(key: &str, value: &str) -> Vec<u8> {
    field(1, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
}

/// A field of a protobuf message with its length.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = value.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(value);
    bytes
}
