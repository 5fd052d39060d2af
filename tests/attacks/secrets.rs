//! Secrets of the operator in logs, answers and help.

use tonic::Request;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::common::{Client, Finished, Launch, Server};

/// Part of every secret in this suite: no output may contain it.
const CANARY: &str = "canary-7f3a9c01d2";

/// Levels that report more than errors, the last with all modules of all libraries.
const LEVELS: [&str; 4] = ["info", "debug", "trace", "trace,sqlx=trace,hyper=trace,h2=trace"];

/// Service with every kind of secret, whose store and database are down: errors tell most.
fn launch(level: &str) -> Launch {
    let rules = "[[rule]]\nrule_id = 1\nkey_pattern = \"ip:{ip}\"\ntokens = 1\nperiod = \"1d\"\n";
    Launch::serve(&["--rules", "r.toml", "--log-level", level, "--database-timeout-ms", "200"])
        .args(&["--audit-privacy", "hashed", "--store-budget-ms", "50"])
        .file("r.toml", rules)
        .with_grpc()
        .with_resp()
        .env("SLUICEGATE_ADMIN_TOKEN", &format!("admin-{CANARY}"))
        .env("SLUICEGATE_RESP_PASSWORD", &format!("resp-{CANARY}"))
        .env("SLUICEGATE_AUDIT_PRIVACY_KEY", &format!("privacy-{CANARY}"))
        .env("SLUICEGATE_STORE_URL", &format!("redis://me:store-{CANARY}@127.0.0.1:1/0"))
        .env("SLUICEGATE_DATABASE_URL", &format!("postgres://me:db-{CANARY}@127.0.0.1:1/x"))
}

/// Sends a request over HTTP/2 with a token.
fn over_http_2(server: &Server, listener: &str) {
    let address = server.address_of(listener);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap();
        let mut request = Request::new(HealthCheckRequest::default());
        let bearer = format!("Bearer admin-{CANARY}");
        request.metadata_mut().insert("authorization", bearer.parse().unwrap());
        // Only the request matters: the HTTP listener has no such path.
        let _ = HealthClient::new(endpoint.connect().await.unwrap()).check(request).await;
    });
}

/// Uses every secret, right and wrong, and returns all answers.
fn use_secrets(server: &Server) -> String {
    let mut seen = String::new();
    let right = format!("Bearer admin-{CANARY}");
    // Another token with a typing error, and a password in place of a token.
    let wrong = [format!("Bearer admin-{CANARY}x"), format!("Basic resp-{CANARY}")];
    for bearer in wrong.iter().chain([&right]) {
        for path in ["/v1/rules", "/v1/violations", "/readyz?verbose", "/v1/stats", "/nowhere"] {
            let answer = server.request("GET", path, &[("authorization", bearer)], "");
            seen += &format!("{answer:?}\n");
        }
    }
    for path in [format!("/v1/rules?token={CANARY}"), format!("/{CANARY}?access_token={CANARY}")] {
        server.get(&path);
    }
    for path in ["/metrics", "/openapi.json", "/readyz?verbose", "/livez", "/"] {
        seen += &format!("{:?}\n", server.get(path));
    }
    seen += &format!("{:?}\n", server.post_json("/v1/check", "{\"ip\": \"203.0.113.9\"}"));
    let mut redis = Client::connect(server.address_of("resp")).unwrap();
    let commands = format!(
        "AUTH wrong-{CANARY}\r\nAUTH me resp-{CANARY}\r\nHELLO 3 AUTH default no-{CANARY}\r\nAUTH resp-{CANARY}\r\n\
         SG.CHECK ip 203.0.113.9\r\nCONFIG GET requirepass\r\nCLIENT LIST\r\nACL LIST\r\nQUIT\r\n"
    );
    redis.send(commands.as_bytes()).unwrap();
    seen += &redis.read_to_end();
    over_http_2(server, "http");
    over_http_2(server, "grpc");
    seen
}

fn assert_silent(what: &str, finished: &Finished) {
    for output in [&finished.stdout, &finished.stderr] {
        let line = output.lines().find(|line| line.contains(CANARY));
        assert_eq!(line, None, "{what}");
    }
}

#[test]
fn no_secret_is_in_a_log_or_an_answer_at_any_level() {
    for level in LEVELS {
        let server = launch(level).start();
        let seen = use_secrets(&server);
        assert!(!seen.contains(CANARY), "{level}: {seen}");
        server.signal("HUP");
        server.signal("TERM");
        let finished = server.wait();
        eprintln!("{level}: {} lines of the log without a secret", finished.stderr.lines().count());
        assert_silent(level, &finished);
    }
}

#[test]
fn no_secret_is_in_the_settings_or_in_help() {
    assert_silent("--check-config", &launch("info").args(&["--check-config"]).run());
    let commands = [
        &["serve", "--help"][..],
        &["--help"],
        &["help", "serve"],
        &["rules", "--help"],
        &["rules", "list", "--help"],
        &["tokens", "--help"],
        &["tokens", "create", "--help"],
        &["violations", "--help"],
        &["buckets", "--help"],
        &["check", "--help"],
        &["completions", "bash"],
        &["man"],
        &["rules", "list", "--server", "http://127.0.0.1:1"],
        &["rules", "list", "--database"],
        &["tokens", "list"],
        &["tokens", "list", "--no-such-flag"],
    ];
    for arguments in commands {
        let finished = Launch::new(arguments)
            .env("SLUICEGATE_ADMIN_TOKEN", &format!("admin-{CANARY}"))
            .env("SLUICEGATE_TOKEN", &format!("token-{CANARY}"))
            .env("SLUICEGATE_RESP_PASSWORD", &format!("resp-{CANARY}"))
            .env("SLUICEGATE_STORE_URL", &format!("redis://me:store-{CANARY}@127.0.0.1:1/0"))
            .env("SLUICEGATE_DATABASE_URL", &format!("postgres://me:db-{CANARY}@127.0.0.1:1/x"))
            .run();
        assert_silent(&arguments.join(" "), &finished);
    }
    // Secrets have no flags, because every user of the machine can read the arguments of a process.
    let help = Launch::new(&["serve", "--help"]).run().stdout;
    for flag in ["--admin-token", "--resp-password", "--audit-privacy-key"] {
        assert!(!help.contains(flag), "{flag}");
    }
}
