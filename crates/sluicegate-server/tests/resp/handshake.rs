//! Commands that clients send when they connect, and that tools send to inspect a server.

use crate::resp::support::{Redis, Reply, connect, frame, serve, words};

fn ok() -> Reply {
    Reply::Status("OK".to_owned())
}

#[test]
fn hello_chooses_the_version() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let greeting = redis.ask("HELLO 3 SETNAME me");
    assert_eq!(greeting.get("server").text(), "redis");
    assert_eq!(*greeting.get("proto"), Reply::Integer(3));
    assert_eq!(greeting.get("mode").text(), "standalone");
    assert_eq!(greeting.get("role").text(), "master");
    assert_eq!(*greeting.get("modules"), Reply::Array(vec![]));
    assert_eq!(redis.ask("client getname").text(), "me");
    assert_eq!(redis.ask("HELLO"), greeting);
    let Reply::Array(flat) = redis.ask("hello 2") else { panic!("no array") };
    assert_eq!(flat.len(), 14);
    assert_eq!(redis.error("HELLO 4"), "NOPROTO unsupported protocol version");
    assert!(redis.error("HELLO three").starts_with("ERR Protocol version"));
    assert!(redis.error("HELLO 3 SETNAME").starts_with("ERR Syntax error in HELLO option"));
    // Rejected commands changed nothing.
    assert_eq!(redis.ask("CLIENT GETNAME"), Reply::Bulk(b"me".to_vec()));
    assert!(matches!(redis.ask("HELLO"), Reply::Array(_)));
}

#[test]
fn a_connection_can_be_asked_about_itself() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    assert_eq!(redis.ask("PING"), Reply::Status("PONG".to_owned()));
    assert_eq!(redis.ask("ping hello"), Reply::Bulk(b"hello".to_vec()));
    assert_eq!(redis.ask("ECHO hello").text(), "hello");
    assert_eq!(redis.ask("SELECT 0"), ok());
    assert!(redis.error("SELECT 1").starts_with("ERR DB index is out of range"));
    assert_eq!(redis.ask("CLIENT GETNAME"), Reply::Null);
    assert_eq!(redis.ask("CLIENT SETNAME pool-1"), ok());
    assert!(redis.ask("CLIENT INFO").text().contains(" name=pool-1 "));
    assert!(matches!(
        redis.ask_all(&["CLIENT", "SETNAME", "two words"]),
        Reply::Error(text) if text.starts_with("ERR Client names cannot contain spaces")
    ));
    assert_eq!(redis.ask("CLIENT SETINFO LIB-NAME redis-py"), ok());
    assert_eq!(redis.ask("CLIENT SETINFO lib-ver 8.1.0"), ok());
    assert_eq!(redis.ask("CLIENT NO-EVICT on"), ok());
    assert_eq!(redis.ask("CLIENT NO-TOUCH off"), ok());
    assert_eq!(redis.ask("CLIENT REPLY ON"), ok());
    for line in
        ["CLIENT REPLY OFF", "CLIENT TRACKING ON", "CLIENT MAINT_NOTIFICATIONS ON", "CLIENT"]
    {
        assert!(redis.error(line).starts_with("ERR "), "{line}");
    }
    let mut other = connect(&server);
    assert_ne!(redis.ask("CLIENT ID"), other.ask("CLIENT ID"));
    redis.ask("HELLO 3");
    assert_eq!(redis.ask("RESET"), Reply::Status("RESET".to_owned()));
    assert_eq!(redis.ask("CLIENT GETNAME"), Reply::Null);
    assert!(matches!(redis.ask("HELLO"), Reply::Array(_)));
    assert_eq!(redis.ask("QUIT"), ok());
    assert!(redis.is_closed());
}

