//! Every operation by every kind of client over every door.

use sluicegate_server::data::{CallerSpec, Right, Role};
use sluicegate_tests::tls::{Certificates, ServerCertificate};

use super::doors::{COLUMNS, Credentials, Doors};
use super::support::{RULES, admin_token, create, expired, launch, revoke, spec, wait_for};
use crate::common::{Client, Launch};

const ADMIN_TOKEN: &str = "correct-horse-battery-staple";
const PASSWORD: &str = "a-password-of-the-redis-protocol";

/// Compares rows with the expected ones; spaces do not matter.
fn assert_table(expected: &str, rows: &[(&str, String)]) {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = line(&format!("client {COLUMNS}"));
    let rows = rows.iter().map(|(name, row)| line(&format!("{name} {row}")));
    let found: Vec<_> = std::iter::once(head).chain(rows).collect();
    let expected: Vec<_> = expected.lines().map(line).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected, "found:\n{}", found.join("\n"));
}

/// A client with a token over HTTP and gRPC, and as the password of this user over the Redis protocol.
fn with<'a>(user: &'a str, token: &'a str) -> Credentials<'a> {
    Credentials { token: Some(token), user: Some((user, token)) }
}

#[test]
fn while_callers_exist() {
    let server = launch(RULES)
        .env("SLUICEGATE_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("SLUICEGATE_RESP_PASSWORD", PASSWORD)
        .start();
    let reader = admin_token(&server, "reader", Role::Read);
    let mut specs: Vec<_> = Right::ALL.map(|right| spec(right.name(), &[right])).into();
    specs.extend([spec("all", &Right::ALL), expired("old"), spec("gone", &Right::ALL)]);
    let tokens = create(&server, &specs);
    let [check, take, refund, authorize, all, old, gone] = &tokens[..] else { unreachable!() };
    revoke(&server, "gone");
    wait_for(&server, 5);
    let doors = Doors::of(&server);
    let rows = [
        ("anonymous", doors.row(Credentials::default())),
        ("may-check", doors.row(with("check", check))),
        ("may-take", doors.row(with("take", take))),
        ("may-refund", doors.row(with("refund", refund))),
        ("may-authorize", doors.row(with("authorize", authorize))),
        ("may-all", doors.row(with("all", all))),
        ("expired", doors.row(with("old", old))),
        ("revoked", doors.row(with("gone", gone))),
        ("unknown", doors.row(with("check", "sg_unknown"))),
        ("read-token", doors.row(with("reader", &reader))),
        ("admin-token", doors.row(with("admin", ADMIN_TOKEN))),
        // A token of another caller: only the Redis protocol has names.
        ("forged", doors.row(Credentials { token: None, user: Some(("take", check)) })),
        ("password", doors.row(with("default", PASSWORD))),
    ];
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        anonymous     | 401   401   401  401    401       401  401   401    | 401  401   401    | -         NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        may-check     | ok    ok    403  403    403       ok   403   403    | ok   403   403    | ok        ok     NOPERM NOPERM   NOPERM ok
        may-take      | 403   403   ok   403    403       403  403   403    | 403  403   403    | ok        NOPERM ok     ok       NOPERM ok
        may-refund    | 403   403   403  ok     403       403  403   403    | 403  403   403    | ok        NOPERM NOPERM NOPERM   ok     ok
        may-authorize | 403   403   403  403    ok        403  403   403    | 403  403   403    | ok        NOPERM NOPERM NOPERM   NOPERM ok
        may-all       | ok    ok    ok   ok     ok        ok   ok    ok     | ok   ok    ok     | ok        ok     ok     ok       ok     ok
        expired       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        revoked       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        unknown       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        read-token    | 403   403   403  403    401       403  403   403    | 403  403   403    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        admin-token   | ok    ok    ok   ok     401       ok   ok    ok     | ok   ok    ok     | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        forged        | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        password      | 401   401   401  401    401       401  401   401    | 401  401   401    | ok        ok     ok     ok       NOAUTH ok
        ",
        &rows,
    );
}

#[test]
fn while_no_caller_exists() {
    let server = launch(RULES).env("SLUICEGATE_ADMIN_TOKEN", ADMIN_TOKEN).start();
    let doors = Doors::of(&server);
    let rows = [
        ("anonymous", doors.row(Credentials::default())),
        // Ignored where none is needed; the Redis protocol knows the user or not.
        ("unknown", doors.row(with("check", "sg_unknown"))),
        ("default", doors.row(with("default", "anything"))),
    ];
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        anonymous     | ok    ok    ok   401    ok        ok   ok    400    | ok   ok    400    | -         ok     ok     ok       NOAUTH ok
        unknown       | ok    ok    ok   401    ok        ok   ok    400    | ok   ok    400    | WRONGPASS ok     ok     ok       NOAUTH ok
        default       | ok    ok    ok   401    ok        ok   ok    400    | ok   ok    400    | ok        ok     ok     ok       NOAUTH ok
        ",
        &rows,
    );
    // The last one has expired: it exists, and the doors stay closed until it is revoked.
    create(&server, &[spec("check", &[Right::Check])]);
    let token = &create(&server, &[expired("old")])[0];
    revoke(&server, "check");
    wait_for(&server, 0);
    let rows = [
        ("anonymous", doors.row(Credentials::default())),
        ("expired", doors.row(with("old", token))),
        ("default", doors.row(with("default", "anything"))),
    ];
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        anonymous     | 401   401   401  401    401       401  401   401    | 401  401   401    | -         NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        expired       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        default       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        ",
        &rows,
    );
}

