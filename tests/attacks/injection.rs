//! Text of clients that would act as syntax elsewhere.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::on_every_database;
use crate::common::{Finished, Launch, Server, eventually, suite_line};

/// Rules with a capacity of one token each: a cost of two is always denied.
const RULES: &str = r#"
[[rule]]
rule_id = 1
name = "per-user"
key_pattern = "user:{user_id}"
tokens = 1
period = "1s"
"#;

/// Texts that control a terminal, break a line, change the direction of text, or end a string of SQL.
const HOSTILE: [&str; 12] = [
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07",
    "\u{9b}31m",
    "a\r\nx-evil: 1",
    "a\n{\"level\":\"ERROR\",\"message\":\"forged\"}",
    "\u{202e}gpj.exe",
    "\u{2066}a\u{2069}\u{2028}b",
    "' OR '1'='1",
    "'; DROP TABLE rate_limit_rules; --",
    "\") ; DELETE FROM rate_limit_violations; --",
    "%' ESCAPE '\\",
    "$1",
];

/// True for characters that must not reach a terminal or a log as they are.
fn is_active(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn with_rules() -> Launch {
    Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", RULES)
}

/// Has a request of this user denied.
fn deny(server: &Server, user_id: &str) {
    let body = json!({"user_id": user_id, "endpoint": user_id, "method": user_id, "cost": 2});
    let answer = server.post_json("/v1/check", &body.to_string());
    assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(false)), "{answer:?}");
}

/// Waits until this number of denials is on record.
fn recorded(server: &Server, count: u64) {
    eventually("violations to be on record", || {
        let written = server.get("/v1/stats").json()["audit"]["written"].as_u64().unwrap();
        (written == count).then_some(())
    });
}

/// Text as a part of a query or of a path.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Runs a command against a server.
fn command(server: &Server, arguments: &[&str]) -> Finished {
    let url = format!("http://{}", server.address);
    let done = Launch::new(arguments).args(&["--server", &url]).run();
    assert_eq!(done.code, Some(0), "{arguments:?}: {done:?}");
    done
}

/// The first place where a spreadsheet that splits at commas, semicolons, tabs or line breaks would see a formula.
fn formula(csv: &str) -> Option<&str> {
    let is_separator = |letter: char| matches!(letter, ',' | ';' | '\t' | '\r' | '\n');
    csv.match_indices(is_separator).find_map(|(at, separator)| {
        let cell = &csv[at + separator.len()..];
        let is_skipped = |letter: char| {
            letter == '"' || letter == '\u{feff}' || letter.is_whitespace() || letter.is_control()
        };
        let begins = cell.trim_start_matches(is_skipped);
        let is_formula = begins
            .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
        is_formula.then_some(cell)
    })
}

#[test]
fn a13_no_cell_of_an_export_is_a_formula_in_any_spreadsheet() {
    let hostile = [
        "=1+1",
        " =1+1",
        ";=1",
        "\t=1",
        "\r=1",
        "a\n=1",
        "a;\"=1",
        "\u{a0}\u{3000}@SUM(A1)",
        "\u{feff}+1",
        "\u{ff1d}1+1",
        "-2+3;\t-1|' /C calc'!A0",
    ];
    let server = with_rules().start();
    for text in hostile {
        deny(&server, text);
    }
    recorded(&server, hostile.len() as u64);
    let by_api = server.get("/v1/violations?format=csv").body;
    let by_command = command(&server, &["violations", "export"]).stdout;
    for csv in [by_api, by_command] {
        assert!(csv.matches("'=1").count() >= hostile.len() / 2, "{csv}");
        assert_eq!(formula(&csv), None, "{csv}");
    }
}