#[test]
fn tools_can_inspect_the_server() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let info = redis.ask("INFO").text();
    assert!(info.starts_with("# Server\r\nredis_version:7."), "{info}");
    assert!(
        info.contains("server_name:sluicegate\r\n") && info.contains("loading:0\r\n"),
        "{info}"
    );
    assert_eq!(
        redis.ask("INFO replication").text(),
        "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
    );
    let Reply::Integer(count) = redis.ask("COMMAND COUNT") else { panic!("no number") };
    let members = |redis: &mut Redis, line: &str| match redis.ask(line) {
        Reply::Array(members) => members,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(members(&mut redis, "COMMAND").len() as i64, count);
    assert_eq!(members(&mut redis, "COMMAND LIST").len() as i64, count);
    assert_eq!(members(&mut redis, "COMMAND DOCS").len() as i64, 2 * count);
    let described = members(&mut redis, "COMMAND INFO cl.throttle get");
    let Reply::Array(throttle) = &described[0] else { panic!("{described:?}") };
    assert_eq!(throttle.len(), 10);
    assert_eq!(throttle[1], Reply::Integer(-5));
    assert_eq!(throttle[3], Reply::Integer(1), "the position of its key");
    assert_eq!(described[1], Reply::Null);
    let save = members(&mut redis, "CONFIG GET save");
    assert_eq!(save, [Reply::Bulk(b"save".to_vec()), Reply::Bulk(vec![])]);
    assert_eq!(members(&mut redis, "CONFIG GET nothing").len(), 0);
    assert!(redis.error("CONFIG SET save x").starts_with("ERR "));
    redis.ask("HELLO 3");
    assert!(
        matches!(redis.ask("CONFIG GET save appendonly"), Reply::Map(pairs) if pairs.len() == 2)
    );
    assert!(matches!(redis.ask("COMMAND DOCS ping"), Reply::Map(pairs) if pairs.len() == 1));
    assert!(redis.ask("INFO server").text().starts_with("txt:# Server"));
}

#[test]
fn other_commands_are_refused_and_end_nothing() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    assert_eq!(
        redis.error("GET key"),
        "ERR unknown command 'GET': this is Sluicegate, a rate limiter; its commands are CL.THROTTLE, SG.CHECK, \
         SG.TAKE and SG.REFUND"
    );
    assert!(redis.error("MULTI").contains("pipeline without"));
    assert!(redis.error("THROTTLE k 1 1 1").contains("use CL.THROTTLE"));
    // The error of an unknown command is one line, whatever its name.
    let odd = redis.ask_all(&[b"a\r\n+OK\r\n\xff"]);
    assert!(matches!(odd, Reply::Error(text) if text.contains(r"a\r\n+OK\r\n\xff")));
    assert_eq!(redis.ask("PING"), Reply::Status("PONG".to_owned()));
}

/// Handshakes of go-redis, Lettuce and StackExchange.Redis, from their sources: the clients themselves are not
/// available where the tests run.
#[test]
fn clients_that_are_not_run_can_connect() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    assert_eq!(*redis.ask("HELLO 3").get("proto"), Reply::Integer(3));
    assert_eq!(redis.ask("CLIENT SETINFO LIB-NAME go-redis(,go1.24)"), ok());
    assert_eq!(redis.ask("CLIENT SETINFO LIB-VER 9.0.0"), ok());
    // They accept an error here.
    redis.error("CLIENT MAINT_NOTIFICATIONS on moving-endpoint-type none");
    assert_eq!(redis.numbers("CL.THROTTLE a 1000 1 1")[0], 0);

    // In one pipeline: a client name as long as a host name, and arbitrary bytes that must be echoed.
    let mut redis = connect(&server);
    let name = format!("CLIENT SETNAME {}(SE.Redis-v2.0.0.0)", "h".repeat(253));
    let lines = [
        name.as_str(),
        "CLIENT SETINFO lib-name SE.Redis",
        "CLIENT SETINFO lib-ver 2.0.0.0",
        "CLIENT ID",
        "CONFIG GET timeout",
        "CONFIG GET databases",
        "INFO replication",
        "INFO server",
    ];
    for line in lines {
        redis.send(&words(line));
    }
    let tracer: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
    redis.send(&frame(&[&b"ECHO"[..], &tracer]));
    for line in lines {
        assert!(!matches!(redis.reply(), Reply::Error(_)), "{line}");
    }
    assert_eq!(redis.reply(), Reply::Bulk(tracer));
    assert_eq!(redis.numbers("CL.THROTTLE a 1000 1 1")[0], 0);
}
