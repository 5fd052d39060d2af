//! Real clients at their defaults: redis-cli, redis-benchmark, redis-rs.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use redis::{Connection, Value, cmd, pipe};
use sluicegate_tests::servers::Flavour;

use crate::common::{Launch, Server};
use crate::resp::support::serve;

/// Path of a program that comes with the Redis server.
fn program(name: &str) -> PathBuf {
    let program = Flavour::Redis70.program().with_file_name(name);
    assert!(program.exists(), "{} is missing: run `make servers`", program.display());
    program
}

/// Output of redis-cli for these arguments.
pub(crate) fn cli(server: &Server, arguments: &[&str], input: &str) -> String {
    let port = server.address_of("resp").port().to_string();
    let mut cli = Command::new(program("cli"))
        .args(["-p", &port])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    cli.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = cli.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn redis_cli() {
    let server = serve(&[]);
    assert_eq!(
        cli(&server, &["CL.THROTTLE", "user:42", "15", "30", "60"], ""),
        "0\n16\n15\n-1\n2\n"
    );
    let taken = cli(&server, &["-3", "SG.TAKE", "a", "5", "1", "1000"], "");
    assert!(taken.starts_with("allowed (true)\nlimit 5\nremaining 4\n"), "{taken}");
    // With input from a script it first sends COMMAND.
    assert_eq!(
        cli(&server, &[], "PING\nCOMMAND COUNT\nECHO \"two words\"\n"),
        "PONG\n15\ntwo words\n"
    );
    assert!(cli(&server, &["INFO"], "").contains("server_name:sluicegate"));
    assert!(cli(&server, &["-3", "COMMAND", "DOCS"], "").contains("cl.throttle"));
}

#[test]
fn redis_cli_with_a_password() {
    let server = Launch::serve(&[]).with_resp().env("SLUICEGATE_RESP_PASSWORD", "canary").start();
    let ping = cli(&server, &["--no-auth-warning", "-a", "canary", "-3", "PING"], "");
    assert_eq!(ping, "PONG\n");
}

#[test]
fn redis_benchmark() {
    let server = serve(&[]);
    let port = server.address_of("resp").port().to_string();
    let run = |arguments: &[&str]| {
        let mut benchmark = Command::new(program("benchmark"));
        benchmark.args(["-p", &port, "-q", "-c", "10"]).args(arguments);
        let output = benchmark.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.is_empty(), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    let line =
        ["-n", "5000", "-P", "50", "-r", "100", "CL.THROTTLE", "user:__rand_int__", "9", "1", "60"];
    let printed = run(&line);
    assert!(printed.contains("requests per second"), "{printed}");
    let printed = run(&["-n", "1000", "-t", "ping"]);
    assert!(printed.contains("PING_INLINE") && printed.contains("PING_MBULK"), "{printed}");
    let printed = run(&["-n", "1000", "-3", "PING"]);
    assert!(printed.contains("requests per second"), "{printed}");
}

fn redis_rs(server: &Server, options: &str) -> Connection {
    let url = format!("redis://{}/0{options}", server.address_of("resp"));
    redis::Client::open(url).unwrap().get_connection().unwrap()
}

#[test]
fn redis_rs_in_both_versions() {
    let server = serve(&[]);
    for (key, options) in [("two", ""), ("three", "?protocol=resp3")] {
        let mut connection = redis_rs(&server, options);
        let throttle = |quantity: u64| {
            let mut command = cmd("CL.THROTTLE");
            command.arg(key).arg(4).arg(1).arg(3600).arg(quantity);
            command
        };
        let granted: Vec<i64> = throttle(5).query(&mut connection).unwrap();
        assert_eq!(granted, [0, 5, 0, -1, 18_000]);
        let denied: Vec<i64> = throttle(1).query(&mut connection).unwrap();
        assert_eq!(denied[0], 1);
        let mut pipeline = pipe();
        for _ in 0..100 {
            pipeline.add_command(throttle(0));
        }
        let looks: Vec<Vec<i64>> = pipeline.query(&mut connection).unwrap();
        assert!(looks.len() == 100 && looks.iter().all(|look| look[0] == 0));
        let error = cmd("GET").arg("k").query::<Value>(&mut connection).unwrap_err();
        assert!(error.to_string().contains("this is Sluicegate"), "{error}");
    }
    let mut connection = redis_rs(&server, "?protocol=resp3");
    let mut check = cmd("SG.CHECK");
    let verdict: HashMap<String, Value> =
        check.arg("user_id").arg(42).arg("ip").arg("203.0.113.9").query(&mut connection).unwrap();
    assert_eq!(verdict["allowed"], Value::Boolean(true));
    assert_eq!(verdict["violated_rule"], Value::Nil);
}
