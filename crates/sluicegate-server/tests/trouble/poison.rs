//! T35: invalid rules, written by hand past the constraints. The whole set is rejected, the last valid one stays in
//! force, the reason is reported, and correcting the rows is enough.

use serde_json::{Value, json};
use sluicegate_server::data::Role;
use sluicegate_tests::seed::Seed;

use crate::common::{Server, eventually, now};
use crate::trouble::load::Load;
use crate::trouble::place::{BY_IP, Place};
use crate::trouble::support::{ask, check, count, limit_of_ip, metric, ms, report, soon};

/// No lockout, as the tests repeat wrong tokens, and a long timeout, as ten thousand rules take a while to load.
const SETTINGS: [&str; 4] =
    ["--admin-failures-per-minute", "100000", "--database-timeout-ms", "10000"];

/// Name of each fault, the SQL that writes it past the constraints, and the text that must report it.
fn poisons(place: &Place) -> Vec<(&'static str, String, &'static str)> {
    let update = |set: &str| format!("UPDATE rate_limit_rules SET {set} WHERE rule_id = {BY_IP}");
    let numbers = match place {
        Place::Sqlite(_) => {
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 10001)"
        }
        Place::Postgres { .. } => "WITH n(n) AS (SELECT * FROM generate_series(1, 10001))",
    };
    let many = format!(
        "{numbers} INSERT INTO rate_limit_rules (rule_id, key_pattern, scope, tokens, period, burst_capacity) \
         SELECT 1000 + n, 'many' || n, 'global', 1, 1000000, 1 FROM n"
    );
    vec![
        ("a pattern that does not end", update("key_pattern = 'ip:{ip'"), "key_pattern"),
        ("a pattern without a name", update("key_pattern = 'ip:{}'"), "key_pattern"),
        ("a number for a glob", update(r#"conditions = '{"endpoint": 5}'"#), "conditions"),
        ("a wait that no queue has", update("max_wait = 1000000"), "max_wait"),
        ("too many rules", many, "10000"),
    ]
}

fn poisoned(place: &Place) {
    let name = format!("T35 on {}", place.dialect());
    let seed = Seed::announce(&name);
    let (keeper, thief) =
        (place.make_token("keeper", Role::Admin), place.make_token("thief", Role::Admin));
    let server = place.launch(&SETTINGS).start();
    let status = |token: &str| ask(&server, "GET", "/v1/stats", Some(token), &Value::Null).status;
    eventually("tokens", || (status(&thief) == 200).then_some(()));
    let all = poisons(place);
    let lends = json!({"rule_id": 101, "subject": "rich", "unlimited": true, "expires_in": 4});
    assert_eq!(ask(&server, "POST", "/v1/overrides", Some(&keeper), &lends).status, 201);
    let is_rich = || check(&server, &json!({"user_id": "rich", "cost": 0}))["tiers"] == json!([]);
    let load = Load::start(&server, false);
    let mut longest = std::time::Duration::ZERO;
    let mut taken = 0;
    for (round, (what, poison, said)) in all.iter().enumerate() {
        let generation = metric(&server, "rules_generation");
        if let Err(error) = place.try_sql(poison) {
            println!("{name}: {what}: the database itself refuses it: {error}");
            continue;
        }
        taken += 1;
        let took = soon(what, now(), || ready(&server, &keeper).contains("are invalid"));
        longest = longest.max(took);
        reports_fault(&server, &keeper, what, said);
        assert_eq!(metric(&server, "rules_generation"), generation, "{what}");
        assert_eq!(limit_of_ip(&server), Some(2 + round as u64), "{what}");
        // Other changes do not put the invalid rules in force, but a revoked token is revoked.
        if round == 0 {
            place.revoke_token("thief");
            soon("a token revoked among bad rules", now(), || status(&thief) == 401);
            // The snapshot file follows too, although the rules in it are older.
            eventually("a snapshot file without it", || {
                let text =
                    std::fs::read_to_string(server.folder().join("sluicegate.snapshot.json"));
                let text = text.unwrap();
                (text.contains("keeper") && !text.contains("thief")).then_some(())
            });
            // The expiry of an override does not bring back the token.
            eventually("the end of an override", || (!is_rich()).then_some(()));
            assert_eq!((status(&thief), status(&keeper)), (401, 200));
            assert_eq!(limit_of_ip(&server), Some(2));
            reports_fault(&server, &keeper, what, said);
        }
        place.sql(&format!(
            "DELETE FROM rate_limit_rules; \
             INSERT INTO rate_limit_rules (rule_id, key_pattern, scope, tokens, period, burst_capacity) VALUES \
             (101, 'user:{{user_id}}', 'user', 1, 86400000000, 3), \
             ({BY_IP}, 'ip:{{ip}}', 'ip', 1, 86400000000, {})",
            3 + round
        ));
        let mended = now();
        let took = soon("mended rules", mended, || limit_of_ip(&server) == Some(3 + round as u64));
        longest = longest.max(took);
        soon("peace", mended, || !ready(&server, &keeper).contains("are invalid"));
        assert_eq!(refused(&server, &keeper), None, "{what}");
    }
    load.stop();
    assert!(taken >= 3, "VACUOUS: only {taken} of {} poisons were taken", all.len());
    assert_eq!(count(&server, "panics_total"), 0);
    let measured = format!("refused, and mended again, in {} at most", ms(longest));
    report(&name, &seed, format_args!("{taken} poisons"), measured);
}

/// Reason why the rules are rejected, from the API.
fn refused(server: &Server, token: &str) -> Option<String> {
    let list = ask(server, "GET", "/v1/rules?limit=1", Some(token), &Value::Null);
    match list.status {
        200 => list.json()["refused"].as_str().map(Into::into),
        // The row cannot be shown.
        409 => list.json()["detail"].as_str().map(Into::into),
        _ => panic!("{list:?}"),
    }
}

/// Verbose answer of `/readyz`, which must be 200.
fn ready(server: &Server, token: &str) -> String {
    let ready = ask(server, "GET", "/readyz?verbose", Some(token), &Value::Null);
    assert_eq!(ready.status, 200, "{ready:?}");
    ready.body
}

/// Asserts that readiness, API and log report the fault.
fn reports_fault(server: &Server, token: &str, what: &str, said: &str) {
    let ready = ready(server, token);
    assert!(ready.contains("are invalid") && ready.contains(said), "{what}: {ready}");
    let why = refused(server, token).unwrap_or_default();
    assert!(why.contains(said), "{what}: {why}");
    eventually("a line of the log", || {
        let log = server.wait_for_logs("rules rejected: the last valid ones stay in force", 1);
        log.iter().any(|line| line["report"].as_str().unwrap().contains(said)).then_some(())
    });
}

#[test]
fn t35_poison_in_sqlite() {
    poisoned(&Place::sqlite());
}

#[test]
fn t35_poison_in_postgres() {
    poisoned(&Place::postgres());
}
