use super::*;
use crate::config::{Config, Secret};
use crate::data::{Rights, StoredCaller, StoredToken};
use crate::time::Timestamp;

const BOOTSTRAP: &str = "correct-horse-battery-staple";
const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn stored(name: &str) -> StoredCaller {
    StoredCaller {
        caller_id: 1,
        name: name.into(),
        rights: Rights::from_iter([Right::Check]),
        namespace: Some("team".into()),
        hash: Some(tokens::hash(format!("sg_{name}"))),
        certificate: Some(format!("{name}.example")),
        expires_at: None,
        created_by: "admin".into(),
        created_at: NOW,
    }
}

fn admission(callers: &[StoredCaller], is_anonymous_allowed: bool) -> Admission {
    let mut config = Config::default();
    config.admin.token = Some(Secret::new(BOOTSTRAP));
    config.admin.failures_per_minute = 3;
    let guard = Arc::new(Guard::new(&config).unwrap());
    let reader = StoredToken {
        token_id: 1,
        name: "reader".into(),
        role: Role::Read,
        hash: tokens::hash("sg_reader"),
        created_by: "admin".into(),
        created_at: NOW,
    };
    guard.set_tokens(vec![reader]);
    let in_force = Callers::default();
    in_force.set(callers, NOW);
    config.listen.is_anonymous_allowed = is_anonymous_allowed;
    Admission::new(Arc::new(in_force), guard, &config).unwrap()
}

fn connection(is_local: bool, requires_certificates: bool) -> ConnectionInfo {
    let listener = ListenerTraits { door: Door::Http, is_local, requires_certificates };
    ConnectionInfo::new(([203, 0, 113, 9], 1).into(), listener)
}

fn local() -> ConnectionInfo {
    connection(true, false)
}

