//! Attempts to be a caller, or to stay one.

use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::common::{Client, Launch, Server, eventually, now, with_rules};
use crate::grpc::rls::{RateLimitRequest, Rls, call, descriptor};
use crate::http2::{
    Attacker, DATA, END_HEADERS, END_STREAM, HEADERS, fields_with_authorization, frame,
};
use crate::sockets::{ATTACKER, EndOfAttack, NEWCOMER, ask, connect, metric};

/// Path of calls over gRPC.
const GRPC: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Service with all listeners, which does not lock out a client that sends many wrong tokens.
fn patient() -> Server {
    let arguments = ["--admin-failures-per-minute", "1000000"];
    Launch::serve(&arguments).with_grpc().with_resp().start()
}

/// Creates a caller, which is in force before the answer, and returns its token.
pub(crate) fn create(server: &Server, caller: &Value) -> String {
    let made = server.post_json("/v1/callers", &caller.to_string());
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Creates a caller that may check and take.
fn create_named(server: &Server, name: &str) -> String {
    create(server, &json!({"name": name, "rights": ["check", "take"]}))
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Status of a check with this token.
fn check(client: &mut Client, token: &str) -> u16 {
    let field = ("authorization", &*bearer(token));
    client.request("POST", "/v1/check", &[field], b"{}").unwrap().status
}

/// A call over gRPC with this token.
pub(crate) fn call_as(token: &str, message: RateLimitRequest) -> Request<RateLimitRequest> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", bearer(token).parse().unwrap());
    request
}

fn any_call() -> RateLimitRequest {
    call(&[descriptor(&[("user_id", "42")])])
}

/// Status of a call over gRPC with these fields, as a header: `None` if the call succeeded. By HTTP/1, which lets a test
/// choose every byte and its address.
fn grpc_status(from: IpAddr, server: &Server, fields: &[(&str, &str)]) -> Option<String> {
    let message = any_call().encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let mut client = Client::connect_from(from, server.address_of("grpc")).unwrap();
    let mut head = format!("POST {GRPC} HTTP/1.1\r\nhost: localhost\r\n");
    head += "content-type: application/grpc\r\n";
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", message.len() + 5);
    client.send(&[head.as_bytes(), &[0], &length, &message].concat()).unwrap();
    let answer = client.read_head().unwrap();
    answer.header("grpc-status").map(str::to_owned)
}

/// Sends `AUTH` with these words, and returns the reply; empty if the connection was closed.
fn auth(stream: &mut TcpStream, words: &[&[u8]]) -> String {
    let mut command = format!("*{}\r\n$4\r\nAUTH\r\n", words.len() + 1).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).as_bytes());
        command.extend([word, &b"\r\n"[..]].concat());
    }
    ask(stream, &command, "\r\n").unwrap_or_default()
}

/// A connection of the Redis protocol that has authenticated as a caller.
pub(crate) fn signed_in(server: &Server, from: IpAddr, name: &str, token: &str) -> TcpStream {
    let mut stream = connect(from, server.address_of("resp")).unwrap();
    let reply = auth(&mut stream, &[name.as_bytes(), token.as_bytes()]);
    assert_eq!(reply, "+OK\r\n");
    stream
}

const TAKE: &[u8] = b"SG.TAKE k 1000 1 1000\r\n";

/// The first line of the reply to a take.
fn take(stream: &mut TcpStream) -> String {
    ask(stream, TAKE, "\r\n").unwrap()
}

fn refusals(server: &Server, door: &str, reason: &str) -> usize {
    let name = "sluicegate_caller_refusals_total";
    metric(server, &format!("{name}{{door=\"{door}\",reason=\"{reason}\"}}"))
}

