//! A configuration of envoyproxy/ratelimit, imported, behaves over gRPC as it does there; but for the charge, which is
//! all or nothing.

use crate::common::{Launch, Server};
use crate::envoy::rls::{Code, Rls, Unit, call, descriptor};

/// Windows of a day seldom end in the middle of a test.
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

/// A service with these limits and no others.
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

/// What is left for these entries, once they are charged; none if they are not limited.
fn left(rls: &Rls, entries: &[(&str, &str)]) -> Option<u32> {
    let answer = rls.ask(&[descriptor(entries)]);
    let status = &answer.statuses[0];
    status.current_limit.as_ref().map(|_| status.limit_remaining)
}

fn behaves_as_there(algorithm: &str) {
    let server = imported(algorithm);
    let rls = Rls::of(&server);

    // A bucket for each value, and the exact one first.
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.7")]), Some(2));
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.7")]), Some(1));
    assert_eq!(left(&rls, &[("remote_address", "192.0.2.8")]), Some(2));
    let unlimited = rls.ask(&[descriptor(&[("remote_address", "192.0.2.1")])]);
    assert_eq!((unlimited.is_ok(), unlimited.remaining()), (true, vec![u32::MAX]));
    assert!(unlimited.statuses[0].current_limit.is_none());

    // Wildcards before none; each value has its own bucket.
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

    // Shadows deny nobody.
    for _ in 0..3 {
        assert!(rls.ask(&[descriptor(&[("trial", "1")])]).is_ok());
    }
    // A limit takes the place of another one, in whatever descriptor of the call that is.
    let login = descriptor(&[("path", "/login"), ("user", "42")]);
    assert_eq!(rls.ask_one(&login).codes(), [Code::OverLimit]);
    let gold = descriptor(&[("customer", "gold")]);
    let replaced = rls.ask(&[login.clone(), gold]);
    assert_eq!((replaced.is_ok(), replaced.remaining()), (true, vec![0, 4]));
    // Not as there: a denied call charges nobody.
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
