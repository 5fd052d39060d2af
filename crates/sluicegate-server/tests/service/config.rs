//! Settings: their sources and errors.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use sluicegate_server::config::{Key, Kind, keys};

use crate::common::{Finished, Launch};

const MISTAKES: &str = r#"http = "127.0.0.1:80"
[listen]
htp = "127.0.0.1:0"
http = 8080
[store]
max_buckets = 0
on_full = "drop"
url = "redis://user:canary@host,other"
[rules]
source = "sky"
[limts]
batch_max = 7
[limits]
batch_max = 1.5
on_full = "deny"
"#;

/// All errors are shown at once, each with its position.
const MISTAKES_SHOWN: &str = r#"error: `http` belongs in [listen]
 --> sluicegate.toml:1:1
  |
1 | http = "127.0.0.1:80"
  | ^^^^

error: unknown key `htp`: did you mean `http`?
 --> sluicegate.toml:3:1
  |
3 | htp = "127.0.0.1:0"
  | ^^^

error: `listen.http` must be a string, not a whole number
 --> sluicegate.toml:4:8
  |
4 | http = 8080
  |        ^^^^

error: 0 is not from 1 to 1073741824
 --> sluicegate.toml:6:15
  |
6 | max_buckets = 0
  |               ^

error: `drop` must be one of overflow, deny
 --> sluicegate.toml:7:11
  |
7 | on_full = "drop"
  |           ^^^^^^

error: several hosts need redis+sentinel:// or redis+cluster://
 --> sluicegate.toml:8:7
  |
8 | url = "redis://***********************
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

error: `sky` must be one of database, file
  --> sluicegate.toml:10:10
   |
10 | source = "sky"
   |          ^^^^^

error: unknown section `limts`: did you mean `limits`?
  --> sluicegate.toml:11:2
   |
11 | [limts]
   |  ^^^^^

error: `limits.batch_max` must be a whole number, not a fraction
  --> sluicegate.toml:14:13
   |
14 | batch_max = 1.5
   |             ^^^

error: `on_full` belongs in [store]
  --> sluicegate.toml:15:1
   |
15 | on_full = "deny"
   | ^^^^^^^

error: SLUICEGATE_LIMITS_BATCH_MAX: `x` is not a whole number

error: SLUICEGATE_LISTEN_HTPT: unknown variable: did you mean SLUICEGATE_LISTEN_HTTP?

error: SLUICEGATE_NONSENSE: unknown variable: `sluicegate serve --help` lists them

error: --listen-http: `:80` is not an address and port, such as 127.0.0.1:8080 or [::1]:8080, or a Unix socket, such as unix:/run/sluicegate.sock

error: --log-level: `verbose` is not a level: must be one of off, error, warn, info, debug, trace
"#;

#[test]
fn all_mistakes_are_shown_at_once_where_they_stand() {
    for check in [&[][..], &["--check-config"]] {
        let finished = Launch::new(&["serve", "--listen-http", ":80", "--log-level", "verbose"])
            .args(check)
            .file("sluicegate.toml", MISTAKES)
            .env("SLUICEGATE_LISTEN_HTPT", "127.0.0.1:0")
            .env("SLUICEGATE_LIMITS_BATCH_MAX", "x")
            .env("SLUICEGATE_NONSENSE", "1")
            .run();
        assert_eq!(finished.stderr, MISTAKES_SHOWN);
        assert_eq!(finished.stdout, "");
        assert_eq!(finished.code, Some(2));
    }
}

/// Lists are arrays in the file, and separated by commas elsewhere.
#[test]
fn lists_are_written_in_two_ways() {
    let file = "[proxies]\ntrusted = [\"10.0.0.0/8\", \"::1\"]\n";
    let checked = |launch: Launch| launch.args(&["--check-config"]).run();
    let of_file = checked(Launch::serve(&[]).file("sluicegate.toml", file));
    let of_variable =
        checked(Launch::serve(&[]).env("SLUICEGATE_PROXIES_TRUSTED", "10.0.0.0/8, ::1"));
    for finished in [of_file, of_variable] {
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
        let line = finished.stdout.lines().find(|line| line.contains("proxies.trusted")).unwrap();
        assert!(line.contains("10.0.0.0/8") && line.contains("::1"), "{line}");
    }
    for (file, wrong) in [
        ("[proxies]\ntrusted = [\"10.0.0.0/33\"]\n", "`10.0.0.0/33` is not a network"),
        ("[proxies]\ntrusted = [10]\n", "`proxies.trusted` must be a list of strings"),
        ("[listen]\nproxy_protocol = [\"htp\"]\n", "`htp` must be one of http, grpc, resp"),
        ("[authorize]\nuser_header = \"x y\"\n", "`x y` is not the name of a header"),
        ("[authorize]\nattribute_headers = [\"tenant\"]\n", "such as tenant=x-tenant-id"),
    ] {
        let finished = checked(Launch::serve(&[]).file("sluicegate.toml", file));
        assert_eq!(finished.code, Some(2), "{file}");
        assert!(finished.stderr.contains(wrong), "{}", finished.stderr);
    }
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    let finished =
        Launch::serve(&[]).file("sluicegate.toml", "[listen]\nhttp = 127.0.0.1:80\nx = [1\n").run();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains(" --> sluicegate.toml:2:13\n"), "{}", finished.stderr);
    assert!(finished.stderr.contains("2 | http = 127.0.0.1:80\n"), "{}", finished.stderr);
    assert!(finished.stderr.contains(" --> sluicegate.toml:3:"), "{}", finished.stderr);
}