#[test]
fn keys_names_and_ids_never_become_header_fields() {
    let server = Launch::serve(&[]).start();
    let evil = |response: &crate::common::Response| {
        let mut fields = response.headers.iter();
        fields.any(|(name, value)| name.contains("evil") || value.chars().any(is_active))
    };
    for text in HOSTILE {
        for (name, value) in
            [("name", json!(text)), ("key_pattern", json!(format!("{text}:{{ip}}")))]
        {
            let mut rule =
                json!({"name": "n", "key_pattern": "k:{user_id}", "tokens": 1, "period": "1s"});
            rule[name] = value;
            let answer = server.post_json("/v1/rules", &rule.to_string());
            assert!(matches!(answer.status, 201 | 400 | 409 | 422), "{answer:?}");
            assert!(!evil(&answer), "{answer:?}");
        }
        let body = json!({"key": text, "rate": "1/s", "cost": 1});
        for _ in 0..2 {
            let answer = server.post_json("/v1/take?deny=429", &body.to_string());
            assert!(matches!(answer.status, 200 | 400 | 429), "{answer:?}");
            assert!(!evil(&answer), "{answer:?}");
        }
    }
    // Over the wire, where a field cannot contain a line break: everything else that HTTP lets through.
    for text in ["a\x1b[31m", "\u{202e}", "a\u{a0}b", "a\tb", "\"; q=\"", "a,b;w=1"] {
        for field in
            ["x-user-id", "x-plan", "x-forwarded-uri", "x-forwarded-host", "user-agent", "origin"]
        {
            let mut client = server.connect();
            let head = format!(
                "GET /v1/authorize HTTP/1.1\r\nhost: {}\r\n{}{field}: {text}\r\n\r\n",
                server.address,
                suite_line("/v1/authorize")
            );
            client.send(head.as_bytes()).unwrap();
            let answer = client.read_response().unwrap();
            assert!(answer.status < 500 && !evil(&answer), "{answer:?}");
        }
    }
}

#[test]
fn log_lines_are_neither_forged_nor_active() {
    for format in ["json", "text"] {
        let server = Launch::serve(&["--log-format", format])
            .with_resp()
            .env("SLUICEGATE_LOG_LEVEL", "debug")
            .env("SLUICEGATE_ADMIN_TOKEN", "a-token-of-some-length")
            .start();
        let bearer = [("authorization", "Bearer a-token-of-some-length")];
        for text in HOSTILE {
            let rule = json!({"name": text, "key_pattern": text, "tokens": 1, "period": "1s", "description": text});
            for path in ["/v1/rules", "/v1/rules?dry_run=true"] {
                server.request("POST", path, &bearer, &rule.to_string());
            }
            let instead = json!({"rule_id": 1, "subject": text, "blocked": true, "reason": text});
            server.request("POST", "/v1/overrides", &bearer, &instead.to_string());
            server.get(&format!("/v1/{}?{}=1", encoded(text), encoded(text)));
            server.post_json("/v1/check", &json!({"user_id": text, "cost": text}).to_string());
            server.post_json("/v1/take", &json!({"key": text, "rate": text}).to_string());
            let mut resp = TcpStream::connect(server.address_of("resp")).unwrap();
            for command in ["AUTH", "CLIENT SETNAME", "SG.TAKE", "HELLO 3 SETNAME"] {
                let mut parts: Vec<_> = command.split(' ').collect();
                parts.push(text);
                let mut bytes = format!("*{}\r\n", parts.len());
                for part in parts {
                    bytes += &format!("${}\r\n{part}\r\n", part.len());
                }
                resp.write_all(bytes.as_bytes()).unwrap();
                let mut reply = [0; 512];
                assert!(resp.read(&mut reply).unwrap() > 0);
            }
        }
        server.get("/livez");
        let log = server.stderr();
        eprintln!("{format}: {} lines of log", log.lines().count());
        for line in log.lines() {
            assert!(!line.contains(is_active), "{line:?}");
            assert!(
                !line.starts_with("{\"level\":\"ERROR\"") && !line.starts_with("x-evil"),
                "{line}"
            );
            if format == "json" && line.starts_with('{') {
                let parsed: Value = serde_json::from_str(line).unwrap();
                assert_ne!(parsed["message"], "forged", "{line}");
            }
        }
    }
}

