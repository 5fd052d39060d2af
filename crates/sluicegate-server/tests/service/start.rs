//! Startup, and its errors.

use std::net::TcpListener;
use std::path::PathBuf;

use sluicegate::RuleSet;
use sluicegate_server::config::{Address, Door, StoreUrl, UnixAddress};
use sluicegate_server::source::RulesSource;
use sluicegate_server::startup::{Announced, Startup};

use crate::common::{Launch, Server};

#[test]
fn it_starts_on_a_free_port_and_says_which() {
    let server = Server::start(&[]);
    assert_ne!(server.address.port(), 0);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.get("/livez").status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    let starting = server.wait_for_log("starting");
    assert_eq!(starting["rules_source"], "sqlite:sluicegate.db");
    assert_eq!(starting["rules"], 9);
    assert_eq!(starting["store"], "memory:");
}

#[test]
fn every_line_of_the_log_is_json_and_standard_output_is_left_alone() {
    let server = Server::start(&[]);
    server.signal("TERM");
    let finished = server.wait();
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.stdout, "");
    assert!(finished.stderr.lines().count() >= 4);
    for line in finished.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["timestamp"].is_string() && line["level"].is_string());
    }
}

#[test]
fn a_taken_port_is_exit_code_3() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = Launch::serve(&["--listen-http", &address]).run();
    assert_eq!(finished.code, Some(3));
    let said = format!(
        "error: cannot listen on {address}: address already in use\n  = help: another process \
         listens there: stop it, or choose another address with --listen-http\n"
    );
    assert!(finished.stderr.ends_with(&said), "{}", finished.stderr);
}

#[test]
fn an_address_that_this_machine_does_not_have_is_exit_code_3() {
    let settings = ["--listen-http", "203.0.113.9:80", "--listen-anonymous", "true"];
    let launch = Launch::serve(&settings);
    let finished = launch.env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple").run();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains("cannot listen on 203.0.113.9:80"), "{}", finished.stderr);
}

#[test]
fn a_port_can_be_taken_again_at_once() {
    let first = Server::start(&[]);
    let address = first.address.to_string();
    // A connection of the first process that is still closing must not block the port.
    let mut client = first.connect();
    client.request("GET", "/livez", &[], b"").unwrap();
    drop(first);
    let second = Launch::serve(&["--listen-http", &address]).start();
    assert_eq!(second.address.to_string(), address);
    assert_eq!(second.get("/livez").status, 200);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let version = Launch::new(&["--version"]).run();
    assert_eq!(version.code, Some(0));
    assert_eq!(version.stdout, format!("sluicegate {}\n", env!("CARGO_PKG_VERSION")));
    let help = Launch::new(&["serve", "--help"]).run();
    assert_eq!(help.code, Some(0));
    for said in ["--rules", "SLUICEGATE_LISTEN_HTTP", "127.0.0.1:8080]", "Examples:"] {
        assert!(help.stdout.contains(said), "{said} in {}", help.stdout);
    }
    assert!(!help.stdout.contains("--admin-token"), "other processes can read flags");
}

#[test]
fn wrong_arguments_are_exit_code_2() {
    for arguments in [&[][..], &["srve"], &["serve", "--listen-htp", "x"], &["serve", "--rules"]] {
        let finished = Launch::new(arguments).run();
        assert_eq!(finished.code, Some(2), "{arguments:?}");
        assert_eq!(finished.stdout, "");
        assert!(!finished.stderr.is_empty());
    }
    let finished = Launch::new(&["serve", "--listen-htp", "x"]).run();
    assert!(finished.stderr.contains("--listen-http"), "{}", finished.stderr);
}

/// Path and body of a curl command.
fn request_of(line: &str) -> (String, String) {
    let url = line.split(' ').find(|word| word.starts_with("http://")).unwrap();
    let path = url.splitn(4, '/').nth(3).unwrap();
    let body = line.split("-d '").nth(1).unwrap().split('\'').next().unwrap();
    (format!("/{path}"), body.to_owned())
}

fn the_message_tells_the_truth(server: &Server, source: &RulesSource, rules: &RuleSet) {
    let address = Address::Tcp(server.address);
    let http = Announced {
        door: Door::Http,
        address: &address,
        is_tls: false,
        has_health: true,
        has_metrics: true,
    };
    let listeners = [http];
    let startup = Startup {
        listeners: &listeners,
        source,
        rules,
        store: &StoreUrl::Memory,
        max_buckets: 1_000_000,
        has_token: false,
    };
    let over_tls = [Announced { is_tls: true, ..http }];
    let over_tls = Startup { listeners: &over_tls, ..startup }.message();
    assert!(over_tls.contains(&format!("serves https://{}", server.address)), "{over_tls}");
    let socket = UnixAddress { path: "/run/s.sock".into(), mode: 0o600, group: None };
    let on_socket = [Announced { address: &Address::Unix(socket), ..http }];
    let on_socket = Startup { listeners: &on_socket, ..startup }.message();
    assert!(on_socket.contains("serves HTTP on unix:/run/s.sock\n"), "{on_socket}");
    assert!(
        on_socket.contains("curl -s --unix-socket /run/s.sock http://localhost/v1/"),
        "{on_socket}"
    );
    let message = startup.message();
    let lines: Vec<_> = message.lines().filter(|line| line.contains("curl")).collect();
    let [once, six_times] = lines[..] else { panic!("two lines to try in {message}") };
    assert!(six_times.trim_start().starts_with("for i in 1 2 3 4 5 6; do curl "), "{message}");

    let (path, body) = request_of(once);
    assert_eq!(request_of(six_times), (path.clone(), body.clone()));
    let answer = server.post_json(&path, &body).json();
    assert_eq!(answer["allowed"], true, "{answer}");
    let answers: Vec<_> = (0..6).map(|_| server.post_json(&path, &body).json()).collect();
    assert_eq!(answers[0]["allowed"], true, "{answers:?}");
    assert_eq!(answers[5]["allowed"], false, "{answers:?}");
    assert!(answers[5]["retry_after_ms"].as_u64().unwrap() > 0, "{answers:?}");
}

#[test]
fn the_start_up_message_tells_the_truth_about_the_starter_rules() {
    let starter = RuleSet::starter();
    the_message_tells_the_truth(&Server::start(&[]), &RulesSource::Starter, &starter);
}

#[test]
fn the_start_up_message_tells_the_truth_about_other_rules() {
    let rules = "[[rule]]\nkey_pattern = \"global\"\nrate_per_second = 1000\n";
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", rules).start();
    let other = RuleSet::from_toml("rules.toml", rules).unwrap();
    let source = RulesSource::File(PathBuf::from("rules.toml"));
    the_message_tells_the_truth(&server, &source, &other);
}
