//! Form and limits of refusals.

use std::time::Duration;

use sluicegate_server::data::Right;

use super::doors::{Doors, post};
use super::support::{RULES, create, launch, spec};
use crate::common::{Client, PATIENCE, now};
use crate::envoy::rls::{Rls, call, descriptor};
use crate::resp::support::{Redis, Reply};

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

/// A caller could otherwise leave its namespace: the password in the settings may be short.
#[test]
fn a_caller_guesses_the_password_no_faster_than_others() {
    let password = "correct-horse-battery";
    let server = launch(RULES).env("SLUICEGATE_RESP_PASSWORD", password).start();
    let token = &create(&server, &[spec("a", &Right::ALL)])[0];
    let mut redis = Redis::connect(Doors::of(&server).resp).unwrap();
    let started = now();
    assert_eq!(redis.ask(&format!("AUTH a {token}")), Reply::Status("OK".into()));
    for guess in 0..7 {
        let error = redis.error(&format!("AUTH default guess{guess}"));
        assert!(error.starts_with("WRONGPASS "), "{error}");
    }
    // To authenticate as itself again is not delayed, and forgives nothing.
    assert_eq!(redis.ask(&format!("AUTH a {token}")), Reply::Status("OK".into()));
    assert!(redis.error("AUTH default guess").starts_with("WRONGPASS "));
    assert!(now() - started >= Duration::from_millis(1750), "guesses are delayed");
    assert!(redis.try_reply().is_err(), "closed after the eighth");
}

/// The clients of a proxy send what they want in `X-Sluicegate-Token`, from the address of the proxy.
#[test]
fn wrong_tokens_of_data_doors_lock_no_operator_out() {
    let operator = "correct-horse-battery-staple";
    let server = launch(RULES).env("SLUICEGATE_ADMIN_TOKEN", operator).start();
    let token = &create(&server, &[spec("proxy", &[Right::Authorize])])[0];
    let mut client = Client::connect(server.address).unwrap();
    let authorize = |client: &mut Client, token: &str| {
        let headers = [("x-sluicegate-token", token), ("x-original-uri", "/")];
        client.request("GET", "/v1/authorize", &headers, b"").unwrap().status
    };
    for guess in 0..30 {
        assert_eq!(authorize(&mut client, &format!("guess{guess}")), 401);
        assert!(post(&mut client, "/v1/check", Some(&format!("guess{guess}")), "{}").status > 400);
    }
    let bearer = format!("Bearer {operator}");
    let rules = client.request("GET", "/v1/rules", &[("authorization", &bearer)], b"").unwrap();
    assert_eq!(rules.status, 200, "{}", rules.body);
    assert_eq!(authorize(&mut client, token), 200);
    assert_eq!(authorize(&mut client, operator), 401, "only callers authorize");
    // Unset variables of a proxy are empty fields: no token, and no guess.
    assert_eq!(authorize(&mut client, ""), 401);
}

/// Clients may send their token with every request.
#[test]
fn the_token_of_a_caller_is_not_a_guess_for_the_administration() {
    let server =
        launch(RULES).env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple").start();
    let token = &create(&server, &[spec("a", &Right::ALL)])[0];
    let bearer = format!("Bearer {token}");
    let mut client = Client::connect(server.address).unwrap();
    for _ in 0..30 {
        let headers = [("authorization", &*bearer)];
        let refused = client.request("GET", "/v1/rules", &headers, b"").unwrap();
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("the token of a caller"), "{}", refused.body);
        assert_eq!(client.request("GET", "/readyz?verbose", &headers, b"").unwrap().status, 200);
    }
    let wrong =
        client.request("GET", "/v1/rules", &[("authorization", "Bearer sg_x")], b"").unwrap();
    assert_eq!(wrong.status, 401, "not locked out: {}", wrong.body);
}