#[test]
fn no_parameter_of_the_administration_is_sql() {
    let launch = || Launch::serve(&[]).env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1000");
    on_every_database(launch, |server| {
        let rules = server.get("/v1/rules").json()["rules"].as_array().unwrap().len();
        let body =
            json!({"user_id": "42", "ip": "203.0.113.9", "endpoint": "/x", "cost": 1_000_000});
        assert_eq!(server.post_json("/v1/check", &body.to_string()).status, 200);
        recorded(server, 1);
        let lists = [
            (
                "violations",
                "violations",
                &[
                    "user_id",
                    "ip",
                    "endpoint",
                    "bucket_key",
                    "rule_id",
                    "mode",
                    "from",
                    "to",
                    "after",
                    "limit",
                    "format",
                ][..],
            ),
            ("violations/top", "top", &["by", "rule_id", "mode", "from", "to", "limit"]),
            ("rules", "rules", &["plan", "scope", "is_active", "after", "limit"]),
            ("rules/changes", "changes", &["after", "limit"]),
            ("overrides", "overrides", &["rule_id", "subject", "after", "limit"]),
        ];
        let mut asked = 0;
        for text in HOSTILE {
            let text = encoded(text);
            for (path, list, names) in lists {
                for name in names {
                    let by =
                        if path == "violations/top" && *name != "by" { "&by=user_id" } else { "" };
                    let answer = server.get(&format!("/v1/{path}?{name}={text}{by}"));
                    match answer.status {
                        200 => assert_eq!(answer.json()[list], json!([]), "{path} {name} {text}"),
                        status => assert_eq!(status, 400, "{path} {name} {text}: {answer:?}"),
                    }
                    asked += 1;
                }
            }
            for (method, path) in [
                ("DELETE", format!("violations?user_id={text}")),
                ("DELETE", format!("violations?bucket_key={text}")),
                ("GET", format!("rules/{text}")),
                ("DELETE", format!("rules/{text}")),
                ("DELETE", format!("overrides/{text}")),
                ("GET", format!("buckets/1/{text}")),
                ("POST", format!("buckets/1/{text}/reset")),
            ] {
                let answer = server.request(method, &format!("/v1/{path}"), &[], "");
                assert!(answer.status < 500, "{method} {path}: {answer:?}");
                if path.starts_with("violations") {
                    assert_eq!(answer.json(), json!({"deleted": 0}), "{path}");
                }
                asked += 1;
            }
        }
        for (number, text) in HOSTILE.into_iter().enumerate() {
            let instead = json!({"rule_id": 1, "subject": text, "blocked": true, "reason": text});
            let answer = server.post_json("/v1/overrides", &instead.to_string());
            assert_eq!(
                (answer.status, &answer.json()["subject"]),
                (201, &json!(text)),
                "{answer:?}"
            );
            let found = server.get(&format!("/v1/overrides?subject={}", encoded(text))).json();
            assert_eq!(found["overrides"].as_array().unwrap().len(), 1, "{number}: {found}");
        }
        assert_eq!(server.get("/v1/rules").json()["rules"].as_array().unwrap().len(), rules);
        assert_eq!(server.get("/v1/violations").json()["violations"].as_array().unwrap().len(), 1);
        eprintln!("{asked} queries with hostile parameters");
    });
}

#[test]
fn tables_of_the_command_line_do_not_control_the_terminal() {
    let server = Launch::serve(&[]).start();
    for text in HOSTILE {
        let instead = json!({"rule_id": 1, "subject": text, "blocked": true, "reason": text});
        assert_eq!(server.post_json("/v1/overrides", &instead.to_string()).status, 201);
        let rule = json!({
            "key_pattern": "k:{user_id}", "conditions": {"tenant": text}, "description": text,
            "tokens": 1, "period": "1s", "plan": format!("p{}", text.len()),
        });
        let answer = server.post_json("/v1/rules", &rule.to_string());
        assert!(matches!(answer.status, 201 | 400 | 409 | 422), "{answer:?}");
    }
    for arguments in [
        &["overrides", "list"][..],
        &["rules", "list"],
        &["rules", "export"],
        &["explain", "--user-id", "\u{1b}[31m"],
    ] {
        print_nothing_active(&server, arguments);
    }
    let server = with_rules().start();
    for text in HOSTILE {
        deny(&server, text);
    }
    recorded(&server, HOSTILE.len() as u64);
    for arguments in [
        &["violations", "list"][..],
        &["violations", "top"],
        &["violations", "top", "--by", "bucket-key"],
        &["violations", "export", "--format", "json"],
    ] {
        print_nothing_active(&server, arguments);
    }
}

fn print_nothing_active(server: &Server, arguments: &[&str]) {
    for form in [&[][..], &["--json"]] {
        let done = command(server, &[arguments, form].concat());
        for text in [done.stdout, done.stderr] {
            let active = text.lines().find(|line| line.contains(is_active));
            assert_eq!(active, None, "{arguments:?} {form:?}");
        }
    }
}