#[test]
fn with_listen_anonymous() {
    let server =
        launch(RULES).args(&["--listen-anonymous", "true", "--grpc-refunds", "on"]).start();
    let tokens = create(&server, &[spec("check", &[Right::Check])]);
    let doors = Doors::of(&server);
    let rows = [
        // The administration of this machine is open: no token exists.
        ("anonymous", doors.row(Credentials::default())),
        ("may-check", doors.row(with("check", &tokens[0]))),
        ("unknown", doors.row(with("check", "sg_unknown"))),
    ];
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        anonymous     | ok    ok    ok   401    ok        ok   ok    ok     | ok   ok    ok     | -         ok     ok     ok       NOAUTH ok
        may-check     | ok    ok    403  403    403       ok   403   403    | ok   403   403    | ok        ok     NOPERM NOPERM   NOPERM ok
        unknown       | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS ok     ok     ok       NOAUTH ok
        ",
        &rows,
    );
}

/// Service whose clients need a certificate.
fn secured(certificates: &Certificates) -> Launch {
    let pair = certificates.server(ServerCertificate::Good);
    launch(RULES)
        .env("SLUICEGATE_LISTEN_TLS_CERTIFICATE", pair.certificate.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_KEY", pair.key.to_str().unwrap())
        .env("SLUICEGATE_LISTEN_TLS_CLIENT_CA", certificates.authority().to_str().unwrap())
}

#[test]
fn with_client_certificates() {
    let certificates = Certificates::new();
    // Without callers, a certificate of the authority suffices.
    let server = secured(&certificates).start();
    let stranger = certificates.issue("stranger", &["stranger.example"]);
    let doors = Doors::through(&server, &certificates, &stranger);
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        unmapped      | ok    ok    ok   401    ok        ok   ok    400    | ok   ok    400    | -         ok     ok     ok       NOAUTH ok
        ",
        &[("unmapped", doors.row(Credentials::default()))],
    );
    drop(server);

    let open = launch(RULES).start();
    let named = |name: &str, right, certificate: &str| CallerSpec {
        certificate: Some(certificate.into()),
        ..spec(name, &[right])
    };
    let uri = "spiffe://example/take";
    let callers = [
        named("check", Right::Check, "Check.Example"),
        named("take", Right::Take, uri),
        CallerSpec { certificate: Some("old.example".into()), ..expired("old") },
    ];
    let tokens = create(&open, &callers);
    let database = format!("sqlite:{}", open.folder().join("sluicegate.db").display());
    let server = secured(&certificates).env("SLUICEGATE_DATABASE_URL", &database).start();
    let row = |file: &str, names: &[&str], credentials| {
        let identity = certificates.issue(file, names);
        Doors::through(&server, &certificates, &identity).row(credentials)
    };
    let none = Credentials::default();
    let rows = [
        ("mapped", row("one", &["other.example", "check.example"], none)),
        ("mapped-uri", row("two", &[uri], none)),
        ("with-token", row("three", &["check.example"], with("take", &tokens[1]))),
        ("with-wrong", row("four", &["check.example"], with("take", "sg_unknown"))),
        ("unmapped", row("five", &["stranger.example"], none)),
        ("expired", row("six", &["old.example"], none)),
    ];
    assert_table(
        "
        client        | check batch take refund authorize json limit refund | call limit refund | AUTH      check  take   throttle refund ping
        mapped        | ok    ok    403  403    403       ok   403   403    | ok   403   403    | -         ok     NOPERM NOPERM   NOPERM ok
        mapped-uri    | 403   403   ok   403    403       403  403   403    | 403  403   403    | -         NOPERM ok     ok       NOPERM ok
        with-token    | 403   403   ok   403    403       403  403   403    | 403  403   403    | ok        NOPERM ok     ok       NOPERM ok
        with-wrong    | 401   401   401  401    401       401  401   401    | 401  401   401    | WRONGPASS ok     NOPERM NOPERM   NOPERM ok
        unmapped      | 401   401   401  401    401       401  401   401    | 401  401   401    | -         NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        expired       | 401   401   401  401    401       401  401   401    | 401  401   401    | -         NOAUTH NOAUTH NOAUTH   NOAUTH NOAUTH
        ",
        &rows,
    );
    // A certificate of another authority opens no connection, whatever name it has.
    let foreign = Doors::through(&server, &certificates, &certificates.other_client());
    let mut client = Client::connect(foreign.http).unwrap();
    assert!(client.request("GET", "/livez", &[], b"").is_err());
}
