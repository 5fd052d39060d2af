//! Limits in descriptors, and rejected messages.

use tonic::Code as GrpcCode;

use crate::common::{Launch, on_every_store, with_rules};
use crate::envoy::rls::{Code, RateLimitRequest, RateLimitUnit, Rls, Unit, call, descriptor};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
"#;

fn launch() -> Launch {
    with_rules(RULES).with_grpc()
}

#[test]
fn a_limit_of_its_own_counts_instead_of_the_rules() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let user = descriptor(&[("user_id", "42"), ("route", "a")]);
        rls.ask_one(&user);
        assert!(!rls.ask_one(&user).is_ok());

        let own = user.clone().limit(3, RateLimitUnit::Minute);
        let answer = rls.ask_one(&own);
        let limit = answer.statuses[0].current_limit.clone().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (3, Unit::Minute));
        assert_eq!((limit.name.as_str(), answer.remaining()), ("user_id,route", vec![2]));
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""user_id,route";q=3;w=60"#));
        rls.ask_one(&own);
        rls.ask_one(&own);
        let denied = rls.ask_one(&own);
        assert_eq!((denied.is_ok(), denied.remaining()), (false, vec![0]));
        assert!(denied.header("retry-after").is_some());
        let body = String::from_utf8(denied.raw_body).unwrap();
        assert!(body.contains(r#""violated-policies":["user_id,route"],"rule_id":null"#), "{body}");

        // Every list of entries in every domain has a separate bucket, whatever its characters.
        let lists: [&[(&str, &str)]; 4] = [
            &[("user_id", "42")],
            &[("user_id", "42"), ("rout", "ea")],
            &[("user_id", "425"), ("route", "a")],
            &[("route", "a"), ("user_id", "42")],
        ];
        for entries in lists {
            let other = descriptor(entries).limit(3, RateLimitUnit::Minute);
            assert_eq!(rls.ask(&[other]).remaining(), [2], "{entries:?}");
        }
        let mut elsewhere = call(&[own]);
        elsewhere.domain = "elsewhere".into();
        assert_eq!(rls.call(elsewhere).unwrap().remaining(), [2]);
    });
}

#[test]
fn a_limit_of_nothing_lets_nothing_through() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let nothing = descriptor(&[("a", "b")]).limit(0, RateLimitUnit::Second);
        for hits in [0, 1, 5] {
            let answer = rls.ask(&[nothing.clone().hits(hits), descriptor(&[("user_id", "42")])]);
            assert_eq!(answer.codes(), [Code::OverLimit, Code::Ok], "{hits}");
            assert_eq!((answer.is_ok(), answer.remaining()), (false, vec![0, 1]));
            assert_eq!(answer.header("retry-after"), None);
        }
    });
}

#[test]
fn another_limit_for_the_same_entries_is_another_bucket() {
    on_every_store(launch, |server| {
        let rls = Rls::of(server);
        let entries = descriptor(&[("user_id", "42")]);
        let many = entries.clone().limit(4, RateLimitUnit::Day);
        let few = entries.clone().limit(1, RateLimitUnit::Day);
        let nothing = entries.clone().limit(0, RateLimitUnit::Day);
        let others = [few, nothing, entries.limit(4, RateLimitUnit::Hour)];
        for left in [Some(3), Some(2), Some(1), Some(0), None, None] {
            let answer = rls.ask_one(&many);
            assert_eq!(
                (answer.is_ok(), answer.remaining()),
                (left.is_some(), vec![left.unwrap_or(0)])
            );
            for other in &others {
                rls.ask_one(other);
            }
        }
        // In one call the stricter limit denies, in either order.
        let strict = descriptor(&[("a", "z")]).limit(1, RateLimitUnit::Hour);
        let lax = descriptor(&[("a", "z")]).limit(1000, RateLimitUnit::Second);
        assert!(rls.ask(&[lax.clone(), strict.clone()]).is_ok());
        assert!(!rls.ask(&[lax.clone(), strict.clone()]).is_ok());
        assert!(!rls.ask(&[strict, lax]).is_ok());
    });
}

#[test]
fn no_value_of_a_client_is_refused() {
    let server = launch().args(&["--limits-value-bytes-max", "16"]).start();
    let rls = Rls::of(&server);
    let of = |value: &[u8]| {
        let mut descriptor = descriptor(&[("user_id", "")]);
        descriptor.entries[0].value = value.to_vec();
        descriptor
    };
    // Truncated to the same 16 bytes, at a character boundary.
    for [one, other] in [
        ["1234567890123456+".to_owned(), "1234567890123456-".repeat(10_000)],
        ["123456789012345é".to_owned(), "123456789012345".to_owned()],
    ] {
        assert!(rls.ask_one(&of(one.as_bytes())).is_ok());
        assert!(!rls.ask_one(&of(other.as_bytes())).is_ok());
    }
    // Bytes that are not UTF-8 are read as Latin-1.
    assert!(rls.ask_one(&of(b"a\xff")).is_ok());
    assert!(!rls.ask_one(&of("aÿ".as_bytes())).is_ok());
    assert!(rls.ask_one(&of(b"a\xfe")).is_ok());
    let own = of(b"a\xff").limit(1, RateLimitUnit::Day);
    assert!(rls.ask_one(&own).is_ok());
    assert!(!rls.ask_one(&own).is_ok());
}