/// A token that no caller has.
fn made_up(number: &AtomicUsize) -> String {
    format!("sg_{:043}", number.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a17_a_flood_of_wrong_tokens_is_bounded_on_every_door() {
    /// `admin.failures_per_minute` by default.
    const FREE: usize = 10;
    const FLOOD: usize = 1_000;
    let server = Launch::serve(&[]).with_grpc().with_resp().start();
    let token = create_named(&server, "good");
    let resp = server.address_of("resp");
    let mut kept = signed_in(&server, ATTACKER, "good", &token);
    let (is_over, guess, before) =
        (AtomicBool::new(false), AtomicUsize::new(0), server.stderr().lines().count());
    let (started, goes_on) = (now(), || !is_over.load(Ordering::Relaxed));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::connect_from(ATTACKER, server.address).unwrap();
                while goes_on() {
                    let status = check(&mut client, &made_up(&guess));
                    assert!([401, 429].contains(&status), "{status}");
                }
            });
            scope.spawn(|| {
                while goes_on() {
                    let bearer = bearer(&made_up(&guess));
                    let status = grpc_status(ATTACKER, &server, &[("authorization", &bearer)]);
                    assert!(["16", "8"].contains(&&*status.unwrap()));
                }
            });
        }
        for _ in 0..20 {
            scope.spawn(|| {
                while goes_on() {
                    let Ok(mut stream) = connect(ATTACKER, resp) else { continue };
                    auth(&mut stream, &[b"good", made_up(&guess).as_bytes()]);
                }
            });
        }
        let _end = EndOfAttack(&is_over);
        eventually("the flood", || {
            let of = |door| refusals(&server, door, "too_many");
            (of("http") > FLOOD && of("grpc") > FLOOD / 10).then_some(())
        });
        // The caller is answered, from another address and from the attacker's own.
        for from in [NEWCOMER, ATTACKER] {
            let asked = now();
            let mut client = Client::connect_from(from, server.address).unwrap();
            assert_eq!(check(&mut client, &token), 200, "{from}");
            let fields = [("authorization", &*bearer(&token))];
            assert_eq!(grpc_status(from, &server, &fields), None, "{from}");
            eprintln!("  the caller is answered at {from} after {:?}", now() - asked);
        }
        let mut new = signed_in(&server, NEWCOMER, "good", &token);
        for stream in [&mut new, &mut kept] {
            assert!(take(stream).starts_with('*'));
        }
    });
    let minutes = (now() - started).as_secs() as usize / 60;
    let wrong = refusals(&server, "http", "wrong") + refusals(&server, "grpc", "wrong");
    let delayed = refusals(&server, "resp", "wrong");
    let lines = server.stderr().lines().count() - before;
    eprintln!(
        "  {} tokens: {wrong} counted over HTTP and gRPC, {delayed} checked over RESP, {lines} lines",
        guess.into_inner()
    );
    // The bucket of an address holds ten, and refills while the flood lasts; threads may race for the last.
    assert!(wrong <= FREE * (minutes + 2), "{wrong}");
    // Five at once, then at most 16 in each of the growing delays.
    assert!(delayed <= 16 * (8 + 15 * minutes), "{delayed}");
    assert!(lines <= 20, "{}", server.stderr());
    // Added up by door, address and minute in the history.
    let failed = server.get("/v1/history?act=sign_in.failed&limit=1000").json();
    let rows = failed["history"].as_array().unwrap().len();
    assert!(rows <= 3 * (minutes + 2), "{failed}");
    // The address may authenticate again when its delay is over.
    drop(signed_in(&server, ATTACKER, "good", &token));
}

