//! Requests: the same subjects in the same order for every server, in each server's protocol, encoded before
//! anything is timed.
//!
//! Seven in ten requests are of users who never exhaust their quota. The other three are of a few users with one
//! request a day and a burst of two: as soon as those are spent, 30 % of the requests are denied for the rest of a
//! run.

use std::fmt::Write;

use prost::Message;

use crate::messages::{CrabRequest, Descriptor, Entry, EnvoyRequest};
use crate::wire::Protocol;

/// Number of denied requests in ten.
const DENIED_IN_TEN: usize = 3;
/// Number of users of denied requests.
const DENIED_USERS: usize = 256;

/// Number of users that share an address.
const USERS_PER_ADDRESS: usize = 8;

/// A kind of request that some server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `POST /v1/check`: three tiers.
    Check,
    /// Envoy's `ShouldRateLimit`: three tiers.
    Envoy,
    /// `CL.THROTTLE`: one bucket.
    Throttle,
    /// `SG.CHECK`: three tiers.
    RespCheck,
    /// throttlecrab's own requests, each for one bucket.
    CrabHttp,
    CrabGrpc,
    CrabResp,
}

/// Encoded requests, and the parser of their answers.
pub(crate) struct Requests {
    bytes: Vec<u8>,
    /// End of each request.
    ends: Vec<usize>,
    pub(crate) is_allowed: fn(&[u8]) -> bool,
}

impl Requests {
    /// Encodes this number of requests, nearly each of another user.
    pub(crate) fn new(dialect: Dialect, subjects: usize) -> Self {
        let mut order: Vec<_> = (0..subjects).collect();
        fastrand::Rng::with_seed(11).shuffle(&mut order);
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(subjects));
        for number in order {
            dialect.write(&Subject::new(number), &mut bytes);
            ends.push(bytes.len());
        }
        Self { bytes, ends, is_allowed: dialect.is_allowed() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }
}

/// Subject of a request.
struct Subject {
    user: String,
    ip: String,
    is_denied: bool,
}

impl Subject {
    fn new(number: usize) -> Self {
        let is_denied = number % 10 < DENIED_IN_TEN;
        let number = if is_denied { number % DENIED_USERS } else { number };
        let address = number / USERS_PER_ADDRESS;
        let [_, a, b, c] = (address as u32).to_be_bytes();
        Self {
            user: format!("user-{number}-{}", u8::from(is_denied)),
            ip: format!("10.{a}.{b}.{c}"),
            is_denied,
        }
    }

    /// Plan whose rule has the quota.
    fn plan(&self) -> &'static str {
        if self.is_denied { "free" } else { "pro" }
    }

    /// Quota for protocols that send it with the request: burst, tokens, and period in seconds.
    fn quota(&self) -> (i32, i32, i32) {
        if self.is_denied { (2, 1, 86_400) } else { (1_000_000, 1_000_000, 1) }
    }
}

impl Dialect {
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Check | Self::CrabHttp => Protocol::Http1,
            Self::Envoy => Protocol::Grpc {
                path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            },
            Self::CrabGrpc => Protocol::Grpc { path: "/throttlecrab.RateLimiter/Throttle" },
            Self::Throttle | Self::RespCheck | Self::CrabResp => Protocol::Resp,
        }
    }

    fn write(self, subject: &Subject, to: &mut Vec<u8>) {
        let Subject { user, ip, .. } = subject;
        let (burst, count, period) = subject.quota();
        // redis-cell's capacity is its burst plus one.
        let [less, count_text, period_text] =
            [burst - 1, count, period].map(|number| number.to_string());
        match self {
            Self::Check => {
                let plan = subject.plan();
                let body = format!(
                    r#"{{"user_id":"{user}","ip":"{ip}","endpoint":"/api/items","method":"GET","plan":"{plan}"}}"#
                );
                http(to, "/v1/check", &body);
            }
            Self::Envoy => {
                let entries = [
                    ("user_id", &**user),
                    ("ip", ip),
                    ("endpoint", "/api/items"),
                    ("method", "GET"),
                    ("plan", subject.plan()),
                ];
                let entry =
                    |(key, value): (&str, &str)| Entry { key: key.into(), value: value.into() };
                let descriptor = Descriptor { entries: entries.map(entry).to_vec() };
                let request =
                    EnvoyRequest { domain: "bench".into(), descriptors: vec![descriptor] };
                to.extend(request.encode_to_vec());
            }
            Self::Throttle => {
                command(to, &["CL.THROTTLE", user, &less, &count_text, &period_text]);
            }
            Self::RespCheck => {
                let plan = subject.plan();
                let attributes = ["endpoint", "/api/items", "method", "GET", "plan", plan];
                let words: Vec<_> =
                    ["SG.CHECK", "user_id", user, "ip", ip].into_iter().chain(attributes).collect();
                command(to, &words);
            }
            Self::CrabHttp => {
                let body = format!(
                    r#"{{"key":"{user}","max_burst":{burst},"count_per_period":{count},"period":{period}}}"#
                );
                http(to, "/throttle", &body);
            }
            Self::CrabGrpc => {
                let request = CrabRequest {
                    key: user.clone(),
                    max_burst: burst,
                    count_per_period: count,
                    period,
                    quantity: 1,
                };
                to.extend(request.encode_to_vec());
            }
            Self::CrabResp => {
                let burst = burst.to_string();
                command(to, &["THROTTLE", user, &burst, &count_text, &period_text]);
            }
        }
    }

    fn is_allowed(self) -> fn(&[u8]) -> bool {
        match self {
            Self::Check | Self::CrabHttp => |body| body.starts_with(br#"{"allowed":true"#),
            // The first field: overall_code is OK, or allowed is true.
            Self::Envoy | Self::CrabGrpc => |message| message.starts_with(&[8, 1]),
            Self::Throttle => |value| value.starts_with(b"*5\r\n:0\r\n"),
            Self::RespCheck => |value| value.starts_with(b"*10\r\n:1\r\n"),
            Self::CrabResp => |value| value.starts_with(b"*5\r\n:1\r\n"),
        }
    }
}

fn http(to: &mut Vec<u8>, path: &str, body: &str) {
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    head += "user-agent: sluicegate-bench\r\naccept: */*\r\ncontent-type: application/json\r\n";
    let _ = write!(head, "content-length: {}\r\n\r\n", body.len());
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(body.as_bytes());
}

fn command(to: &mut Vec<u8>, words: &[&str]) {
    to.extend(format!("*{}\r\n", words.len()).into_bytes());
    for word in words {
        to.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
}
