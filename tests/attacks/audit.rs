//! Attempts to blind or to falsify the audit of violations.

use serde_json::{Value, json};

use crate::common::on_every_database;
use crate::common::{Client, Launch, Server, eventually, now};

/// Rules with a capacity of one token each: a cost of two is always denied and charges nothing.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "bot:{bot}"
tokens = 1
period = "1s"

[[rule]]
rule_id = 2
key_pattern = "x:{tenant}:{user_id}"
tokens = 1
period = "1s"
"#;

fn launch() -> Launch {
    Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", RULES)
}

fn request(tenant: &str, user_id: &str) -> Value {
    json!({"user_id": user_id, "cost": 2, "attributes": {"tenant": tenant}})
}

/// Sends requests that are denied, up to a hundred at once.
fn deny(client: &mut Client, requests: &[Value]) {
    for batch in requests.chunks(100) {
        let (body, kind) = (json!(batch).to_string(), [("content-type", "application/json")]);
        let answer = client.request("POST", "/v1/check/batch", &kind, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        let results = answer["results"].as_array().unwrap();
        assert!(results.iter().all(|result| result["allowed"] == false), "{answer}");
    }
}

/// Values of these fields of all violations that a query finds, once they stand for `count` denials.
fn recorded(server: &Server, query: &str, count: u64) -> Vec<(Value, Value, u64)> {
    eventually("violations to be on record", || {
        let found = server.get(&format!("/v1/violations?limit=1000&{query}")).json();
        let rows = found["violations"].as_array().unwrap().iter();
        let rows: Vec<_> = rows
            .map(|row| {
                (row["bucket_key"].clone(), row["user_id"].clone(), row["count"].as_u64().unwrap())
            })
            .collect();
        let sum = rows.iter().map(|(.., count)| count).sum::<u64>();
        assert!(sum <= count, "{rows:?}");
        (sum == count).then_some(rows)
    })
}

/// Noted, written, dropped and waiting violations.
fn figures(server: &Server) -> [u64; 4] {
    let audit = server.get("/v1/stats").json()["audit"].clone();
    ["noted", "written", "dropped", "waiting"].map(|name| audit[name].as_u64().unwrap())
}

#[test]
fn a12_buckets_whose_keys_read_the_same_are_two_rows_and_two_users() {
    on_every_database(launch, |server| {
        let mut client = server.connect();
        deny(&mut client, &[request("a:b", "c"), request("a:b", "c")]);
        deny(&mut client, &[request("a", "b:c"), request("a", "b:c"), request("a", "b:c")]);
        let rows = recorded(server, "bucket_key=x:a:b:c", 5);
        for (user_id, expected) in [("c", 2), ("b:c", 3)] {
            let of_user = rows.iter().filter(|(_, user, _)| user == user_id);
            // Two rows if a new minute began meanwhile.
            assert_eq!(of_user.map(|(.., count)| count).sum::<u64>(), expected, "{rows:?}");
        }
        for (by, values) in [("user_id", ["b:c", "c"]), ("bucket_key", ["x:a:b:c"; 2])] {
            let top = server.get(&format!("/v1/violations/top?by={by}")).json();
            let top = top["top"].as_array().unwrap();
            let top: Vec<_> = top.iter().map(|top| (&top["value"], &top["count"])).collect();
            let [first, second] = values.map(|value| json!(value));
            assert_eq!(top, [(&first, &json!(3)), (&second, &json!(2))], "by {by}");
        }
        // The subject that is deleted takes no other with it.
        let deleted = server.request("DELETE", "/v1/violations?user_id=c", &[], "");
        assert_eq!(deleted.status, 200, "{deleted:?}");
        assert!(recorded(server, "", 3).iter().all(|(_, user, _)| user == "b:c"));
    });
}

#[test]
fn a12_a_flood_of_made_up_users_hides_no_violation_of_another_rule() {
    const QUEUE_MAX: usize = 400;
    const FLOOD: u64 = 6000;
    const OTHERS: u64 = 60;
    let server = launch()
        .env("SLUICEGATE_AUDIT_QUEUE_MAX", &QUEUE_MAX.to_string())
        .env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "20")
        .start();
    let (mut client, started) = (server.connect(), now());
    let flood = |from: u64, to: u64| -> Vec<_> {
        (from..to)
            .map(|number| json!({"cost": 2, "attributes": {"bot": number.to_string()}}))
            .collect()
    };
    deny(&mut client, &flood(0, FLOOD / 2));
    let others: Vec<_> = (0..OTHERS).map(|number| request("t", &number.to_string())).collect();
    deny(&mut client, &others);
    deny(&mut client, &flood(FLOOD / 2, FLOOD));
    let [noted, written, dropped, waiting] = figures(&server);
    eprintln!(
        "flood: {noted} denials in {:?}: {written} written, {waiting} waiting, {dropped} dropped",
        now() - started
    );
    assert_eq!((noted, written + waiting + dropped), (FLOOD + OTHERS, noted));
    assert!(dropped > 0, "the queue was never full");
    // Half of the rate is theirs, although many more of the flood wait before them.
    assert_eq!(recorded(&server, "rule_id=2", OTHERS).len() as u64, OTHERS);
    let [noted, written, dropped, waiting] = figures(&server);
    eprintln!("others on record after {:?}", now() - started);
    assert_eq!(written + waiting + dropped, noted);
    let line = server
        .wait_for_log("violations are dropped: the queue is full, mostly with those of this rule");
    assert_eq!(line["rule_id"], 1, "{line}");
}
