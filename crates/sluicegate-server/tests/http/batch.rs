//! `/v1/check/batch`.

use serde_json::json;

use crate::common::Server;

#[test]
fn members_are_independent_and_in_order() {
    let server = Server::start(&[]);
    let pay = json!({"user_id": "b", "endpoint": "/payment"});
    let batch = json!([pay, pay, {"ip": "203.0.113.9", "cost": 0}, pay, pay]);
    let response = server.post_json("/v1/check/batch", &batch.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    let answer = response.json();
    let allowed: Vec<_> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["allowed"].as_bool().unwrap())
        .collect();
    assert_eq!(allowed, [true, true, true, true, false]);
    assert_eq!(answer["results"][4]["violated_rule"], "payment:{user_id}");
}

#[test]
fn an_empty_batch_is_an_empty_answer() {
    let response = Server::start(&[]).post_json("/v1/check/batch", "[]");
    assert_eq!((response.status, response.json()), (200, json!({"results": []})));
}

#[test]
fn a_hundred_members_fit_and_a_hundred_and_one_do_not() {
    let server = Server::start(&[]);
    let member = json!({
        "user_id": "u".repeat(100), "ip": "2001:db8::1", "endpoint": "/api/search", "plan": "free",
        "method": "GET", "attributes": {"tenant": "t".repeat(200)},
    });
    let batch = |members: usize| json!(vec![member.clone(); members]).to_string();
    let response = server.post_json("/v1/check/batch", &batch(100));
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["results"].as_array().unwrap().len(), 100);
    let response = server.post_json("/v1/check/batch", &batch(101));
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["field"], "[]", "{response:?}");
    assert!(response.body.contains("has more than 100 members"), "{response:?}");
}

#[test]
fn one_bad_member_charges_nothing() {
    let server = Server::start(&[]);
    let batch = json!([
        {"user_id": "n", "endpoint": "/payment", "cost": 3},
        {"user_id": "n", "cost": -1},
    ]);
    let response = server.post_json("/v1/check/batch", &batch.to_string());
    assert_eq!((response.status, &response.json()["field"]), (400, &json!("[1].cost")));
    let batch = json!([{"user_id": "n", "endpoint": "/payment", "cost": 3}, {"ip": "nowhere"}]);
    let response = server.post_json("/v1/check/batch", &batch.to_string());
    assert_eq!((response.status, &response.json()["field"]), (400, &json!("[1].ip")));
    let look = json!({"user_id": "n", "endpoint": "/payment", "cost": 0});
    assert_eq!(server.post_json("/v1/check", &look.to_string()).json()["remaining"], 3);
}