#[test]
fn others_are_not_let_in_without_a_token() {
    let file = "[listen]\nhttp = \"0.0.0.0:0\"";
    let launch =
        || Launch::serve(&[]).without_env("SLUICEGATE_LISTEN_HTTP").file("sluicegate.toml", file);
    let finished = launch().run();
    assert_eq!(finished.code, Some(2));
    assert_eq!(
        finished.stderr,
        r#"error: other machines can reach the administration at 0.0.0.0:0, and admin.token is not set
 --> sluicegate.toml:2:8
  |
2 | http = "0.0.0.0:0"
  |        ^^^^^^^^^^^
  |
  = help: write a token to a file and name the file in SLUICEGATE_ADMIN_TOKEN_FILE, or set token in [admin], or set listen.admin to an address of this machine, such as 127.0.0.1:8082
"#
    );
    let empty = launch().env("SLUICEGATE_ADMIN_TOKEN", "").run();
    assert_eq!(empty.code, Some(2));
    let ipv6 = Launch::serve(&["--listen-http", "[::]:0"]).run();
    assert_eq!(ipv6.code, Some(2));
    assert!(ipv6.stderr.starts_with(
        "error: --listen-http: other machines can reach the administration at [::]:0"
    ));

    let short = launch().env("SLUICEGATE_ADMIN_TOKEN", "letmein").run();
    assert_eq!(short.code, Some(2));
    assert!(short.stderr.contains("admin.token must have at least 16 bytes"), "{short:?}");

    let long = "correct-horse-battery-staple";
    let launch = launch().env("SLUICEGATE_LISTEN_ANONYMOUS", "true");
    let mut server = launch.env("SLUICEGATE_ADMIN_TOKEN", long).start();
    assert!(server.address.ip().is_unspecified());
    server.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_key_that_is_guessed_hides_nothing() {
    let launch = |key: &str| {
        let text = format!("[audit]\nprivacy = \"hashed\"\nprivacy_key = \"{key}\"\n");
        Launch::new(&["serve", "--check-config"]).file("sluicegate.toml", &text)
    };
    let short = launch("fifteen-letters").run();
    assert_eq!(short.code, Some(2));
    let said = "error: audit.privacy_key must have at least 16 bytes\n --> sluicegate.toml:3:15\n";
    assert!(short.stderr.starts_with(said), "{}", short.stderr);
    assert!(!short.stderr.contains("fifteen"), "{}", short.stderr);
    assert_eq!(launch("sixteen-letters!").run().code, Some(0));
}

/// Value and origin of a setting, as `--check-config` shows them.
fn setting(finished: &Finished, name: &str) -> (String, String) {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let line = finished.stdout.lines().find(|line| line.starts_with(name)).unwrap();
    let mut parts = line.split("  ").map(str::trim).filter(|part| !part.is_empty()).skip(1);
    (parts.next().unwrap().to_owned(), parts.next().unwrap().to_owned())
}

fn is(value: &str, origin: &str) -> (String, String) {
    (value.to_owned(), origin.to_owned())
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let check = || Launch::new(&["serve", "--check-config"]);
    let from_file =
        |launch: Launch| launch.file("sluicegate.toml", "\n[limits]\nbatch_max = 0x7\n");
    let from_environment = |launch: Launch| launch.env("SLUICEGATE_LIMITS_BATCH_MAX", "8");

    let name = "limits.batch_max";
    assert_eq!(setting(&check().run(), name), is("100", "default"));
    assert_eq!(setting(&from_file(check()).run(), name), is("7", "sluicegate.toml:3"));
    let both = from_environment(from_file(check()));
    assert_eq!(setting(&both.run(), name), is("8", "SLUICEGATE_LIMITS_BATCH_MAX"));
    let all = from_environment(from_file(check())).args(&["--limits-batch-max", "9"]);
    assert_eq!(setting(&all.run(), name), is("9", "--limits-batch-max"));
}

#[test]
fn a_setting_in_force_has_its_effect() {
    let launch =
        Launch::serve(&["--limits-batch-max", "2"]).env("SLUICEGATE_LIMITS_BATCH_MAX", "1");
    let server = launch.start();
    assert_eq!(server.post_json("/v1/check/batch", "[{},{}]").status, 200);
    assert_eq!(server.post_json("/v1/check/batch", "[{},{},{}]").status, 400);
}

#[test]
fn the_file_that_is_named_must_be_there() {
    let finished = Launch::serve(&["--config", "other.toml"]).run();
    assert_eq!(finished.code, Some(2));
    assert_eq!(finished.stderr, "error: cannot read other.toml: no such file or directory\n");

    let check = Launch::new(&["serve", "--check-config", "--config", "other.toml"])
        .file("other.toml", "[log]\nlevel = \"debug\"")
        .file("sluicegate.toml", "[log]\nlevel = \"trace\"");
    assert_eq!(setting(&check.run(), "log.level"), is("debug", "other.toml:2"));
}

#[test]
fn files_in_the_file_are_beside_it() {
    let launch = Launch::new(&["serve", "--check-config", "--config", "etc/sluicegate.toml"]);
    fs::create_dir(launch.folder().join("etc")).unwrap();
    let finished = launch
        .file("etc/sluicegate.toml", "[rules]\nfile = \"rules.toml\"")
        .file("etc/rules.toml", "[[rule]]\nkey_pattern = \"global\"\nrate_per_second = 1\n")
        .run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stdout.starts_with("ok: etc/sluicegate.toml, 1 rule (etc/rules.toml)\n"));
}

