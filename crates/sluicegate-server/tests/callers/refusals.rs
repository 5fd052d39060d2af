//! Form and limits of refusals.

use std::time::Duration;

use sluicegate_server::data::{Right, Role};

use super::doors::{Doors, post};
use super::support::{RULES, admin_token, create, launch, spec};
use crate::common::{Client, PATIENCE, eventually, now};
use crate::envoy::rls::{Rls, call, descriptor};
use crate::resp::support::Redis;

#[test]
fn refusals_say_what_to_do() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[spec("a", &[Right::Check])]);
    let mut client = Client::connect(server.address).unwrap();
    let mut detail = |path: &str, token: Option<&str>| {
        post(&mut client, path, token, "{}").json()["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        detail("/v1/check", None),
        "a caller is needed: send `authorization: Bearer <token>`; `sluicegate callers create` creates a token"
    );
    assert_eq!(
        detail("/v1/authorize", None),
        "a caller is needed: send `x-sluicegate-token: <token>`; `sluicegate callers create` creates a token"
    );
    assert_eq!(
        detail("/v1/check", Some("sg_unknown")),
        "this token is not known, has expired or was revoked: send the token of a caller"
    );
    assert_eq!(
        detail("/v1/take", Some(&tokens[0])),
        "this caller may not do this: it lacks the right take"
    );
    let mut redis = Redis::connect(Doors::of(&server).resp).unwrap();
    redis.ask(&format!("AUTH a {}", tokens[0]));
    assert_eq!(
        redis.error("SG.TAKE k 1 1 1"),
        "NOPERM this caller may not run 'sg.take': it lacks the right take"
    );
    // The right is required before arguments are looked at.
    assert!(redis.error("SG.TAKE").starts_with("NOPERM "));
}

#[test]
fn a_proxy_is_denied_in_its_own_terms() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[spec("proxy", &[Right::Authorize])]);
    let bearer = format!("Bearer {}", tokens[0]);
    let ask = |method: &str, headers: &[(&str, &str)]| {
        server.request(method, "/v1/authorize", headers, "")
    };
    // `Authorization` belongs to the proxy's client, whatever it holds.
    for headers in [&[][..], &[("authorization", bearer.as_str())]] {
        let denied = ask("GET", headers);
        assert_eq!(denied.status, 401);
        assert_eq!(denied.header("x-sluicegate-decision"), Some("denied"));
        assert_eq!(denied.header("www-authenticate"), Some("Bearer"));
    }
    let mut client = server.connect();
    let head = format!("HEAD /v1/authorize HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.read_head().unwrap().status, 401);
    let token = ("x-sluicegate-token", tokens[0].as_str());
    let allowed = ask("GET", &[token, ("authorization", "Bearer of-the-client")]);
    assert_eq!((allowed.status, allowed.header("x-sluicegate-decision")), (200, Some("allowed")));
    // A client of the proxy that sends the field as well cannot choose the caller.
    assert_eq!(ask("GET", &[token, ("x-sluicegate-token", "sg_other")]).status, 401);
}

#[test]
fn a_refusal_does_not_wait_for_the_body() {
    let server = launch(RULES).args(&["--limits-body-timeout-ms", "60000"]).start();
    create(&server, &[spec("a", &Right::ALL)]);
    for path in ["/v1/check", "/v1/check/batch", "/v1/take", "/json"] {
        let started = now();
        let mut client = server.connect();
        let host = server.address;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
             content-length: 100\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.read_head().unwrap().status, 401, "{path}");
        assert!(now() - started < PATIENCE);
    }
    // One that arrives is read, so that the connection serves the next request.
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(post(&mut client, "/v1/take", None, &"x".repeat(10_000)).status, 401);
    }
    assert_eq!(client.request("GET", "/livez", &[], b"").unwrap().status, 200);
}

#[test]
fn guesses_are_limited_by_address() {
    let server = launch(RULES).env("SLUICEGATE_ADMIN_FAILURES_PER_MINUTE", "3").start();
    let tokens = create(&server, &[spec("a", &Right::ALL)]);
    let doors = Doors::of(&server);
    let mut client = Client::connect(doors.http).unwrap();
    for guess in 0..3 {
        assert_eq!(post(&mut client, "/v1/check", Some(&format!("sg_{guess}")), "{}").status, 401);
    }
    let late = post(&mut client, "/v1/take", Some("sg_3"), "{}");
    assert_eq!(late.status, 429, "{late:?}");
    assert!(late.header("retry-after").is_some());
    let rls = Rls::connect(doors.grpc);
    let ask = |token: &str| {
        let mut request = tonic::Request::new(call(&[descriptor(&[("user_id", "1")])]));
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        rls.call(request).map(drop).map_err(|status| status.code())
    };
    assert_eq!(ask("sg_4"), Err(tonic::Code::ResourceExhausted));
    // They count together with wrong tokens of the administration.
    admin_token(&server, "ops", Role::Admin);
    let mut guesses = 5..;
    eventually("the token", || {
        let wrong = format!("Bearer sg_{}", guesses.next().unwrap());
        let answer = server.request("GET", "/v1/rules", &[("authorization", &wrong)], "");
        (answer.status == 429).then_some(())
    });
    // Callers behind the same address are not locked out.
    assert_eq!(post(&mut client, "/v1/check", Some(&tokens[0]), "{}").status, 200);
    assert_eq!(ask(&tokens[0]), Ok(()));
}

#[test]
fn a_connection_that_guesses_is_closed() {
    let server = launch(RULES).start();
    create(&server, &[spec("a", &Right::ALL)]);
    let mut redis = Redis::connect(Doors::of(&server).resp).unwrap();
    let started = now();
    for guess in 0..8 {
        let error = redis.error(&format!("AUTH a sg_{guess}"));
        assert!(error.starts_with("WRONGPASS "), "{error}");
    }
    // Five are free, the next ones wait for 250, 500 and 1000 ms.
    assert!(now() - started >= Duration::from_millis(1750));
    assert!(redis.try_reply().is_err(), "closed");
}
