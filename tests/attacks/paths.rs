//! Spellings of a path that would escape its rule.

use serde_json::{Value, json};

use crate::common::{Launch, Server, check, with_rules};
use crate::sockets::resp_reply;

/// Spellings that some server treats as `/login`.
const SPELLINGS: [&str; 11] = [
    "/login",
    "/login/",
    "/LOGIN",
    "/Login",
    "/login;x",
    "/login;jsessionid=7/",
    "//login",
    "/./login",
    "/x/../login",
    "/%6Cogin",
    "/login/x/y/..;/..",
];

/// A path that is another one, however it is spelt.
const OTHER: &str = "/a%2Flogin";

fn rules(path: &str) -> String {
    format!(
        "[[rule]]\nrule_id = 1\nkey_pattern = 'login:{{ip}}'\ntokens = 1\nperiod = '1d'\nburst_capacity = 5\n\
         conditions = {{ endpoint = '/login' }}\npath = '{path}'\n\
         [[rule]]\nrule_id = 2\nkey_pattern = 'each:{{endpoint}}:{{user_id}}'\ntokens = 1\nperiod = '1d'\n\
         burst_capacity = 5\npath = '{path}'\n"
    )
}

fn launch(path: &str) -> Launch {
    with_rules(&rules(path)).with_resp().args(&["--proxies-trusted", "127.0.0.1"])
}

/// A spelling of `/login` that is longer than `limits.value_bytes_max`.
fn long_spelling() -> String {
    format!("/;{}/login", "a".repeat(1100))
}

/// Number of the spellings that one door allows.
fn allowed(door: impl Fn(&str) -> bool) -> usize {
    let long = long_spelling();
    SPELLINGS.into_iter().chain([&*long]).filter(|path| door(path)).count()
}

/// The long spelling is refused here.
fn by_check(server: &Server, path: &str) -> bool {
    let request = json!({"ip": "192.0.2.1", "endpoint": path}).to_string();
    let answer = server.post_json("/v1/check", &request);
    answer.status == 200 && answer.json()["allowed"] == true
}

fn by_authorize(server: &Server, path: &str) -> bool {
    let headers = [("x-forwarded-uri", path), ("x-forwarded-for", "192.0.2.2")];
    server.request("GET", "/v1/authorize", &headers, "").status == 200
}

fn by_descriptors(server: &Server, path: &str) -> bool {
    let entries =
        json!([{"key": "remote_address", "value": "192.0.2.3"}, {"key": "path", "value": path}]);
    let call = json!({"domain": "d", "descriptors": [{"entries": entries}]});
    server.post_json("/json", &call.to_string()).status == 200
}

fn by_resp(server: &Server, path: &str) -> bool {
    let command = format!("SG.CHECK ip 192.0.2.4 endpoint {path}");
    let reply = resp_reply(server.address_of("resp"), &command);
    reply.lines().nth(1) == Some(":1")
}

#[test]
fn a16_no_spelling_of_a_path_escapes_a_folded_rule() {
    type Door = fn(&Server, &str) -> bool;
    let doors: [(&str, Door); 4] = [
        ("check", by_check),
        ("authorize", by_authorize),
        ("descriptors", by_descriptors),
        ("RESP", by_resp),
    ];
    let (exact, folded) = (launch("exact").start(), launch("folded").start());
    for (name, door) in doors {
        let (escaped, held) =
            (allowed(|path| door(&exact, path)), allowed(|path| door(&folded, path)));
        eprintln!("{name}: of 12 spellings, a limit of 5 allows {escaped} exact, {held} folded");
        assert!(escaped > 5, "{name}: exact rules tell the spellings apart");
        assert_eq!(held, 5, "{name}");
        assert!(door(&folded, OTHER), "{name}: an encoded slash is not a slash");
    }
}

#[test]
fn a16_spellings_share_the_bucket_of_an_endpoint() {
    let server = launch("folded").start();
    let user = |path: &str| json!({"user_id": "ann", "endpoint": path});
    let each: Vec<_> =
        SPELLINGS.iter().map(|path| check(&server, &user(path))["allowed"] == true).collect();
    assert_eq!(each.iter().filter(|allowed| **allowed).count(), 5, "{each:?}");
    assert_eq!(check(&server, &user(OTHER))["allowed"], true);
    let explained = server.post_json("/v1/explain", &user("/LOGIN/").to_string()).json();
    assert_eq!(explained["rules"][0]["bucket_key"], "each:/login:ann");
    assert_eq!(explained["hints"], json!([]));
}

#[test]
fn a16_explain_hints_at_a_rule_that_a_spelling_escapes() {
    let server = launch("exact").start();
    let hints = |path: &str| -> Value {
        let request = json!({"ip": "192.0.2.1", "endpoint": path}).to_string();
        server.post_json("/v1/explain", &request).json()["hints"].clone()
    };
    assert_eq!(hints("/login"), json!([]));
    assert_eq!(hints("/other/"), json!([]));
    let hint = hints("/LOGIN/;x");
    assert!(hint[0].as_str().unwrap().starts_with("rule 1, login:{ip}, would apply"), "{hint}");
    let cli = Launch::new(&["explain", "--server", &format!("http://{}", server.address)])
        .args(&["--ip", "192.0.2.1", "--endpoint", "/login/"])
        .run();
    assert!(cli.stdout.contains("Hint: rule 1, login:{ip}, would apply"), "{}", cli.stdout);
}

/// The column is saved, shown, exported and imported, and its changes are recorded.
#[test]
fn a16_the_form_of_paths_is_a_column_of_a_rule() {
    let server = Launch::serve(&[]).start();
    let json = [("content-type", "application/json")];
    let send = |method: &str, path: &str, body: &Value| {
        server.request(method, path, &json, &body.to_string())
    };
    let rule = json!({"key_pattern": "x:{endpoint}", "tokens": 1, "period": 60, "path": "folded"});
    let made = send("POST", "/v1/rules", &rule);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(made["path"], "folded");
    let of_rule = format!("/v1/rules/{}", made["rule_id"]);
    let patched = send("PATCH", &of_rule, &json!({"path": null})).json();
    assert_eq!(patched["path"], "exact");
    let wrong = send("PATCH", &of_rule, &json!({"path": "loose"}));
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains(r#""field":"path""#), "{}", wrong.body);
    let history = server.get(&format!("{of_rule}/changes")).json();
    assert_eq!(history["changes"][0]["old"]["path"], "folded", "{history}");
}
