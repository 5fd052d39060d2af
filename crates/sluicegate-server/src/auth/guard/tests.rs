use std::net::SocketAddr;
use std::ops::Deref;

use axum::http::HeaderValue;

use super::*;
use crate::config::{Address, Admin, Secret};
use crate::time::Timestamp;

const FAILURES: u64 = 5;

fn config(token: Option<&str>) -> Config {
    let admin =
        Admin { token: token.map(Secret::new), is_local_open: true, failures_per_minute: FAILURES };
    let mut config = Config { admin, ..Config::default() };
    config.database.url = None;
    config
}

/// A guard, asked through its only listener.
#[derive(Debug)]
struct Guarded {
    guard: Guard,
    is_local: bool,
}

impl Guarded {
    fn require(&self, headers: &HeaderMap, peer: IpAddr, role: Role) -> Result<String, Refusal> {
        self.guard.require(headers, Source { peer, is_local: self.is_local }, role)
    }

    fn pass(&self, headers: &HeaderMap) -> Pass {
        Pass::of(headers, Source { is_local: self.is_local, ..Source::UNKNOWN })
    }
}

impl Deref for Guarded {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

fn guard(token: Option<&str>, is_local: bool) -> Guarded {
    guard_of(config(token), is_local)
}

fn guard_of(mut config: Config, is_local: bool) -> Guarded {
    let ip = if is_local { [127, 0, 0, 1] } else { [0, 0, 0, 0] };
    config.listen.http.address = Some(Address::Tcp(SocketAddr::from((ip, 8080))));
    Guarded { guard: Guard::new(&config).unwrap(), is_local }
}

fn stored(name: &str, role: Role) -> StoredToken {
    StoredToken {
        token_id: 1,
        name: name.into(),
        role,
        hash: tokens::hash(format!("sg_{name}")),
        created_by: "admin".into(),
        created_at: Timestamp::from_micros(0),
    }
}

fn showing(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

fn peer(last: u8) -> IpAddr {
    IpAddr::from([203, 0, 113, last])
}

#[test]
fn no_token_is_needed_on_loopback_while_there_is_none() {
    let none = HeaderMap::new();
    let open = guard(None, true);
    assert_eq!(open.require(&none, peer(1), Role::Admin), Ok("local".into()));
    assert!(open.is_open());
    open.set_tokens(vec![stored("ci", Role::Read)]);
    assert!(!open.is_open());
    assert_eq!(open.require(&none, peer(1), Role::Read), Err(Refusal::Missing));
    open.set_tokens(Vec::new());
    assert_eq!(open.require(&none, peer(1), Role::Admin), Ok("local".into()));
    for closed in [guard(Some("t"), true), guard(None, false), guard(Some("t"), false)] {
        assert_eq!(closed.require(&none, peer(1), Role::Read), Err(Refusal::Missing));
    }
}

/// The listener of a request decides, and not the one that serves the administration.
#[test]
fn only_requests_over_local_listeners_need_no_token() {
    let guard = guard(None, true);
    let none = HeaderMap::new();
    let elsewhere = Source { peer: peer(1), is_local: false };
    assert_eq!(guard.guard.require(&none, elsewhere, Role::Read), Err(Refusal::Missing));
    assert!(guard.is_open() && guard.is_open_to(true) && !guard.is_open_to(false));
    assert!(!guard.still_authorizes(&Pass::of(&none, elsewhere), Role::Read));

    let (uri, foreign) = (Uri::from_static("/"), HeaderValue::from_static("limits.example"));
    let foreign = HeaderMap::from_iter([(header::HOST, foreign)]);
    assert_eq!(Guard::require_own_site(&uri, &foreign, true), Err(ForeignSite::Host));
    assert_eq!(Guard::require_own_site(&uri, &foreign, false), Ok(()));
}

/// Fields of a proxy, one in each request.
fn forwarded() -> impl Iterator<Item = HeaderMap> {
    let names = ["forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-proto"];
    let odd = ["x-forwarded", "x-forwarded-client-cert"];
    names.into_iter().chain(odd).map(|name| {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(""))])
    })
}

