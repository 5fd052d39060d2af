//! A secret is used and never shown. Every way of setting one is tried, valid and invalid, and no
//! output may contain the canary.

use crate::common::{Finished, Launch, Server};

const CANARY: &str = "canary-d41d8cd98f";

fn assert_silent(finished: &Finished) {
    for output in [&finished.stdout, &finished.stderr] {
        assert!(!output.contains(CANARY), "{output}");
    }
}

/// Requests every endpoint, stops the service, and searches all output for the canary.
fn assert_used_but_silent(server: Server) {
    let bearer = format!("Bearer {CANARY}");
    let forget = |headers: &[(&str, &str)]| server.request("DELETE", "/v1/buckets/x", headers, "");
    assert_eq!(forget(&[]).status, 401);
    assert_eq!(forget(&[("authorization", "Bearer wrong")]).status, 401);
    let allowed = forget(&[("authorization", &bearer)]);
    assert!((200..300).contains(&allowed.status) || allowed.status == 404, "{allowed:?}");
    let mut seen = format!("{allowed:?}");
    for path in ["/readyz?verbose", "/metrics", "/openapi.json", "/v1/check", "/nonsense"] {
        seen += &format!("{:?}", server.get(path));
    }
    let odd = [("authorization", bearer.as_str())];
    seen += &format!("{:?}", server.request("PATCH", "/v1/check", &odd, "{"));
    assert!(!seen.contains(CANARY), "{seen}");
    server.signal("HUP");
    server.wait_for_log("rules reloaded");
    server.signal("TERM");
    let finished = server.wait();
    assert_eq!(finished.code, Some(0));
    assert_silent(&finished);
}

#[test]
fn a_token_from_a_variable() {
    let launch = Launch::serve(&["--log-level", "trace"]).env("SLUICEGATE_ADMIN_TOKEN", CANARY);
    assert_used_but_silent(launch.start());
}

#[test]
fn a_token_from_a_file_that_a_variable_names() {
    let launch = Launch::serve(&["--log-level", "trace"])
        .file("token", &format!("{CANARY}\n"))
        .env("SLUICEGATE_ADMIN_TOKEN_FILE", "token");
    assert_used_but_silent(launch.start());
}

#[test]
fn a_token_from_the_file() {
    let text = format!("[admin]\ntoken = \"{CANARY}\"\n[log]\nlevel = \"trace\"\n");
    assert_used_but_silent(Launch::serve(&[]).file("sluicegate.toml", &text).start());
}

#[test]
fn check_config_says_only_that_there_is_one() {
    let finished =
        Launch::new(&["serve", "--check-config"]).env("SLUICEGATE_ADMIN_TOKEN", CANARY).run();
    assert_eq!(finished.code, Some(0));
    assert!(finished.stdout.contains("(set, not shown)"), "{}", finished.stdout);
    assert_silent(&finished);
}

#[test]
fn mistakes_around_a_secret_do_not_show_it() {
    for text in [
        "[admin]\ntoken = CANARY\n",
        "[admin]\ntoken = \"CANARY\n",
        "[admin]\ntokn = \"CANARY\"\n",
        "[admin]\ntoken = [\"CANARY\"]\n",
        "[admin]\ntoken = \"CANARY with spaces\"\n",
        "[admin]\ntoken = \"\"\"\nCANARY\n\"\"\"\n",
        "[admni]\ntoken = \"CANARY\"\n",
        "admin = { token = \"CANARY\", x = 1 }\n",
        "admin.token = \"CANARY\"\nadmin.token = \"CANARY\"\n",
        "token = \"CANARY\"\n",
        "[store]\nurl = \"redis://me:CANARY@ho@st\"\n",
        "[store]\nurl = \"redis://host:CANARY\"\n",
        "[store]\nurl = \"redis:me:CANARY@host\"\n",
        "[store]\nurl = \"CANARY\"\n",
        "[store]\nulr = \"redis://me:CANARY@host\"\n",
        "[store]\nurl = [\"redis://me:CANARY@host\"]\n",
        "[store]\nurl = \"redis+sentinel://h/m?sentinel_pass=CANARY\"\n",
        "[store]\nurl = \"redis://me:CANARY@host\"\nprefix = \"{}\"\n",
        "url = \"redis://me:CANARY@host\"\n",
        "[listen]\ntoken = \"CANARY\"\nhttp = \n",
    ] {
        let text = text.replace("CANARY", CANARY);
        let finished = Launch::serve(&[]).file("sluicegate.toml", &text).run();
        assert_eq!(finished.code, Some(2), "{text}");
        assert!(finished.stderr.contains("error: "), "{}", finished.stderr);
        assert_silent(&finished);
    }
    for name in ["SLUICEGATE_ADMIN_TOKN", "SLUICEGATE_ADMIN_TOKEN", "SLUICEGATE_STORE_URL"] {
        let finished = Launch::serve(&[]).env(name, &format!("a:b {CANARY}@x")).run();
        assert_eq!(finished.code, Some(2), "{name}");
        assert!(finished.stderr.contains(name), "{}", finished.stderr);
        assert_silent(&finished);
    }
}

#[test]
fn a_file_with_a_secret_must_hold_one() {
    let named = |launch: Launch| launch.env("SLUICEGATE_ADMIN_TOKEN_FILE", "token").run();
    let missing = named(Launch::serve(&[]));
    assert_eq!(missing.code, Some(2));
    assert_eq!(
        missing.stderr,
        "error: SLUICEGATE_ADMIN_TOKEN_FILE: cannot read token: no such file or directory\n"
    );
    let empty = named(Launch::serve(&[]).file("token", "\n"));
    assert_eq!(empty.stderr, "error: SLUICEGATE_ADMIN_TOKEN_FILE: token: is empty\n");
    let twice = Launch::serve(&[]).file("token", CANARY).env("SLUICEGATE_ADMIN_TOKEN", CANARY);
    let twice = named(twice);
    assert_eq!(
        twice.stderr,
        "error: SLUICEGATE_ADMIN_TOKEN_FILE: SLUICEGATE_ADMIN_TOKEN is also set: unset one of them\n"
    );
    let huge = named(Launch::serve(&[]).file("token", &CANARY.repeat(1000)));
    assert_eq!(huge.code, Some(2));
    assert_silent(&huge);
}
