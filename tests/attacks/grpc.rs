//! Misuse of the gRPC listener.

use tonic::Code;

use crate::common::with_rules;

#[expect(dead_code, unused_imports, reason = "this suite uses a part of the client")]
#[path = "../../crates/sluicegate-server/tests/envoy/rls.rs"]
mod rls;

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
            Err(refused) => assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}"),
        }
        // The same protocol over HTTP.
        let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "user_id", "value": "42"}],
                       "hitsAddend": 50, "isNegativeHits": true}]}"#;
        refunded += usize::from(server.post_json("/json", body).status == 200);
    }
    eprintln!("{BURSTS} bursts of 50 on a limit of 50: {admitted} admitted, {refunded} refunds");
    assert_eq!((admitted, refunded), (50, 0));
    assert!(server.get("/metrics").body.contains("sluicegate_refunds_total 0"));
}