#[test]
fn endpoints_have_one_spelling() {
    let rules = RULES.replace("user:{user_id}", "endpoint:{endpoint}");
    let server = with_rules(&rules).with_grpc().start();
    let rls = Rls::of(&server);
    assert!(rls.ask(&[descriptor(&[("path", "/login")])]).is_ok());
    for path in ["//login", "/./login", "/%6cogin", "/x/../login", "/login?x", "/login#top"] {
        for key in ["path", ":path", "endpoint"] {
            assert!(!rls.ask(&[descriptor(&[(key, path)])]).is_ok(), "{key} {path}");
        }
    }
    // A value that is not a path is a name given by the operator.
    assert!(rls.ask(&[descriptor(&[("path", "login")])]).is_ok());
    assert!(!rls.ask(&[descriptor(&[("path", "login")])]).is_ok());
}

#[test]
fn units_are_as_long_as_envoy_counts_them() {
    let server = launch().start();
    let rls = Rls::of(&server);
    let units = [
        (RateLimitUnit::Second, 1),
        (RateLimitUnit::Minute, 60),
        (RateLimitUnit::Hour, 3600),
        (RateLimitUnit::Day, 86_400),
        (RateLimitUnit::Month, 2_592_000),
        (RateLimitUnit::Year, 31_536_000),
    ];
    for (unit, seconds) in units {
        let own = descriptor(&[("unit", unit.as_str_name())]).limit(1, unit);
        let answer = rls.ask(&[own]);
        let status = &answer.statuses[0];
        assert_eq!(status.current_limit.as_ref().unwrap().unit, i32::from(unit));
        assert_eq!(status.duration_until_reset.unwrap().seconds, seconds);
    }
}

#[test]
fn figures_are_cut_off_where_the_message_ends() {
    let rules = RULES.replace("tokens = 1", "tokens = 10000000000").replace("1d", "1s");
    let server = with_rules(&rules).with_grpc().start();
    let answer = Rls::of(&server).ask(&[descriptor(&[("user_id", "42")])]);
    let limit = answer.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit()), (u32::MAX, Unit::Second));
    assert_eq!(answer.remaining(), [u32::MAX]);
    let largest = descriptor(&[("a", "b")]).limit(u32::MAX, RateLimitUnit::Second);
    assert_eq!(Rls::of(&server).ask(&[largest]).remaining(), [u32::MAX - 1]);
}

#[test]
fn wrong_messages_are_refused_and_say_what_is_wrong() {
    let server = launch().args(&["--limits-value-bytes-max", "16"]).start();
    let rls = Rls::of(&server);
    let long = "12345678901234567";
    let fine = || descriptor(&[("user_id", "42")]);
    let in_domain = |domain: &str| RateLimitRequest { domain: domain.into(), ..call(&[fine()]) };
    let many: Vec<_> = (0..99).map(|_| ("key", "value")).collect();
    let cases = [
        (in_domain(""), "domain: is empty"),
        (in_domain(long), "domain: has more than 16 bytes"),
        (call(&[]), "descriptors: is empty"),
        (call(&vec![fine(); 65]), "descriptors: has more than 64 members"),
        (call(&[fine(), descriptor(&[])]), "descriptors[1].entries: is empty"),
        (call(&[descriptor(&many)]), "descriptors[0].entries: has more than 32 members"),
        (call(&[descriptor(&[("a", "b"), ("", "c")])]), "descriptors[0].entries[1].key: is empty"),
        (
            call(&[descriptor(&[(long, "b")])]),
            "descriptors[0].entries[0].key: has more than 16 bytes",
        ),
        (
            call(&[fine().limit(1, RateLimitUnit::Unknown)]),
            "descriptors[0].limit.unit: must be one of SECOND, MINUTE, HOUR, DAY, MONTH, YEAR",
        ),
    ];
    for (wrong, message) in cases {
        let refused = rls.call(wrong).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (GrpcCode::InvalidArgument, message));
    }
    let mut unknown_unit = call(&[fine().limit(1, RateLimitUnit::Day)]);
    unknown_unit.descriptors[0].limit.as_mut().unwrap().unit = 99;
    assert_eq!(rls.call(unknown_unit).unwrap_err().code(), GrpcCode::InvalidArgument);
    // The rejected calls charged nothing, and an empty value is valid.
    assert!(rls.ask(&[fine(), descriptor(&[("a", "")])]).is_ok());
}
