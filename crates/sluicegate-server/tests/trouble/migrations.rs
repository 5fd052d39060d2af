//! T37: another version migrates the database under a running service. The service continues and catches up.

use serde_json::{Value, json};
use sluicegate_tests::seed::Seed;

use crate::common::{Launch, Server, eventually, now};
use crate::trouble::load::{ENEMY, Load};
use crate::trouble::place::{BY_USER, Place};
use crate::trouble::support::{
    ask, check, count, is_blocked, limit_of_ip, metric, ms, report, soon,
};

fn migrate(place: &Place, arguments: &[&str]) {
    let done = Launch::new(&["migrate", "--database", &place.url()]).args(arguments).run();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

fn block_enemy(server: &Server) {
    let block = json!({"rule_id": BY_USER, "subject": ENEMY, "blocked": true});
    let made = ask(server, "POST", "/v1/overrides", None, &block);
    assert_eq!(made.status, 201, "{made:?}");
}

/// A running service and one that starts both work on a database that a newer version has migrated.
fn beside_a_newer_one(place: &Place) {
    let name = format!("T37 beside a newer version on {}", place.dialect());
    let seed = Seed::announce(&name);
    let running = place.launch(&[]).start();
    block_enemy(&running);
    let load = Load::start(&running, true);
    let applied_at = match place {
        Place::Sqlite(_) => "0",
        Place::Postgres { .. } => "now()",
    };
    place.sql(&format!(
        "INSERT INTO rate_limit_migrations (version, description, applied_at) \
             VALUES (99, 'of the future', {applied_at}); \
         ALTER TABLE rate_limit_rules ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'; \
         ALTER TABLE rate_limit_overrides ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'; \
         ALTER TABLE rate_limit_violations ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'; \
         CREATE TABLE rate_limit_colours (colour TEXT PRIMARY KEY)"
    ));
    let started = place.launch(&[]).start();
    let mut longest = std::time::Duration::ZERO;
    for (server, capacity) in [(&running, 11), (&started, 12)] {
        place.set_by_ip(capacity);
        longest = longest.max(soon("a change", now(), || limit_of_ip(server) == Some(capacity)));
        assert!(is_blocked(server, ENEMY));
        let rule =
            json!({"key_pattern": format!("c{capacity}:{{colour}}"), "tokens": 1, "period": 1});
        let made = ask(server, "POST", "/v1/rules", None, &rule);
        assert_eq!(made.status, 201, "{made:?}");
        let made = format!("/v1/rules/{}", made.json()["rule_id"]);
        assert_eq!(ask(server, "DELETE", &made, None, &Value::Null).status, 204);
        // Violations can still be written.
        assert_eq!(check(server, &json!({"user_id": "many", "cost": 9}))["allowed"], false);
        eventually("a violation on record", || {
            (count(server, "violations_written_total") > 0).then_some(())
        });
        assert_eq!(count(server, "violations_write_errors_total"), 0);
    }
    load.stop();
    let taken_back =
        Launch::new(&["migrate", "--database", &place.url(), "--down-to", "1", "--yes"]);
    let taken_back = taken_back.run();
    assert!(taken_back.code.is_some_and(|code| code != 0), "{}", taken_back.stderr);
    assert!(taken_back.stderr.contains("99"), "{}", taken_back.stderr);
    let fault = "a migration and columns of a newer version";
    report(&name, &seed, fault, format_args!("changes in force in {} at most", ms(longest)));
}

/// Migrates down and up again under a running service, which keeps its rules and then loads the current ones.
fn down_and_up(place: &Place) {
    let name = format!("T37 down and up on {}", place.dialect());
    let seed = Seed::announce(&name);
    let server = place.launch(&[]).start();
    block_enemy(&server);
    let load = Load::start(&server, true);
    assert_eq!(check(&server, &json!({"user_id": "early", "cost": 9}))["allowed"], false);
    eventually("a violation on record", || {
        (count(&server, "violations_written_total") > 0).then_some(())
    });
    migrate(place, &["--down-to", "1", "--yes"]);
    eventually("it to be noticed", || {
        let ready = server.get("/readyz?verbose").body;
        (ready.contains("does not answer") || ready.contains("invalid row")).then_some(())
    });
    // Overrides and rules stay in force.
    assert!(is_blocked(&server, ENEMY));
    assert_eq!(limit_of_ip(&server), Some(2));
    load.stop();
    migrate(place, &[]);
    let up = now();
    let took = soon("what is left", up, || !is_blocked(&server, ENEMY));
    assert_eq!(limit_of_ip(&server), Some(2));
    place.set_by_ip(5);
    soon("a change", now(), || limit_of_ip(&server) == Some(5));
    eventually("peace", || {
        let ready = server.get("/readyz?verbose").body;
        let is_quiet = !ready.contains("does not answer") && !ready.contains("invalid row");
        (is_quiet && metric(&server, "database_up") == 1.0).then_some(())
    });
    block_enemy(&server);
    assert!(is_blocked(&server, ENEMY));
    // Down to nothing: the result is a new database with its default rules and another generation.
    let generation = place.generation();
    migrate(place, &["--down-to", "0", "--yes"]);
    assert!(is_blocked(&server, ENEMY));
    migrate(place, &[]);
    assert_ne!(place.generation(), generation);
    soon("the starter rules", now(), || limit_of_ip(&server) == Some(200));
    assert_eq!(count(&server, "panics_total"), 0);
    assert_eq!(
        check(&server, &json!({"user_id": "late", "plan": "free", "cost": 99}))["allowed"],
        false
    );
    eventually("violations to be written again", || {
        (place.number("SELECT count(*) FROM rate_limit_violations WHERE user_id = 'late'") == 1)
            .then_some(())
    });
    report(&name, &seed, "down to 1, up, down to 0, up", format_args!("caught up in {}", ms(took)));
}

#[test]
fn t37_beside_a_newer_version_on_sqlite() {
    beside_a_newer_one(&Place::sqlite());
}

#[test]
fn t37_beside_a_newer_version_on_postgres() {
    beside_a_newer_one(&Place::postgres());
}

#[test]
fn t37_down_and_up_on_sqlite() {
    down_and_up(&Place::sqlite());
}

#[test]
fn t37_down_and_up_on_postgres() {
    down_and_up(&Place::postgres());
}