#[test]
fn check_config_checks_the_rules_too() {
    let check = |text: &str| {
        Launch::new(&["serve", "--check-config", "--rules", "rules.toml"])
            .file("rules.toml", text)
            .run()
    };
    let wrong = check("[[rule]]\nkey_pattern = \"user:{user_id\"\nrate_per_second = 0\n");
    assert_eq!(wrong.code, Some(2));
    assert_eq!(wrong.stdout, "");
    assert!(
        wrong.stderr.contains(
            "\
error: key_pattern: this `{` is never closed
 --> rules.toml:2:21
  |
2 | key_pattern = \"user:{user_id\"
  |                     ^
"
        ),
        "{}",
        wrong.stderr
    );
    assert!(wrong.stderr.contains(" --> rules.toml:3:"), "all at once: {}", wrong.stderr);
    let missing = Launch::new(&["serve", "--check-config", "--rules", "rules.toml"]).run();
    assert_eq!(missing.code, Some(2));
    assert_eq!(missing.stderr, "error: cannot read rules.toml: no such file or directory\n");
    let empty = check("");
    assert_eq!(empty.code, Some(2), "no rules are no limits: that is not done in silence");
}

#[test]
fn wrong_rules_are_exit_code_2() {
    let rules = "[[rule]]\nkey_pattern = \"user:{user_id\"\nrate_per_second = 1\n";
    let finished = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", rules).run();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains(" --> rules.toml:2:21\n"), "{}", finished.stderr);
}

/// Value and origin of the store's URL, given in this variable.
fn store_url(variable: &str, value: &str) -> (String, String) {
    let launch = Launch::new(&["serve", "--check-config"])
        .file("url", "rediss://me:canary@redis.example\n")
        .env(variable, value);
    let finished = launch.run();
    assert!(!finished.stdout.contains("canary"), "{}", finished.stdout);
    setting(&finished, "store.url")
}

#[test]
fn a_stores_url_is_shown_without_its_password() {
    let shown = "rediss://me:***@redis.example:6379/0";
    let variable = "SLUICEGATE_STORE_URL";
    assert_eq!(store_url(variable, "rediss://me:canary@redis.example"), is(shown, variable));
    let variable = "SLUICEGATE_STORE_URL_FILE";
    assert_eq!(store_url(variable, "url"), is(shown, variable));
    let shown = "redis+cluster://:***@a:6379,b:7000";
    let url = "redis+cluster://:canary@a,b:7000";
    let finished = Launch::new(&["serve", "--check-config", "--store-url", url]).run();
    assert_eq!(setting(&finished, "store.url"), is(shown, "--store-url"));
}

