//! Reloading of rules.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::common::{Launch, Server, eventually, now};

/// A set with one rule of this limit.
fn rules(limit: u64) -> String {
    format!(
        "[[rule]]\nkey_pattern = \"user:{{user_id}}\"\nrate_per_second = 1\nburst_capacity = {limit}\n"
    )
}

const BROKEN: &str = "[[rule]]\nkey_pattern = \"user:{user_id\"\nrate_per_second = 1\n";

/// Current limit of that rule.
fn limit(server: &Server) -> u64 {
    let answer = server.post_json("/v1/check", r#"{"user_id":"1","cost":0}"#).json();
    answer["limit"].as_u64().unwrap()
}

fn wait_for_limit(server: &Server, wanted: u64) {
    eventually("the new rules", || (limit(server) == wanted).then_some(()));
}

fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").body;
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.map_or(0.0, |line| line.split(' ').nth(1).unwrap().parse().unwrap())
}

/// Replaces a file atomically, as editors do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn start() -> Server {
    Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", &rules(10)).start()
}

#[test]
fn a_file_that_is_replaced_is_in_force_within_a_second() {
    let server = start();
    assert_eq!(limit(&server), 10);
    let replaced = now();
    replace(&server.folder().join("rules.toml"), &rules(20));
    wait_for_limit(&server, 20);
    assert!(now() - replaced < Duration::from_millis(1500), "{:?}", now() - replaced);
    let reloaded = server.wait_for_log("rules reloaded");
    assert_eq!(reloaded["version"], 2);
    assert_eq!(reloaded["rules"], 1);
    assert_eq!(metric(&server, "sluicegate_rules_reloads_total{result=\"success\"}"), 2.0);
}

#[test]
fn a_file_that_is_written_in_place_is_in_force() {
    let server = start();
    fs::write(server.folder().join("rules.toml"), rules(20)).unwrap();
    wait_for_limit(&server, 20);
    // A partly written file is not read.
    assert!(!server.stderr().contains("rules not reloaded"), "{}", server.stderr());
}

#[test]
fn many_changes_in_a_row_are_one() {
    let server = start();
    for limit in 11..=60 {
        fs::write(server.folder().join("rules.toml"), rules(limit)).unwrap();
    }
    wait_for_limit(&server, 60);
    assert!(server.wait_for_logs("rules reloaded", 1).len() <= 2);
}

