//! T34: a thousand rules replaced five times a second, under load. Every verdict is by exactly one set, and no tokens
//! are given away: spent tokens stay spent, up to the smaller capacity.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::seed::Seed;

use crate::common::{Client, Server, eventually, now, pause};
use crate::trouble::place::Place;
use crate::trouble::support::{Stop, count, fired, ms, report, sized};

/// Number of rules in a set, without the two below.
const RULES: u64 = 1000;
/// Rule that is equal in both sets.
const FIXED: u64 = RULES + 1;
/// Rule whose rate differs between the sets.
const SLOWED: u64 = RULES + 2;
/// Capacity of the buckets of these two.
const HELD: u64 = 50;
/// Number of endpoints: ten of the rules apply to each.
const ENDPOINTS: u64 = 100;
/// Capacity of the other rules' buckets in each set.
const CAPACITIES: [u64; 2] = [100, 200];
/// Days per token of the slowed rule in each set.
const DAYS: [u64; 2] = [1, 3];
/// Kinds of users, by endpoint: `e7` depends on the set, the others must not.
const KINDS: [&str; 3] = ["e7", "fixed", "slowed"];
/// Users of each kind.
const USERS: u64 = 2;
/// Number of client connections.
const CONNECTIONS: u64 = 2;
const EVERY: Duration = Duration::from_millis(200);
/// Minimum number of swaps: on a slow machine the test runs longer to reach it.
const SWAPS_MIN: u64 = 6;

/// Results of one connection.
#[derive(Default)]
struct Seen {
    /// Number of verdicts by each set.
    verdicts: [u64; 2],
    /// Number of verdicts by another set than the verdict before.
    turns: u64,
    /// Number of requests granted to each user.
    granted: BTreeMap<String, u64>,
    took: Vec<Duration>,
}

fn rules(set: usize) -> Vec<Value> {
    let rule = |rule_id: u64, endpoint: &str, capacity: u64, days: u64| {
        json!({
            "rule_id": rule_id, "key_pattern": format!("r{rule_id}:{{user_id}}"), "tokens": 1,
            "period": format!("{days}d"), "burst_capacity": capacity, "conditions": {"endpoint": endpoint},
        })
    };
    let of_many = |n| rule(n, &format!("/e{}", n % ENDPOINTS), CAPACITIES[set], 1);
    let of_two = [rule(FIXED, "/fixed", HELD, 1), rule(SLOWED, "/slowed", HELD, DAYS[set])];
    (1..=RULES).map(of_many).chain(of_two).collect()
}

fn put(server: &Server, body: &str) {
    let headers = [("content-type", "application/json")];
    let done = server.request("PUT", "/v1/rules", &headers, body);
    assert_eq!(done.status, 200, "{done:?}");
}

fn bodies() -> [String; 2] {
    [0, 1].map(|set| json!({"rules": rules(set)}).to_string())
}

/// Runs the test with `swap`, which puts the given set in force.
fn replaced(name: &str, place: &Place, swap: impl FnMut(&Server, usize) + Send) {
    let seed = Seed::announce(name);
    let server = place.launch(&["--database-timeout-ms", "20000"]).start();
    put(&server, &bodies()[0]);
    let base = ask_for(&server, Duration::from_millis(1000), &seed, || true);
    let version = count(&server, "rules_version");
    let (mut swap, mut swaps) = (swap, 0_u64);
    let lasts = Duration::from_secs(sized(4, 60));
    let mut seen = ask_for(&server, lasts, &seed, || {
        let started = now();
        swaps += 1;
        swap(&server, usize::from(swaps % 2 == 1));
        pause(EVERY.saturating_sub(now() - started));
        swaps >= SWAPS_MIN
    });
    let sets = count(&server, "rules_version") - version;
    fired("a set that was replaced", sets / 3);
    for (mut seen_of_base, position) in base.into_iter().zip(0..) {
        seen[position].took.sort_unstable();
        seen_of_base.took.sort_unstable();
        for (user, granted) in seen_of_base.granted {
            *seen[position].granted.entry(user).or_default() += granted;
        }
        let at = |took: &[Duration], of_hundred: usize| took[took.len() * of_hundred / 100];
        let (before, during) = (&seen_of_base.took, &seen[position].took);
        println!(
            "{name}: connection {position}: p50 {} p99 {} before, p50 {} p99 {} during",
            ms(at(before, 50)),
            ms(at(before, 99)),
            ms(at(during, 50)),
            ms(at(during, 99))
        );
    }
    let turns: u64 = seen.iter().map(|seen| seen.turns).sum();
    fired("a verdict by another set than the one before", turns / 3);
    let verdicts: Vec<_> = seen.iter().map(|seen| seen.verdicts).collect();
    nothing_for_free(&server, &seen, swaps.div_ceil(2));
    let measured = format!("0 mixed of {verdicts:?} verdicts by one set and the other");
    report(
        name,
        &seed,
        format_args!("{swaps} swaps, {sets} sets in force, {turns} turns"),
        measured,
    );
    assert_eq!(count(&server, "panics_total"), 0);
}