/// A refused body is read and discarded, not kept.
#[test]
fn a11_a_body_without_a_caller_is_not_kept() {
    let server = patient();
    create_named(&server, "good");
    for path in ["/v1/check", "/v1/check/batch", "/v1/take", "/json", "/v1/authorize"] {
        let mut waiting = connect(ATTACKER, server.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 200000\r\n");
        let expecting = format!("{head}expect: 100-continue\r\n\r\n");
        let answer = ask(&mut waiting, expecting.as_bytes(), "\r\n\r\n").unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");

        let mut stream = connect(ATTACKER, server.address).unwrap();
        let begun = format!("{head}authorization: Bearer wrong\r\n\r\n[{}", " ".repeat(100_000));
        let _ = std::io::Write::write_all(&mut stream, begun.as_bytes());
        assert_eq!(metric(&server, "sluicegate_body_bytes"), 0, "{path}");
    }
    let mut stream = connect(ATTACKER, server.address_of("resp")).unwrap();
    // At most 8 KiB of a command are kept.
    let begun = [b"*3\r\n$7\r\nSG.TAKE\r\n$60000\r\n", &[b'x'; 20_000][..]].concat();
    let answer = ask(&mut stream, &begun, "\r\n").unwrap();
    assert!(answer.starts_with("-ERR Protocol error: "), "{answer}");
}

/// Returns whether a check over HTTP/2 with this token is answered with 200.
fn check_http2(client: &mut Attacker, stream: u32, token: &str) -> bool {
    let fields = fields_with_authorization(0x83, "/v1/check", Some(&bearer(token)));
    client.send(&frame(HEADERS, END_HEADERS, stream, &fields)).unwrap();
    client.send(&frame(DATA, END_STREAM, stream, b"{}")).unwrap();
    let is_answer = |(kind, _, of, _): &_| (*kind, *of) == (HEADERS, stream);
    let answer = std::iter::from_fn(|| client.next()).find(is_answer).unwrap();
    // `:status: 200` by its index.
    answer.3[0] == 0x88
}

/// Revokes a caller as an operator does: in the database, by another process.
fn revoke(server: &Server, name: &str) {
    let database = format!("sqlite:{}", server.folder().join("sluicegate.db").display());
    let revoked = Launch::new(&["callers", "revoke", name, "--yes"])
        .env("SLUICEGATE_DATABASE_URL", &database)
        .run();
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
}

#[test]
fn a18_a_revoked_token_is_refused_on_open_connections() {
    let server = patient();
    create_named(&server, "other");
    let token = create_named(&server, "gone");
    let mut http1 = server.connect();
    let (mut http2, mut streams) = (Attacker::connect_to(server.address, &[]), (1..).step_by(2));
    let grpc = Rls::of(&server);
    let mut resp = signed_in(&server, ATTACKER, "gone", &token);
    let mut by_http2 = |token: &str| check_http2(&mut http2, streams.next().unwrap(), token);
    for _ in 0..2 {
        assert_eq!(check(&mut http1, &token), 200);
        assert!(by_http2(&token));
        assert!(grpc.call(call_as(&token, any_call())).is_ok());
        assert!(take(&mut resp).starts_with('*'));
        // Each reply is longer than its first line.
        resp = signed_in(&server, ATTACKER, "gone", &token);
    }

    revoke(&server, "gone");
    let revoked = now();
    eventually("HTTP/1.1", || (check(&mut http1, &token) == 401).then_some(()));
    eprintln!("  refused {:?} after the revocation", now() - revoked);
    assert!(!by_http2(&token));
    let refused = grpc.call(call_as(&token, any_call())).unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(take(&mut resp).starts_with("-NOAUTH"));

    // Replayed over new connections, and after the name is given to another caller.
    let renewed = create_named(&server, "gone");
    assert!(take(&mut resp).starts_with("-NOAUTH"), "the old session is not the new caller");
    assert_eq!(check(&mut server.connect(), &token), 401);
    let mut new = connect(NEWCOMER, server.address_of("resp")).unwrap();
    assert!(auth(&mut new, &[b"gone", token.as_bytes()]).starts_with("-WRONGPASS"));
    assert_eq!(check(&mut http1, &renewed), 200);
    assert_eq!(check(&mut http1, &token), 401);
}

#[test]
fn a18_an_expired_token_is_refused_on_open_connections() {
    let server = patient();
    create_named(&server, "other");
    let caller = json!({"name": "short", "rights": ["check", "take"], "expires_in": 2});
    let token = create(&server, &caller);
    let mut http = server.connect();
    let mut resp = signed_in(&server, ATTACKER, "short", &token);
    eventually("the end of the token", || (check(&mut http, &token) == 401).then_some(()));
    assert!(take(&mut resp).starts_with("-NOAUTH"));
    assert!(auth(&mut resp, &[b"short", token.as_bytes()]).starts_with("-WRONGPASS"));
}

/// Values of `Authorization` that contain a part of a valid token, or nothing valid.
fn forged(token: &str, other: &str) -> Vec<String> {
    let secret = &token["sg_".len()..];
    vec![
        bearer(&token[..token.len() - 1]),
        bearer(&token[1..]),
        bearer(secret),
        bearer(&format!("{token}x")),
        bearer(&format!("{token}{}", "x".repeat(10_000))),
        bearer(&format!("{token} {other}")),
        bearer(&format!("{token},{other}")),
        bearer(&format!("{token}, Bearer {other}")),
        bearer(&format!("shop:{token}")),
        bearer(&format!("\"{token}\"")),
        bearer(&token.replacen("sg_", "SG_", 1)),
        bearer(&token.replace('_', "%5F")),
        bearer("sg_"),
        bearer(""),
        "Bearer".into(),
        token.into(),
        format!("Basic {token}"),
        format!("Bearer{token}"),
    ]
}

#[test]
fn a19_no_forged_token_is_a_caller_over_http_and_grpc() {
    let server = patient();
    let (token, other) = (create_named(&server, "shop"), create_named(&server, "other"));
    let forged = forged(&token, &other);
    let mut kept = server.connect();
    for value in &forged {
        // The connection has verified the right token before.
        assert_eq!(check(&mut kept, &token), 200);
        let answer = kept.request("POST", "/v1/check", &[("authorization", value)], b"{}").unwrap();
        assert_eq!(answer.status, 401, "{value}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{value}");
        assert!(!answer.body.contains(&token[..20]), "{answer:?}");
        let status = grpc_status(ATTACKER, &server, &[("authorization", value)]);
        assert_eq!(status.as_deref(), Some("16"), "{value}");
    }
    eprintln!("{} forged tokens over HTTP and gRPC: none accepted", forged.len());

    let (right, wrong) = (bearer(&token), bearer("wrong"));
    for two in [[&right, &wrong], [&wrong, &right], [&right, &right]] {
        let fields = two.map(|value| ("authorization", value.as_str()));
        assert_eq!(kept.request("POST", "/v1/check", &fields, b"{}").unwrap().status, 401);
        assert_eq!(grpc_status(ATTACKER, &server, &fields).as_deref(), Some("16"));
    }
    // Without any, the connection's last caller does not count; nor do a trailer, a query and a cookie.
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n";
    let in_query = head.replace("/v1/check", &format!("/v1/check?authorization=Bearer%20{token}"));
    let requests = [
        format!("{head}content-length: 2\r\n\r\n{{}}"),
        format!("{in_query}content-length: 2\r\n\r\n{{}}"),
        format!("{head}cookie: authorization={right}\r\ncontent-length: 2\r\n\r\n{{}}"),
        format!("{head}proxy-authorization: {right}\r\ncontent-length: 2\r\n\r\n{{}}"),
        format!("{head}x-sluicegate-token: {token}\r\ncontent-length: 2\r\n\r\n{{}}"),
        format!(
            "{head}trailer: authorization\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\
             authorization: {right}\r\n\r\n"
        ),
    ];
    for request in requests {
        assert_eq!(check(&mut kept, &token), 200);
        kept.send(request.as_bytes()).unwrap();
        assert_eq!(kept.read_response().unwrap().status, 401, "{request}");
    }
    // A NUL is not a part of any field.
    kept.send(format!("{head}authorization: {right}\0\r\ncontent-length: 0\r\n\r\n").as_bytes())
        .unwrap();
    assert!(kept.read_to_end().starts_with("HTTP/1.1 400 "));
}

#[test]
fn a19_no_forged_token_is_a_caller_over_the_redis_protocol() {
    let server = patient();
    let (token, other) = (create_named(&server, "shop"), create_named(&server, "other"));
    let (token, other) = (token.as_bytes(), other.as_bytes());
    let long = [token, &[b'x'; 10_000]].concat();
    let attempts: [&[&[u8]]; 14] = [
        &[b"shop", other],
        &[b"other", token],
        &[b"SHOP", token],
        &[b"shop ", token],
        &[b"shop\0", token],
        &[b"default", token],
        &[b"", token],
        &[token, token],
        &[token],
        &[b"shop", &token[..token.len() - 1]],
        &[b"shop", &[token, b"\0"].concat()],
        &[b"shop", &[b"Bearer ", token].concat()],
        &[b"shop", b""],
        &[b"shop", &long],
    ];
    for (number, words) in (1..).zip(attempts) {
        // Each from an address of its own, so that no attempt waits for the others.
        let from = IpAddr::from([127, 0, 3, number]);
        let mut stream = connect(from, server.address_of("resp")).unwrap();
        let reply = auth(&mut stream, words);
        let is_refused =
            reply.is_empty() || reply.starts_with("-WRONGPASS") || reply.starts_with("-ERR");
        assert!(is_refused, "{number}: {reply}");
        if words.len() > 1 && words[1].len() < 1_000 {
            assert!(take(&mut stream).starts_with("-NOAUTH"), "{number}");
        }
    }
    let text = |token| std::str::from_utf8(token).unwrap();
    let mut stream = connect(ATTACKER, server.address_of("resp")).unwrap();
    let hello = format!("HELLO 3 AUTH shop {}\r\n", text(other));
    assert!(ask(&mut stream, hello.as_bytes(), "\r\n").unwrap().starts_with("-WRONGPASS"));
    // A session that ends takes its caller with it, and a wrong attempt gives none.
    let mut stream = signed_in(&server, NEWCOMER, "shop", text(token));
    assert_eq!(ask(&mut stream, b"RESET\r\n", "\r\n").unwrap(), "+RESET\r\n");
    assert!(take(&mut stream).starts_with("-NOAUTH"));
}

/// A client behind a proxy sends the field by which the proxy proves itself.
#[test]
fn a19_the_token_of_a_proxy_cannot_be_smuggled() {
    let server =
        with_rules("rule = []\n").args(&["--admin-failures-per-minute", "1000000"]).start();
    let proxy = create(&server, &json!({"name": "proxy", "rights": ["authorize"]}));
    let client = create_named(&server, "client");
    let mut kept = server.connect();
    let mut status = |fields: &[(&str, &str)]| {
        // Written here, so that nothing is added to the fields.
        let fields = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let fields: String = fields.collect();
        let head = format!("GET /v1/authorize HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
        kept.send(head.as_bytes()).unwrap();
        let answer = kept.read_response().unwrap();
        let echoed = answer.headers.iter().any(|(_, value)| value.contains(&proxy));
        assert!(!echoed && !answer.body.contains(&proxy), "{answer:?}");
        answer.status
    };
    let right = ("x-sluicegate-token", &*proxy);
    // `Authorization` is the client's own, whatever it contains.
    let (own, stolen) = (bearer("the client's own"), bearer(&proxy));
    for authorization in [&own, &stolen] {
        assert_eq!(status(&[right, ("authorization", authorization)]), 200);
        assert_eq!(status(&[("authorization", authorization)]), 401);
    }
    let spoilt = format!("{proxy},{proxy}");
    let sent: [&[(&str, &str)]; 9] = [
        // A proxy that adds its field to that of the client: refused, not believed.
        &[("x-sluicegate-token", "of the client"), right],
        &[right, ("X-Sluicegate-Token", "of the client")],
        &[right, right],
        &[("x-sluicegate-token", &spoilt)],
        &[("x_sluicegate_token", &proxy)],
        &[("x-sluicegate-token-", &proxy)],
        &[("x-forwarded-sluicegate-token", &proxy)],
        &[("x-sluicegate-token", &stolen)],
        &[("x-sluicegate-token", "")],
    ];
    for fields in sent {
        assert_eq!(status(fields), 401, "{fields:?}");
    }
    // A caller that may check does not authorize.
    assert_eq!(status(&[("x-sluicegate-token", &client)]), 403);
    assert_eq!(status(&[right]), 200);
    let in_uri = format!("x-sluicegate-token={proxy}");
    let smuggled = format!(
        "GET /v1/authorize?{in_uri} HTTP/1.1\r\nhost: x\r\nx-forwarded-uri: /?{in_uri}\r\n\
         x-original-url: /\r\n\r\n"
    );
    kept.send(smuggled.as_bytes()).unwrap();
    assert_eq!(kept.read_response().unwrap().status, 401);
}