#[test]
fn a_request_through_a_proxy_is_not_local() {
    let open = guard(None, true);
    for headers in forwarded() {
        for role in Role::ALL {
            assert_eq!(open.require(&headers, peer(1), role), Err(Refusal::Forwarded));
        }
        assert!(!open.still_authorizes(&open.pass(&headers), Role::Read));
        let mut with_token = headers.clone();
        with_token.extend(showing("sg_guess"));
        assert_eq!(open.require(&with_token, peer(1), Role::Read), Err(Refusal::Wrong));
    }
    open.set_tokens(vec![stored("ci", Role::Admin)]);
    for mut headers in forwarded() {
        assert_eq!(open.require(&headers, peer(1), Role::Read), Err(Refusal::Missing));
        headers.extend(showing("sg_ci"));
        assert_eq!(open.require(&headers, peer(1), Role::Admin), Ok("token:ci".into()));
        assert!(open.still_authorizes(&open.pass(&headers), Role::Admin));
    }
}

#[test]
fn this_machine_needs_a_token_too_if_the_settings_say_so() {
    let mut config = config(None);
    config.admin.is_local_open = false;
    let closed = guard_of(config, true);
    let none = HeaderMap::new();
    assert!(closed.is_closed() && !closed.is_open());
    assert_eq!(closed.require(&none, peer(1), Role::Read), Err(Refusal::Missing));
    assert!(!closed.still_authorizes(&closed.pass(&none), Role::Read));
    closed.set_tokens(vec![stored("ci", Role::Admin)]);
    assert!(!closed.is_closed());
    assert_eq!(closed.require(&showing("sg_ci"), peer(1), Role::Admin), Ok("token:ci".into()));
}

#[test]
fn a_pass_is_checked_again_and_not_counted_as_a_guess() {
    let open = guard(None, true);
    let (nobody, reader) = (open.pass(&HeaderMap::new()), open.pass(&showing("sg_ci")));
    assert!(open.still_authorizes(&nobody, Role::Read), "this machine needs none");
    open.set_tokens(vec![stored("ci", Role::Read)]);
    assert!(!open.still_authorizes(&nobody, Role::Read));
    assert!(open.still_authorizes(&reader, Role::Read));
    assert!(!open.still_authorizes(&reader, Role::Admin));
    open.set_tokens(vec![stored("other", Role::Admin)]);
    for _ in 0..2 * FAILURES {
        assert!(!open.still_authorizes(&reader, Role::Read), "it is revoked");
    }
    assert_eq!(open.require(&showing("sg_ci"), peer(1), Role::Read), Err(Refusal::Wrong));

    // Guesses of other clients behind the same address do not end an open stream.
    let closed = guard(Some("t"), false);
    let admin = closed.pass(&showing("t"));
    for _ in 0..2 * FAILURES {
        let _ = closed.require(&showing("guess"), peer(1), Role::Read);
    }
    assert!(closed.still_authorizes(&admin, Role::Read));
}

#[test]
fn until_tokens_are_loaded_administration_needs_one() {
    let mut config = config(None);
    config.database.url = Config::default().database.url;
    let open = guard_of(config.clone(), true);
    let none = HeaderMap::new();
    for role in Role::ALL {
        assert_eq!(open.require(&none, peer(1), role), Err(Refusal::Unknown));
    }
    assert_eq!(open.require(&showing("sg_ci"), peer(1), Role::Read), Err(Refusal::Unknown));
    for headers in forwarded() {
        assert_eq!(open.require(&headers, peer(1), Role::Read), Err(Refusal::Forwarded));
    }
    open.set_tokens(Vec::new());
    assert_eq!(open.require(&none, peer(1), Role::Admin), Ok("local".into()));
    let elsewhere = guard_of(config, false);
    assert_eq!(elsewhere.require(&none, peer(1), Role::Read), Err(Refusal::Missing));
}

