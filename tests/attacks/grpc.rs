//! Misuse of the gRPC listener.

use futures_util::stream;
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::common::{Client, suite_line, with_rules};

#[expect(dead_code, unused_imports, reason = "this suite uses a part of the client")]
#[path = "../../crates/sluicegate-server/tests/envoy/rls.rs"]
pub(crate) mod rls;

use self::rls::{Rls, call, descriptor};

/// Fifty at once, and then one per day.
const FIFTY: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 50
"#;

/// Bursts that a client sends, each followed by an attempt to refund it.
const BURSTS: usize = 20;

#[test]
fn a06_a_client_cannot_refund_its_own_requests() {
    let server = with_rules(FIFTY).with_grpc().start();
    let rls = Rls::of(&server);
    let user = || descriptor(&[("user_id", "42")]);
    let (mut admitted, mut refunded) = (0, 0);
    for _ in 0..BURSTS {
        admitted += (0..50).filter(|_| rls.ask(&[user()]).is_ok()).count();
        match rls.call(call(&[user().hits(50).negative()])) {
            Ok(_) => refunded += 1,
            // A caller lacks the right; an anonymous client never refunds.
            Err(refused) => {
                let code = refused.code();
                assert!(
                    [Code::InvalidArgument, Code::PermissionDenied].contains(&code),
                    "{code:?}"
                );
            }
        }
        // The same protocol over HTTP.
        let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user_id", "value": "42"}],
                       "hitsAddend": 50, "isNegativeHits": true}]}"#;
        refunded += usize::from(server.post_json("/json", body).status == 200);
    }
    eprintln!("{BURSTS} bursts of 50 on a limit of 50: {admitted} admitted, {refunded} refunds");
    assert_eq!((admitted, refunded), (50, 0));
    assert!(server.get("/metrics").body.contains(r#"sluicegate_refunds_total{door="grpc"} 0"#));
}

/// Fields that a browser adds to requests of a page, with values of the page's own choice and of its own site.
const OF_PAGES: [(&str, &str); 5] = [
    ("origin", "https://evil.example"),
    ("origin", "null"),
    ("origin", ""),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-site", "same-origin"),
];

/// A call with a field of a browser.
fn of_page<T>(message: T, (name, value): (&'static str, &str)) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(name, MetadataValue::try_from(value).unwrap());
    request
}

#[test]
fn a07_no_page_can_call_grpc_whatever_the_authority() {
    let server = with_rules(FIFTY).with_grpc().start();
    let rls = Rls::of(&server);
    let user = || descriptor(&[("user_id", "42")]);
    let refused = Code::PermissionDenied;
    for field in OF_PAGES {
        let answer = rls.call(of_page(call(&[user()]), field));
        assert_eq!(answer.unwrap_err().code(), refused, "{field:?}");
        let mut health = HealthClient::new(rls.channel());
        let answer = rls.wait(health.check(of_page(HealthCheckRequest::default(), field)));
        assert_eq!(answer.unwrap_err().code(), refused, "{field:?}");
        let mut reflection = ServerReflectionClient::new(rls.channel());
        let asked = of_page(stream::empty::<ServerReflectionRequest>(), field);
        let answer = rls.wait(reflection.server_reflection_info(asked));
        assert_eq!(answer.unwrap_err().code(), refused, "{field:?}");
    }
    let remaining = rls.ask(&[user()]).remaining();
    eprintln!("{} calls of pages refused, {remaining:?} tokens left of 49", 3 * OF_PAGES.len());
    assert_eq!(remaining, [49], "a page charges nothing");
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("sluicegate_foreign_sites_refused_total 15"), "{metrics}");
    server.wait_for_log("request from a page of another site rejected");
}

/// Browsers speak HTTP/1 to a listener without TLS, and name the host that they believe to ask.
#[test]
fn a07_no_page_can_call_grpc_over_http_1() {
    const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let server = with_rules(FIFTY).with_grpc().start();
    let message = call(&[descriptor(&[("user_id", "42")])]).encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let message = [&[0][..], &length, &message].concat();
    let send = |host: &str, field: &str| {
        let mut client = Client::connect(server.address_of("grpc")).unwrap();
        let (length, caller) = (message.len(), suite_line(PATH));
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/grpc\r\n\
             content-length: {length}\r\n{caller}{field}\r\n"
        );
        client.send(&[head.as_bytes(), &message].concat()).unwrap();
        client.read_head().unwrap()
    };
    for host in ["evil.example", "localhost", "127.0.0.1", "sluicegate_cluster"] {
        for (name, value) in OF_PAGES {
            let answer = send(host, &format!("{name}: {value}\r\n"));
            assert_eq!(answer.header("grpc-status"), Some("7"), "{host} {name} {answer:?}");
        }
        // Envoy's authority is the name of its cluster. The status of a success is a trailer.
        assert_eq!(send(host, "").header("grpc-status"), None, "{host}");
    }
}
