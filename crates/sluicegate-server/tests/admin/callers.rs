//! Callers: created with a token that is shown once, changed and revoked, and every invalid input refused by field.

use serde_json::{Value, json};

use crate::common::{Launch, Response, Server, on_every_database};

fn launch() -> Launch {
    Launch::serve(&[])
}

fn post(server: &Server, body: &Value) -> Response {
    server.post_json("/v1/callers", &body.to_string())
}

fn patch(server: &Server, name: &str, body: &Value) -> Response {
    server.request("PATCH", &format!("/v1/callers/{name}"), &[], &body.to_string())
}

fn delete(server: &Server, name: &str) -> Response {
    server.request("DELETE", &format!("/v1/callers/{name}"), &[], "")
}

fn list(server: &Server) -> Vec<Value> {
    let listed = server.get("/v1/callers");
    assert_eq!(listed.status, 200, "{listed:?}");
    assert_eq!(listed.header("cache-control"), Some("no-store"));
    listed.json()["callers"].as_array().unwrap().clone()
}

/// Asserts that an answer refuses this field.
fn is_refused(refused: &Response, status: u16, field: &str, what: &str) {
    assert_eq!(
        (refused.status, &refused.json()["field"]),
        (status, &json!(field)),
        "{what}: {refused:?}"
    );
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_caller_is_created_changed_and_revoked() {
    on_every_database(launch, |server| {
        assert!(list(server).is_empty());
        let made = post(
            server,
            &json!({
                "name": "checkout", "rights": ["take", "check"], "namespace": "team-a",
                "certificate": "checkout.example", "expires_at": "2099-01-01T00:00:00Z",
            }),
        );
        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(made.header("cache-control"), Some("no-store"));
        let mut made = made.json();
        let token = made.as_object_mut().unwrap().remove("token").unwrap();
        let token = token.as_str().unwrap().to_owned();
        assert!(token.starts_with("sg_") && token.len() == 46, "{token}");
        let created_at = made["created_at"].clone();
        assert_eq!(
            made,
            json!({
                "caller_id": 1, "name": "checkout", "rights": ["check", "take"], "namespace": "team-a",
                "certificate": "checkout.example", "expires_at": "2099-01-01T00:00:00.000000Z",
                "last_used_at": null, "created_by": "local", "created_at": created_at,
            })
        );
        assert_eq!(list(server), std::slice::from_ref(&made));

        let by_certificate = json!({"name": "proxy", "rights": ["authorize"], "certificate": "proxy.example", "token": false});
        let other = post(server, &by_certificate);
        assert_eq!((other.status, other.json().get("token")), (201, None), "{other:?}");

        // Absent fields stay, null removes.
        let changed = patch(server, "checkout", &json!({"rights": ["refund"], "namespace": null}));
        assert_eq!(changed.status, 200, "{changed:?}");
        (made["rights"], made["namespace"]) = (json!(["refund"]), Value::Null);
        assert_eq!(changed.json(), made);
        let changed = patch(server, "checkout", &json!({"expires_at": null, "certificate": null}));
        (made["expires_at"], made["certificate"]) = (Value::Null, Value::Null);
        assert_eq!(changed.json(), made);
        assert_eq!(patch(server, "checkout", &json!({})).json(), made);
        let changed = patch(server, "checkout", &json!({"expires_in": "1 day", "namespace": "b"}));
        assert!(changed.json()["expires_at"].is_string() && changed.json()["namespace"] == "b");
        assert_eq!(list(server)[0], changed.json());

        assert_eq!(delete(server, "checkout").status, 204);
        assert_eq!(list(server), [other.json()]);
        for again in [delete(server, "checkout"), patch(server, "checkout", &json!({}))] {
            assert_eq!(
                (again.status, &again.json()["detail"]),
                (404, &json!("there is no such caller"))
            );
        }
        assert_eq!(delete(server, "proxy").status, 204);
        assert!(!server.stderr().contains(&token), "the token is never logged");
        for what in ["caller created", "caller changed", "caller revoked"] {
            let line = server.wait_for_log(what);
            assert_eq!(
                (&line["caller"], &line["by"]),
                (&json!("checkout"), &json!("local")),
                "{line}"
            );
        }
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    on_every_database(launch, |server| {
        let body = json!({"name": "checkout", "rights": ["check"]});
        let dry = server.post_json("/v1/callers?dry_run", &body.to_string());
        assert_eq!((dry.status, dry.json().get("token")), (200, None), "{dry:?}");
        assert_eq!(
            (&dry.json()["caller_id"], &dry.json()["dry_run"]),
            (&Value::Null, &json!(true))
        );
        assert!(list(server).is_empty());
        let made = post(server, &body).json();
        let dry = patch(server, "checkout?dry_run=true", &json!({"namespace": "a"})).json();
        assert_eq!((&dry["namespace"], &dry["dry_run"]), (&json!("a"), &json!(true)));
        assert_eq!(dry["caller_id"], made["caller_id"]);
        let dry = delete(server, "checkout?dry_run=1");
        assert_eq!((dry.status, &dry.json()["dry_run"]), (200, &json!(true)), "{dry:?}");
        assert_eq!(list(server)[0]["namespace"], Value::Null);
        is_refused(
            &server.post_json("/v1/callers?dry_run", &body.to_string()),
            409,
            "name",
            "dry run",
        );
    });
}

#[test]
fn invalid_input_is_refused_by_field() {
    on_every_database(launch, |server| {
        let body = |change: Value| {
            let mut body = json!({"name": "a", "rights": ["check"]});
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            body
        };
        let long = "n".repeat(65);
        let longest = "c".repeat(254);
        // Of a new caller, and of a change.
        let both = [
            (json!({"rights": []}), "rights"),
            (json!({"rights": null}), "rights"),
            (json!({"rights": "check"}), "rights"),
            (json!({"rights": ["administer"]}), "rights[0]"),
            (json!({"rights": ["check", "Check"]}), "rights[1]"),
            (json!({"rights": ["check", 1]}), "rights[1]"),
            (json!({"rights": ["check", "check"]}), "rights[1]"),
            (json!({"rights": ["check", "take", "refund", "authorize", "check"]}), "rights"),
            (json!({"namespace": ""}), "namespace"),
            (json!({"namespace": "a b"}), "namespace"),
            (json!({"namespace": "a\u{0}"}), "namespace"),
            (json!({"namespace": long}), "namespace"),
            (json!({"namespace": 7}), "namespace"),
            (json!({"certificate": ""}), "certificate"),
            (json!({"certificate": "a b"}), "certificate"),
            (json!({"certificate": "ä.example"}), "certificate"),
            (json!({"certificate": longest}), "certificate"),
            (json!({"certificate": []}), "certificate"),
            (json!({"expires_at": "tomorrow"}), "expires_at"),
            (json!({"expires_at": "2020-01-01T00:00:00Z"}), "expires_at"),
            (json!({"expires_at": 1}), "expires_at"),
            (json!({"expires_in": 0}), "expires_in"),
            (json!({"expires_in": -5}), "expires_in"),
            (json!({"expires_in": "soon"}), "expires_in"),
            (json!({"expires_in": 1, "expires_at": "2099-01-01T00:00:00Z"}), "expires_in"),
            (json!({"scopes": ["check"]}), "scopes"),
        ];
        assert_eq!(
            post(server, &json!({"name": "known", "rights": ["check"], "certificate": "c"})).status,
            201
        );
        assert_eq!(post(server, &json!({"name": "other", "rights": ["check"]})).status, 201);
        for (wrong, field) in &both {
            is_refused(&post(server, &body(wrong.clone())), 400, field, &wrong.to_string());
            is_refused(&patch(server, "other", wrong), 400, field, &wrong.to_string());
        }
        for name in ["", "a b", "default", "ä", "a/b", "a\u{0}", &long] {
            is_refused(&post(server, &body(json!({"name": name}))), 400, "name", name);
        }
        let of_new = [
            (json!({"rights": ["check"]}), "name"),
            (json!({"name": "a"}), "rights"),
            (json!({"name": 1, "rights": ["check"]}), "name"),
            (body(json!({"token": false})), "certificate"),
            (body(json!({"token": "no"})), "token"),
        ];
        for (wrong, field) in of_new {
            is_refused(&post(server, &wrong), 400, field, &wrong.to_string());
        }
        is_refused(&patch(server, "other", &json!({"name": "b"})), 400, "name", "renamed");
        is_refused(&patch(server, "other", &json!({"token": true})), 400, "token", "another token");
        let both_ways = json!({"expires_at": null, "expires_in": 1});
        is_refused(&patch(server, "other", &both_ways), 400, "expires_in", "both");
        is_refused(&post(server, &body(json!({"name": "known"}))), 409, "name", "duplicate");
        is_refused(
            &post(server, &body(json!({"certificate": "c"}))),
            409,
            "certificate",
            "duplicate",
        );
        is_refused(
            &patch(server, "other", &json!({"certificate": "c"})),
            409,
            "certificate",
            "duplicate",
        );
        is_refused(&server.get("/v1/callers?limit=1"), 400, "limit", "query");
        is_refused(&delete(server, "other?dry_run=maybe"), 400, "dry_run", "query");
        is_refused(&delete(server, "other?force"), 400, "force", "query");
        for name in ["%00", "%ff", "none", &long] {
            assert_eq!(delete(server, name).status, 404, "{name}");
        }
        let names: Vec<_> = list(server).iter().map(|caller| caller["name"].clone()).collect();
        assert_eq!(names, ["known", "other"]);
        let only_certificate =
            json!({"name": "d", "rights": ["check"], "certificate": "d", "token": false});
        assert_eq!(post(server, &only_certificate).status, 201);
        is_refused(
            &patch(server, "d", &json!({"certificate": null})),
            400,
            "certificate",
            "neither",
        );
        // The furthest ends that can be written are stored as they are.
        let last = patch(server, "d", &json!({"expires_at": "9999-12-30T00:00:00Z"}));
        assert_eq!(last.json()["expires_at"], "9999-12-30T00:00:00.000000Z", "{last:?}");
        for ages in [json!(1e30), json!("1000000000 weeks"), json!(9e15)] {
            let answer = patch(server, "d", &json!({"expires_in": ages}));
            assert!([200, 400].contains(&answer.status), "{ages}: {answer:?}");
            assert_eq!(list(server).len(), 3, "{ages}");
        }
    });
}