/// Sends checks for at least `lasts` while repeating `meanwhile`, until `meanwhile` returns true.
fn ask_for(
    server: &Server,
    lasts: Duration,
    seed: &Seed,
    mut meanwhile: impl FnMut() -> bool,
) -> Vec<Seen> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let (stop, seed) = (&stop, Seed::new(seed.seed() ^ number));
                scope.spawn(move || ask_until(server.connect(), seed, stop))
            })
            .collect();
        let (stopping, until) = (Stop(&stop), now() + lasts);
        while !meanwhile() || now() < until {
            pause(Duration::from_millis(1));
        }
        drop(stopping);
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    })
}

fn ask_until(mut client: Client, mut seed: Seed, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut last = None;
    while !stop.load(Ordering::Relaxed) {
        let user = seed.below(USERS);
        let look = json!({"user_id": "looks", "endpoint": format!("/e{}", seed.below(ENDPOINTS)), "cost": 0});
        let set = set_of(&check(&mut client, &look, &mut seen));
        seen.verdicts[set] += 1;
        seen.turns += u64::from(last.is_some_and(|last| last != set));
        last = Some(set);
        for kind in KINDS {
            let (endpoint, user) = (format!("/{kind}"), format!("{kind}{user}"));
            let request = json!({"user_id": user, "endpoint": endpoint});
            let verdict = check(&mut client, &request, &mut seen);
            if kind == "e7" {
                set_of(&verdict);
            }
            *seen.granted.entry(user).or_default() += u64::from(verdict["allowed"] == true);
        }
    }
    seen
}

/// Index of the set that a verdict is by. Panics if its rules are of both sets.
fn set_of(verdict: &Value) -> usize {
    let tiers = verdict["tiers"].as_array().unwrap();
    assert_eq!(tiers.len() as u64, RULES / ENDPOINTS, "{verdict}");
    let limit = &tiers[0]["limit"];
    assert!(tiers.iter().all(|tier| tier["limit"] == *limit), "MIXED: {verdict}");
    CAPACITIES.iter().position(|capacity| json!(capacity) == *limit).unwrap()
}

fn check(client: &mut Client, request: &Value, seen: &mut Seen) -> Value {
    let headers = [("content-type", "application/json")];
    let started = now();
    let body = request.to_string();
    let response = client.request("POST", "/v1/check", &headers, body.as_bytes()).unwrap();
    seen.took.push(now() - started);
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// Asserts that the tokens granted in total are the capacity: exactly, where the capacity does not change. Each of
/// the `raises` of a capacity may add the difference, because lowering it forgives spending beyond it.
fn nothing_for_free(server: &Server, seen: &[Seen], raises: u64) {
    let mut client = server.connect();
    let [less, more] = CAPACITIES;
    for kind in KINDS {
        let allowed = match kind {
            "e7" => less..=less + (more - less) * raises,
            _ => HELD..=HELD,
        };
        for user in (0..USERS).map(|user| format!("{kind}{user}")) {
            let granted = seen.iter().filter_map(|seen| seen.granted.get(&user));
            let mut granted: u64 = granted.sum();
            eventually("the last of it", || {
                let request = json!({"user_id": user, "endpoint": format!("/{kind}")});
                let verdict = check(&mut client, &request, &mut Seen::default());
                granted += u64::from(verdict["allowed"] == true);
                (verdict["allowed"] == false).then_some(())
            });
            assert!(allowed.contains(&granted), "{user}: {granted}, and {allowed:?} is right");
        }
    }
}

#[test]
fn t34_replaced_through_the_api() {
    let bodies = bodies();
    replaced("T34 by the API on SQLite", &Place::sqlite(), |server, set| put(server, &bodies[set]));
}

#[test]
fn t34_replaced_by_hand() {
    let place = Place::postgres();
    let mut hand = place.hand();
    replaced("T34 by hand on PostgreSQL", &place, move |_, set| {
        hand.sql(&format!(
            "UPDATE rate_limit_rules \
             SET burst_capacity = CASE WHEN rule_id <= {RULES} THEN {} ELSE {HELD} END, \
                 period = CASE WHEN rule_id = {SLOWED} THEN {} ELSE 1 END * 86400000000",
            CAPACITIES[set], DAYS[set]
        ));
    });
}