#[test]
fn tokens_have_names_and_roles() {
    let guard = guard(Some("bootstrap"), false);
    guard.set_tokens(vec![stored("grafana", Role::Read), stored("deploy", Role::Admin)]);
    let ask = |token, role| guard.require(&showing(token), peer(1), role);
    for (token, name, may_admin) in [
        ("bootstrap", "admin", true),
        ("sg_grafana", "token:grafana", false),
        ("sg_deploy", "token:deploy", true),
    ] {
        assert_eq!(ask(token, Role::Read), Ok(name.into()));
        let admin = if may_admin { Ok(name.into()) } else { Err(Refusal::Role) };
        assert_eq!(ask(token, Role::Admin), admin);
    }
    // A revoked token is an unknown one.
    guard.set_tokens(vec![stored("deploy", Role::Admin)]);
    assert_eq!(ask("sg_grafana", Role::Read), Err(Refusal::Wrong));
    assert_eq!(ask("sg_nobody", Role::Read), Err(Refusal::Wrong));
    assert_eq!(ask("sg_deploy", Role::Admin), Ok("token:deploy".into()));
}

#[test]
fn guessing_locks_out_one_address_only() {
    let guard = guard(Some("right"), false);
    guard.set_tokens(vec![stored("grafana", Role::Read), stored("deploy", Role::Admin)]);
    let ask = |token: &str, from| guard.require(&showing(token), peer(from), Role::Admin);
    for guess in 0..FAILURES {
        assert_eq!(ask(&format!("wrong{guess}"), 1), Err(Refusal::Wrong));
    }
    // A locked address does not learn that the token of the settings is right.
    for token in ["wrong", "right"] {
        assert!(matches!(ask(token, 1), Err(Refusal::TooMany(wait)) if !wait.is_zero()));
    }
    assert_eq!(guard.require(&HeaderMap::new(), peer(1), Role::Admin), Err(Refusal::Missing));
    assert_eq!(ask("right", 2), Ok("admin".into()));
    // Generated tokens cannot be guessed and work throughout.
    assert_eq!(ask("sg_deploy", 1), Ok("token:deploy".into()));
    assert_eq!(ask("sg_grafana", 1), Err(Refusal::Role));
    assert!(matches!(ask("sg_nobody", 1), Err(Refusal::TooMany(_))));
}

#[test]
fn repeating_a_revoked_token_locks_no_address_out() {
    let guard = guard(Some("right"), false);
    for _ in 0..10 * FAILURES {
        let result = guard.require(&showing("sg_revoked"), peer(1), Role::Read);
        assert_eq!(result, Err(Refusal::Wrong));
    }
    assert!(guard.require(&showing("right"), peer(1), Role::Admin).is_ok());
}

#[test]
fn a_right_token_costs_nothing() {
    let guard = guard(Some("right"), false);
    for _ in 0..10 * FAILURES {
        assert!(guard.require(&showing("right"), peer(1), Role::Admin).is_ok());
    }
}

#[test]
fn there_are_no_more_tokens_than_there_may_be() {
    let guard = guard(None, false);
    let many = (0..=TOKENS_MAX as u64)
        .rev()
        .map(|id| StoredToken { token_id: id, ..stored(&id.to_string(), Role::Read) });
    guard.set_tokens(many.collect());
    let ask = |id: usize| guard.require(&showing(&format!("sg_{id}")), peer(1), Role::Read);
    assert_eq!(ask(0), Ok("token:0".into()));
    assert_eq!(ask(TOKENS_MAX - 1), Ok(format!("token:{}", TOKENS_MAX - 1)));
    assert_eq!(ask(TOKENS_MAX), Err(Refusal::Wrong));
}

#[test]
fn debug_shows_no_secret() {
    let guard = guard(Some("canary"), false);
    guard.set_tokens(vec![stored("ci", Role::Read)]);
    let shown = format!("{guard:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains(&format!("{:?}", tokens::hash("canary"))), "{shown}");
}