fn bearer(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

/// Name of the identity that a check is answered for, or the reason for refusing it.
fn check(
    admission: &Admission,
    connection: &ConnectionInfo,
    headers: &HeaderMap,
) -> Result<String, Refused> {
    let field = CredentialField::Authorization;
    Ok(match admission.admit(connection, headers, field, Right::Check)? {
        Asker::Anonymous => "anonymous".into(),
        Asker::Administrator(_) => "administrator".into(),
        Asker::Caller(caller) => caller.name.to_string(),
    })
}

#[test]
fn without_callers_only_some_listeners_are_open() {
    let (closed, open) = (admission(&[], false), admission(&[], true));
    let anonymous = || Ok("anonymous".to_owned());
    let none = HeaderMap::new();
    for (connection, expected) in [
        (local(), anonymous()),
        (connection(false, true), anonymous()),
        (connection(false, false), Err(Refused::Missing)),
    ] {
        assert_eq!(check(&closed, &connection, &none), expected, "{connection:?}");
        assert_eq!(check(&open, &connection, &none), anonymous());
    }
    // Credentials are ignored where none are needed, wrong ones too.
    assert_eq!(check(&closed, &local(), &bearer("wrong")), anonymous());
    assert_eq!(check(&closed, &connection(false, false), &bearer("wrong")), Err(Refused::Wrong));
}

#[test]
fn with_callers_every_request_needs_one() {
    let a = admission(&[stored("a")], false);
    for connection in [local(), connection(false, true), connection(false, false)] {
        assert_eq!(check(&a, &connection, &HeaderMap::new()), Err(Refused::Missing));
        assert_eq!(check(&a, &connection, &bearer("sg_a")).as_deref(), Ok("a"));
        assert_eq!(check(&a, &connection, &bearer("sg_b")), Err(Refused::Wrong));
        assert_eq!(check(&a, &connection, &bearer("sg_reader")), Err(Refused::Role));
        assert_eq!(check(&a, &connection, &bearer(BOOTSTRAP)).as_deref(), Ok("administrator"));
    }
    let open = admission(&[stored("a")], true);
    assert_eq!(check(&open, &local(), &HeaderMap::new()).as_deref(), Ok("anonymous"));
    assert_eq!(check(&open, &local(), &bearer("sg_b")), Err(Refused::Wrong));
}

#[test]
fn a_certificate_counts_where_no_token_is_sent() {
    let both = [stored("a"), StoredCaller { caller_id: 2, ..stored("b") }];
    let admission = admission(&both, false);
    let mut connection = connection(false, true);
    connection.certificate_names = Box::new(["b.example".into()]);
    for _ in 0..2 {
        assert_eq!(check(&admission, &connection, &HeaderMap::new()).as_deref(), Ok("b"));
        assert_eq!(check(&admission, &connection, &bearer("sg_a")).as_deref(), Ok("a"));
        assert_eq!(check(&admission, &connection, &bearer("sg_x")), Err(Refused::Wrong));
    }
    connection.certificate_names = Box::new(["c.example".into()]);
    admission.callers.set(&[stored("a")], NOW);
    assert_eq!(check(&admission, &connection, &HeaderMap::new()), Err(Refused::Missing));
}

#[test]
fn a_cached_caller_is_verified_again_after_a_change() {
    let admission = admission(&[stored("a")], false);
    let (connection, token) = (local(), bearer("sg_a"));
    for _ in 0..3 {
        assert_eq!(check(&admission, &connection, &token).as_deref(), Ok("a"));
    }
    for other in ["sg_b", "sg_", "sg_aa"] {
        assert_eq!(check(&admission, &connection, &bearer(other)), Err(Refused::Wrong), "{other}");
    }
    let less = StoredCaller { rights: Rights::from_iter([Right::Take]), ..stored("a") };
    admission.callers.set(&[less], NOW);
    let lacks = Err(Refused::Right(Right::Check));
    assert_eq!(check(&admission, &connection, &token), lacks);
    let expired = StoredCaller { expires_at: Some(NOW), ..stored("a") };
    admission.callers.set(&[expired], NOW);
    assert!(check(&admission, &connection, &token).is_err());
    admission.callers.set(&[], NOW);
    assert_eq!(check(&admission, &connection, &token).as_deref(), Ok("anonymous"));
}

#[test]
fn wrong_tokens_are_limited_by_address_and_callers_are_not() {
    let admission = admission(&[stored("a")], false);
    let connection = local();
    for n in 0..3 {
        let wrong = bearer(&format!("sg_wrong{n}"));
        assert_eq!(check(&admission, &connection, &wrong), Err(Refused::Wrong));
    }
    let refused = check(&admission, &connection, &bearer("sg_wrong"));
    assert!(matches!(refused, Err(Refused::TooMany(_))), "{refused:?}");
    let refused = check(&admission, &connection, &bearer(BOOTSTRAP));
    assert!(matches!(refused, Err(Refused::TooMany(_))), "{refused:?}");
    assert_eq!(check(&admission, &connection, &bearer("sg_a")).as_deref(), Ok("a"));
}

#[test]
fn requests_without_a_caller_never_refund() {
    let admission = admission(&[], true);
    let admit = |headers: &HeaderMap| {
        let field = CredentialField::Authorization;
        admission.admit(&local(), headers, field, Right::Refund)
    };
    assert_eq!(admit(&HeaderMap::new()).unwrap_err(), Refused::Missing);
    assert_eq!(admit(&bearer("sg_wrong")).unwrap_err(), Refused::Wrong);
    assert!(matches!(admit(&bearer(BOOTSTRAP)), Ok(Asker::Administrator(_))));
}

#[test]
fn each_path_has_its_field_of_credentials() {
    let field = CredentialField::Authorization;
    let read = |field: CredentialField, headers: &HeaderMap| {
        let value = field.value(headers)?;
        Some(match field.credentials(value) {
            Credentials::Token(token) => Some(token.to_owned()),
            Credentials::Absent | Credentials::Ambiguous => None,
        })
    };
    let token_t = || Some(Some("t".to_owned()));
    assert_eq!(read(field, &bearer("t")), token_t());
    assert_eq!(read(field, &HeaderMap::new()), Some(None));
    let basic = HeaderValue::from_static("Basic dXNlcjpwYXNz");
    let basic = HeaderMap::from_iter([(header::AUTHORIZATION, basic)]);
    assert_eq!(read(field, &basic), Some(None));
    let mut several = bearer("t");
    several.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    assert_eq!(read(field, &several), None);

    // `Authorization` belongs to the proxy's client.
    assert_eq!(read(CredentialField::Token, &bearer("t")), Some(None));
    let token = HeaderMap::from_iter([(TOKEN_HEADER, HeaderValue::from_static("t"))]);
    assert_eq!(read(CredentialField::Token, &token), token_t());
    assert_eq!(read(field, &token), Some(None));
}
