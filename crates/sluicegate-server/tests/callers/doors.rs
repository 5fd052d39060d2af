//! Every operation of every door, as one kind of client asks for it.

use std::net::SocketAddr;

use sluicegate_tests::tls::{Certificates, Pair};
use tonic::Code;

use super::tunnel::tunnel;
use crate::common::{Client, Response, Server};
use crate::envoy::rls::{RateLimitDescriptor, RateLimitUnit, Rls, call, descriptor};
use crate::resp::support::{Redis, Reply};

/// Addresses of a service's doors.
#[derive(Clone, Copy)]
pub(super) struct Doors {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
    pub(super) resp: SocketAddr,
}

/// Credentials of a client.
#[derive(Clone, Copy, Default)]
pub(super) struct Credentials<'a> {
    /// Token over HTTP and gRPC.
    pub(super) token: Option<&'a str>,
    /// User and password over the Redis protocol.
    pub(super) user: Option<(&'a str, &'a str)>,
}

const CHECK: &str = r#"{"user_id": "1"}"#;
const TAKE: &str = r#"{"key": "k", "capacity": 1000, "refill_rate": 1}"#;
const REFUND: &str = r#"{"key": "k", "capacity": 1000, "refill_rate": 1, "amount": 1}"#;
const JSON: &str =
    r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user_id", "value": "1"}]}]}"#;
const JSON_LIMIT: &str = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user_id", "value": "1"}],
    "limit": {"requestsPerUnit": 1000, "unit": "HOUR"}}]}"#;
const JSON_REFUND: &str = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user_id", "value": "1"}],
    "isNegativeHits": true}]}"#;

/// Names of the columns of [`Doors::row`].
pub(super) const COLUMNS: &str = "| check batch take refund authorize json limit refund \
    | call limit refund | AUTH check take throttle refund ping";

impl Doors {
    pub(super) fn of(server: &Server) -> Self {
        let [grpc, resp] = ["grpc", "resp"].map(|door| server.address_of(door));
        Self { http: server.address, grpc, resp }
    }

    /// The same doors, through TLS with a client certificate.
    pub(super) fn through(server: &Server, certificates: &Certificates, identity: &Pair) -> Self {
        let Self { http, grpc, resp } = Self::of(server);
        let through = |address, protocols: &[&[u8]]| {
            tunnel(address, &certificates.authority(), identity, protocols)
        };
        Self { http: through(http, &[]), grpc: through(grpc, &[b"h2"]), resp: through(resp, &[]) }
    }

    /// Outcome of every operation: `ok`, a status of HTTP, the one that a status of gRPC is equal to, or the first word
    /// of an error of Redis.
    pub(super) fn row(self, credentials: Credentials<'_>) -> String {
        let Credentials { token, user } = credentials;
        format!("| {} | {} | {}", self.http_row(token), self.grpc_row(token), self.resp_row(user))
    }

    pub(super) fn http_row(self, token: Option<&str>) -> String {
        let mut client = Client::connect(self.http).unwrap();
        let mut ask = |path: &str, body: &str| {
            let answer = post(&mut client, path, token, body);
            require_form(&answer);
            match answer.status {
                200 => "ok".to_owned(),
                status => status.to_string(),
            }
        };
        let batch = format!("[{CHECK}]");
        let cells = [
            ask("/v1/check", CHECK),
            ask("/v1/check/batch", &batch),
            ask("/v1/take", TAKE),
            ask("/v1/refund", REFUND),
            ask("/v1/authorize", ""),
            ask("/json", JSON),
            ask("/json", JSON_LIMIT),
            ask("/json", JSON_REFUND),
        ];
        for path in ["/livez", "/readyz", "/metrics", "/openapi.json"] {
            let answer = client.request("GET", path, &[], b"").unwrap();
            assert_eq!(answer.status, 200, "{path} needs no caller");
        }
        cells.join(" ")
    }

    fn grpc_row(self, token: Option<&str>) -> String {
        let rls = Rls::connect(self.grpc);
        let user = || descriptor(&[("user_id", "1")]);
        let ask = |descriptor: RateLimitDescriptor| {
            let mut request = tonic::Request::new(call(&[descriptor]));
            if let Some(token) = token {
                let bearer = format!("Bearer {token}").parse().unwrap();
                request.metadata_mut().insert("authorization", bearer);
            }
            match rls.call(request).map_err(|status| status.code()) {
                Ok(_) => "ok",
                Err(Code::Unauthenticated) => "401",
                Err(Code::PermissionDenied) => "403",
                Err(Code::InvalidArgument) => "400",
                Err(other) => panic!("{other:?}"),
            }
        };
        let limited = user().limit(1000, RateLimitUnit::Hour);
        [ask(user()), ask(limited), ask(user().negative())].join(" ")
    }

    fn resp_row(self, user: Option<(&str, &str)>) -> String {
        let mut client = Redis::connect(self.resp).unwrap();
        let mut ask = |line: &str| match client.ask(line) {
            Reply::Error(text) => text.split(' ').next().unwrap().to_owned(),
            _ => "ok".to_owned(),
        };
        let auth = user.map(|(name, password)| ask(&format!("AUTH {name} {password}")));
        [
            auth.unwrap_or_else(|| "-".into()),
            ask("SG.CHECK user_id 1"),
            ask("SG.TAKE k 1000 1 1000"),
            ask("CL.THROTTLE k2 1000 1 1"),
            ask("SG.REFUND k 1 1000 1 1000"),
            ask("PING"),
        ]
        .join(" ")
    }
}

/// Posts a body with a token, in the header that the path reads it from.
pub(super) fn post(client: &mut Client, path: &str, token: Option<&str>, body: &str) -> Response {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    match (&bearer, token) {
        (_, Some(token)) if path == "/v1/authorize" => headers.push(("x-sluicegate-token", token)),
        (Some(bearer), _) => headers.push(("authorization", bearer)),
        (None, _) => {}
    }
    client.request("POST", path, &headers, body.as_bytes()).unwrap()
}

/// Checks a user over gRPC with a token.
pub(super) fn check_grpc(rls: &Rls, token: &str) -> Result<(), Code> {
    let mut request = tonic::Request::new(call(&[descriptor(&[("user_id", "1")])]));
    let bearer = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    rls.call(request).map(drop).map_err(|status| status.code())
}

/// Refusals are problems, and say how to authenticate.
fn require_form(answer: &Response) {
    if matches!(answer.status, 401 | 403) {
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    }
    let bearer = (answer.status == 401).then_some("Bearer");
    assert_eq!(answer.header("www-authenticate"), bearer, "{answer:?}");
}