#[test]
fn spent_tokens_stay_spent() {
    let server = start();
    let spent = server.post_json("/v1/check", r#"{"user_id":"1","cost":10}"#).json();
    assert_eq!(spent["allowed"], true);
    replace(&server.folder().join("rules.toml"), &rules(12));
    wait_for_limit(&server, 12);
    let answer = server.post_json("/v1/check", r#"{"user_id":"1","cost":0}"#).json();
    assert!(answer["remaining"].as_u64().unwrap() <= 2 + 20, "{answer}");
    let all = server.post_json("/v1/check", r#"{"user_id":"1","cost":12}"#).json();
    assert_eq!(all["allowed"], false, "{all}");
}

#[test]
fn wrong_rules_leave_the_last_good_ones() {
    let server = start();
    let path = server.folder().join("rules.toml");
    replace(&path, BROKEN);
    let refused = server.wait_for_log("rules not reloaded: the last valid ones stay in force");
    assert_eq!(refused["level"], "ERROR");
    let shown = "\
error: key_pattern: this `{` is never closed
 --> rules.toml:2:21
  |
2 | key_pattern = \"user:{user_id\"
  |                     ^";
    assert_eq!(refused["report"], shown);
    assert_eq!(limit(&server), 10);
    assert_eq!(metric(&server, "sluicegate_rules_reloads_total{result=\"failure\"}"), 1.0);

    // The service stays ready, and the verbose answer reports the error.
    assert_eq!(server.get("/readyz").status, 200);
    let verbose = server.get("/readyz?verbose");
    assert_eq!(verbose.status, 200);
    assert!(verbose.body.contains("    2 | key_pattern = \"user:{user_id\"\n"), "{}", verbose.body);

    replace(&path, &rules(30));
    wait_for_limit(&server, 30);
    assert!(!server.get("/readyz?verbose").body.contains("key_pattern"));
    assert_eq!(
        server.wait_for_logs("rules not reloaded: the last valid ones stay in force", 1).len(),
        1
    );
}

#[test]
fn an_empty_or_missing_file_leaves_the_last_good_rules() {
    let server = start();
    let path = server.folder().join("rules.toml");
    replace(&path, "");
    let refusals = "rules not reloaded: the last valid ones stay in force";
    server.wait_for_log(refusals);
    assert_eq!(limit(&server), 10);
    fs::remove_file(&path).unwrap();
    let refused = server.wait_for_logs(refusals, 2).remove(1);
    assert!(refused["report"].as_str().unwrap().starts_with("cannot read rules.toml: no such"));
    assert_eq!(limit(&server), 10);
    replace(&path, &rules(40));
    wait_for_limit(&server, 40);
}

/// A `ConfigMap` is a folder of links through `..data`, which links to the folder of a version. A new version is
/// written beside the old one, and `..data` is replaced by a rename: the file in the settings itself never changes.
#[test]
fn a_kubernetes_config_map_is_reloaded() {
    let launch = Launch::serve(&["--rules", "config/rules.toml"]);
    let folder = launch.folder().join("config");
    let version = |name: &str, text: &str| {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("rules.toml"), text).unwrap();
        symlink(name, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    version("..2026_11_15_01", &rules(10));
    symlink("..data/rules.toml", folder.join("rules.toml")).unwrap();
    let server = launch.start();
    assert_eq!(limit(&server), 10);

    let swapped = now();
    version("..2026_11_15_02", &rules(20));
    fs::remove_dir_all(folder.join("..2026_11_15_01")).unwrap();
    wait_for_limit(&server, 20);
    assert!(now() - swapped < Duration::from_millis(1500), "{:?}", now() - swapped);

    version("..2026_11_15_03", BROKEN);
    server.wait_for_log("rules not reloaded: the last valid ones stay in force");
    assert_eq!(limit(&server), 20);
    version("..2026_11_15_04", &rules(30));
    wait_for_limit(&server, 30);
}

#[test]
fn a_link_to_a_file_elsewhere_is_followed() {
    let launch = Launch::serve(&["--rules", "here/rules.toml"]);
    let (here, there) = (launch.folder().join("here"), launch.folder().join("there"));
    fs::create_dir_all(&here).unwrap();
    fs::create_dir_all(&there).unwrap();
    fs::write(there.join("rules.toml"), rules(10)).unwrap();
    symlink("../there/rules.toml", here.join("rules.toml")).unwrap();
    let server = launch.start();
    // Nothing changes in the watched folder.
    fs::write(there.join("rules.toml"), rules(20)).unwrap();
    wait_for_limit(&server, 20);
}

#[test]
fn a_hangup_reloads() {
    let server = start();
    server.signal("HUP");
    let reloaded = server.wait_for_log("rules reloaded");
    assert_eq!(reloaded["version"], 2, "as asked, though nothing has changed");
    assert_eq!(limit(&server), 10);
}

#[test]
fn a_hangup_does_not_end_a_service_without_a_file() {
    let server = Server::start(&["--rules-source", "file"]);
    server.signal("HUP");
    server.wait_for_log("the starter rules are in force: there is no file to reload");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn text_of_a_file_cannot_control_a_terminal() {
    let wrong = "[[rule]]\nkey_pattern = \"user:{user_id\u{9b}31m\u{202e}\"\nrate_per_second = 1\n";
    for format in ["text", "json"] {
        let launch = Launch::serve(&["--rules", "rules.toml", "--log-format", format]);
        let launch = launch.file("rules.toml", &rules(10));
        let path = launch.folder().join("rules.toml");
        let server = launch.start();
        replace(&path, wrong);
        server.wait_for_line(|line| line.contains("not reloaded"));
        server.signal("TERM");
        let stderr = server.wait().stderr;
        let is_active = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!stderr.contains(is_active), "{stderr:?}");
    }
}
