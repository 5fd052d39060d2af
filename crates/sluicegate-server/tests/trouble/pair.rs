//! Two services on one database: a change through one of them, or by hand, is soon in force on both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_server::data::Role;
use sluicegate_tests::seed::Seed;

use crate::common::{Server, eventually, now, pause};
use crate::trouble::place::{BY_USER, Place};
use crate::trouble::support::{
    Stop, ask, check, count, fired, is_blocked, limit_of_ip, metric, ms, report, soon,
};

/// SQL that terminates the connections listening for notifications.
const END_LISTENERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                             WHERE datname = current_database() AND query LIKE 'LISTEN%'";

/// Makes every kind of change through `one`, waits for each on `other`, and returns the longest wait.
fn every_change(place: &Place, one: &Server, other: &Server, round: usize) -> Duration {
    let mut longest = Duration::ZERO;
    let mut wait = |what: &str, is_so: &dyn Fn() -> bool| {
        longest = longest.max(soon(what, now(), is_so));
    };
    let pattern = format!("new{round}:{{tenant}}");
    let tenant = json!({"attributes": {"tenant": "t"}, "cost": 0});
    let limit = || check(other, &tenant)["limit"].as_u64();
    assert_eq!(limit(), None);

    let rule = json!({"key_pattern": pattern, "tokens": 1, "period": "1d", "burst_capacity": 4});
    let made = ask(one, "POST", "/v1/rules", None, &rule);
    assert_eq!(made.status, 201, "{made:?}");
    wait("a rule", &|| limit() == Some(4));
    let rule = format!("/v1/rules/{}", made.json()["rule_id"]);
    let patch = json!({"burst_capacity": 9});
    assert_eq!(ask(one, "PATCH", &rule, None, &patch).status, 200);
    wait("a changed rule", &|| limit() == Some(9));

    let block = json!({"rule_id": BY_USER, "subject": "pair", "blocked": true});
    let made = ask(one, "POST", "/v1/overrides", None, &block);
    assert_eq!(made.status, 201, "{made:?}");
    wait("an override", &|| is_blocked(other, "pair"));
    let made = format!("/v1/overrides/{}", made.json()["override_id"]);
    assert_eq!(ask(one, "DELETE", &made, None, &Value::Null).status, 204);
    wait("the end of an override", &|| !is_blocked(other, "pair"));

    assert_eq!(ask(one, "DELETE", &rule, None, &Value::Null).status, 204);
    wait("a deletion", &|| limit().is_none());
    let capacity = 20 + round as u64;
    place.set_by_ip(capacity);
    wait("a change by hand", &|| limit_of_ip(other) == Some(capacity));
    wait("the same here", &|| limit_of_ip(one) == Some(capacity));

    let token = place.make_token("pair", Role::Read);
    let asks = |token: Option<&str>| ask(other, "GET", "/v1/rules", token, &Value::Null).status;
    wait("a token", &|| asks(Some(&token)) == 200 && asks(None) == 401);
    place.revoke_token("pair");
    // While no token exists, none is needed.
    wait("the end of a token", &|| asks(None) == 200);
    eventually("the same generation everywhere", || {
        let generation = place.generation();
        let is_it = |server| metric(server, "rules_generation") as u64 == generation;
        (is_it(one) && is_it(other)).then_some(())
    });
    longest
}

fn rounds(name: &str, place: &Place) -> Duration {
    let start = || place.launch(&[]).start();
    let (one, other) = (start(), start());
    let longest = every_change(place, &one, &other, 0).max(every_change(place, &other, &one, 1));
    for server in [&one, &other] {
        assert_eq!(count(server, "database_up"), 1, "{name}");
        assert_eq!(count(server, "panics_total"), 0, "{name}");
    }
    longest
}

fn two_of_them(place: &Place) {
    let name = format!("two services on {}", place.dialect());
    let seed = Seed::announce(&name);
    let longest = rounds(&name, place);
    report(&name, &seed, "none", format_args!("18 changes, in force in {} at most", ms(longest)));
}

#[test]
fn two_services_on_sqlite() {
    two_of_them(&Place::sqlite());
}

#[test]
fn two_services_on_postgres() {
    two_of_them(&Place::postgres());
}

/// Listening connections are terminated repeatedly; a service polls after each reconnection.
#[test]
fn two_services_on_postgres_that_are_cut_off() {
    let name = "two services whose listeners are ended";
    let seed = Seed::announce(name);
    let place = Place::postgres();
    let (stop, ended) = (AtomicBool::new(false), AtomicU64::new(0));
    let longest = thread::scope(|scope| {
        scope.spawn(|| {
            let mut hand = place.hand();
            while !stop.load(Ordering::Relaxed) {
                ended.fetch_add(hand.number(END_LISTENERS), Ordering::Relaxed);
                pause(Duration::from_millis(100));
            }
        });
        let _stop = Stop(&stop);
        rounds(name, &place)
    });
    let ended = ended.into_inner();
    fired("a listener that was ended", ended);
    let fault = format!("{ended} listeners ended");
    report(name, &seed, fault, format_args!("18 changes, in force in {} at most", ms(longest)));
}

/// No notifications arrive: polling every second is enough.
#[test]
fn two_services_on_postgres_without_notifications() {
    let name = "two services that are told nothing";
    let seed = Seed::announce(name);
    let place = Place::postgres();
    place.sql(
        "CREATE OR REPLACE FUNCTION rate_limit_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE rate_limit_generation SET generation = generation + 1; RETURN NULL; END $$",
    );
    let longest = rounds(name, &place);
    // With notifications every one of the eighteen changes would take a few milliseconds.
    fired("a change that had to be looked for", (longest.as_millis() / 200) as u64);
    let fault = "no notifications";
    report(name, &seed, fault, format_args!("18 changes, in force in {} at most", ms(longest)));
}
