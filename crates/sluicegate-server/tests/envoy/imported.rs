//! An imported configuration of envoyproxy/ratelimit behaves over gRPC as it does there, except that a call is charged
//! completely or not at all.

use crate::common::{Launch, Server};
use crate::envoy::rls::{Code, Rls, Unit, call, descriptor};

/// Windows of a day, which rarely end during a test.
const CONFIG: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: remote_address
    value: 192.0.2.1
    rate_limit: { unlimited: true }
  - key: path
    value: /api/*
    rate_limit: { name: pages, unit: hour, requests_per_unit: 2 }
  - key: path
    rate_limit: { unit: day, requests_per_unit: 9 }
  - key: path
    value: /login
    descriptors:
      - key: user
        rate_limit: { name: logins, unit: day, requests_per_unit: 1 }
  - key: trial
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: customer
    value: gold
    rate_limit:
      unit: day
      requests_per_unit: 5
      replaces: [{ name: logins }]
";

/// Starts a service with only these limits.
fn imported(algorithm: &str) -> Server {
    let server = Launch::serve(&[]).with_grpc().file("config.yaml", CONFIG).start();
    let file = server.folder().join("config.yaml").display().to_string();
    let url = format!("http://{}", server.address);
    let imported = Launch::new(&["rules", "import", "--from", "envoy-ratelimit", &file])
        .args(&["--algorithm", algorithm, "--replace", "--yes", "--server", &url])
        .run();
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert!(!imported.stderr.contains("left out"), "{imported:?}");
    server
}

/// Charges these entries and returns what is left; `None` if they are not limited.
fn left(rls: &Rls, entries: &[(&str, &str)]) -> Option<u32> {
    let answer = rls.ask(&[descriptor(entries)]);
    let status = &answer.statuses[0];
    status.current_limit.as_ref().map(|_| status.limit_remaining)
}

fn behaves_as_there(algorithm: &str) {
    let server = imported(algorithm);
    let rls = Rls::of(&server);

    // Every value has a bucket, and an exact match comes first.
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.7")]), Some(2));
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.7")]), Some(1));
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.8")]), Some(2));
    let unlimited = rls.ask(&[descriptor(&[("remote_address", "192.0.2.1")])]);
    assert_eq!((unlimited.is_ok(), unlimited.remaining()), (true, vec![u32::MAX]));
    assert!(unlimited.statuses[0].current_limit.is_none());

    // A wildcard comes before the default; each value has a bucket.
    let pages = rls.ask(&[descriptor(&[("path", "/api/a/b")])]);
    let limit = pages.statuses[0].current_limit.clone().unwrap();
    assert_eq!(
        (limit.name.as_str(), limit.requests_per_unit, limit.unit()),
        ("pages", 2, Unit::Hour)
    );
    assert_eq!(left(&rls, &[("path", "/api/c")]), Some(1));
    assert_eq!(left(&rls, &[("path", "/about")]), Some(8));

    // Depth and order must be the same, and an exact branch never falls back.
    assert_eq!(left(&rls, &[("path", "/login")]), None);
    assert_eq!(left(&rls, &[("path", "/login"), ("user", "42")]), Some(0));
    assert_eq!(left(&rls, &[("user", "42"), ("path", "/login")]), None);
    assert_eq!(left(&rls, &[("path", "/about"), ("user", "42")]), None);
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.7"), ("path", "/about")]), None);
    let mut elsewhere = call(&[descriptor(&[("remote_address", "192.0.2.7")])]);
    elsewhere.domain = "elsewhere".into();
    assert!(rls.call(elsewhere).unwrap().statuses[0].current_limit.is_none());

    // Limits in shadow mode do not deny.
    for _ in 0..3 {
        assert!(rls.ask(&[descriptor(&[("trial", "1")])]).is_ok());
    }
    // A limit replaces another one in any descriptor of the call.
    let login = descriptor(&[("path", "/login"), ("user", "42")]);
    assert_eq!(rls.ask_one(&login).codes(), [Code::OverLimit]);
    let gold = descriptor(&[("customer", "gold")]);
    let replaced = rls.ask(&[login.clone(), gold]);
    assert_eq!((replaced.is_ok(), replaced.remaining()), (true, vec![0, 4]));
    // Unlike there, a denied call charges nothing.
    let address = descriptor(&[("remote_address", "192.0.2.9")]);
    assert_eq!(rls.ask(&[address.clone(), login]).codes(), [Code::Ok, Code::OverLimit]);
    assert_eq!(rls.ask_one(&address).remaining(), [2]);
}

#[test]
fn it_behaves_as_there_with_token_buckets() {
    behaves_as_there("token_bucket");
}

#[test]
fn it_behaves_as_there_with_windows() {
    behaves_as_there("fixed_window");
}