#[test]
fn checking_settings_connects_to_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let finished = Launch::new(&["serve", "--check-config", "--store-url", &url]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn settings_of_redis_that_do_not_go_together_are_refused() {
    for (settings, said) in [
        (
            &["--store-url", "redis://h", "--store-prefix", "{x}"][..],
            "error: --store-prefix: the prefix must consist of ASCII letters, digits, `_`, `-`, `.` and \
             `:`, not '{'\n",
        ),
        (
            &["--store-url", "redis://h", "--store-tls-ca", "ca.pem"],
            "error: --store-url: TLS files need a URL that begins with rediss\n",
        ),
        (
            &["--store-url", "rediss://h", "--store-tls-key", "key.pem"],
            "error: --store-tls-key: `store.tls_key` needs `store.tls_certificate` as well\n",
        ),
        (
            &["--store-url", "rediss://h", "--store-tls-ca", "ca.pem"],
            "error: --store-tls-ca: cannot read ca.pem: no such file or directory\n",
        ),
        (
            &["--store-url", "redis://h", "--store-budget-ms", "0"],
            "error: --store-budget-ms: 0 is not from 1 to 10000\n",
        ),
        (
            &["--store-url", "redis://h", "--store-local-share-percent", "101"],
            "error: --store-local-share-percent: 101 is not from 1 to 100\n",
        ),
        (
            &["--store-url", "redis://h", "--store-on-eviction", "ignore"],
            "error: --store-on-eviction: `ignore` must be one of warn, refuse\n",
        ),
        (
            &["--store-url", "memroy:"],
            "error: --store-url: the URL must begin with redis://, rediss://, unix:/, redis+unix://, \
             redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://, or be \
             `memory:`\n",
        ),
    ] {
        let finished = Launch::serve(settings).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), said));
    }
}

#[test]
fn files_for_tls_are_said_to_do_nothing_in_memory() {
    let finished = Launch::new(&["serve", "--check-config", "--store-tls-ca", "ca.pem"]).run();
    assert_eq!(finished.code, Some(0));
    assert!(finished.stdout.ends_with("do nothing: the store is `memory:`\n"), "{finished:?}");
}

#[test]
fn nothing_to_serve_is_a_mistake() {
    let finished = Launch::serve(&["--listen-http", ""]).run();
    assert_eq!(finished.code, Some(2));
    assert_eq!(
        finished.stderr,
        "error: --listen-http: all listeners are disabled: enable one of listen.http, listen.grpc, listen.resp and listen.admin\n"
    );
}

#[test]
fn variables_that_kubernetes_sets_are_no_mistakes() {
    let finished = Launch::new(&["serve", "--check-config"])
        .env("SLUICEGATE_SERVICE_HOST", "10.0.0.1")
        .env("SLUICEGATE_PORT", "tcp://10.0.0.1:8080")
        .env("SLUICEGATE_PORT_8080_TCP_ADDR", "10.0.0.1")
        .run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

/// Row of a key in the reference, generated from the table of keys.
fn reference_row(key: &Key) -> String {
    let default = match key.default_text() {
        text if text.is_empty() => String::new(),
        text => format!("`{text}`"),
    };
    let values = match &key.kind {
        Kind::Text { .. } => "text".to_owned(),
        Kind::Url { .. } => "a URL".to_owned(),
        Kind::Choice { choices, .. } => format!("`{}`", choices.join("`, `")),
        Kind::Number { min, max, .. } => format!("{min} to {max}"),
        Kind::Path { .. } => "a file".to_owned(),
        Kind::FileOrNone { .. } => "a file, or `none`".to_owned(),
        Kind::List { .. } => "a list".to_owned(),
        Kind::Secret { .. } => "a secret".to_owned(),
    };
    let flag = key.flag.map_or_else(String::new, |flag| format!("`--{flag}`"));
    let variable = key.variable();
    let file_variable = key.file_variable().map_or_else(String::new, |name| format!(", `{name}`"));
    let (name, doc) = (key.name, key.doc);
    format!("| `{name}` | {doc} | {default} | {values} | `{variable}`{file_variable} | {flag} |\n")
}

#[test]
fn the_reference_lists_every_setting() {
    let rows: String = keys().map(reference_row).collect();
    let reference = include_str!("../../../../docs/reference/configuration.md");
    assert!(reference.contains(&rows), "docs/reference/configuration.md should have\n{rows}");
}
