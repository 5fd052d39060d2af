use sluicegate::{Quota, Rule, RuleSet};

use super::entry::REQUEST_BYTES_MAX;
use super::replay::{TOP_MAX, TopSubject};
use super::*;
use crate::config::{Audit, Privacy, Secret};

const START_US: u64 = 1_785_585_600_000_000;

fn recent(requests_max: usize, privacy: Privacy) -> Recent {
    let privacy_key = Some(Secret::new("key"));
    let audit = Audit { privacy, privacy_key, ..Audit::default() };
    let config = config::Recent { requests_max, age_max: Duration::from_secs(300) };
    Recent::new(&config, Pseudonyms::new(&audit))
}

fn at(seconds: u64) -> Micros {
    Micros::new(START_US + seconds * 1_000_000)
}

impl Recent {
    fn note_at(&self, request: &Request<'_>, seconds: u64) {
        self.inner.as_ref().unwrap().note(request, true, at(seconds));
    }

    fn at(&self, seconds: u64) -> RecentRequests {
        self.inner.as_ref().unwrap().list(at(seconds))
    }
}

fn users(remembered: &RecentRequests) -> Vec<String> {
    let id = |kept: &RecentRequest| {
        kept.request().get(&sluicegate::rules::Attribute::UserId).unwrap().into()
    };
    remembered.requests.iter().map(id).collect()
}

#[test]
fn a_request_is_remembered_as_it_was() {
    let recent = recent(100, Privacy::Raw);
    let request = Request::new()
        .user_id("42")
        .ip("203.0.113.9")
        .endpoint("/a")
        .method("GET")
        .plan("free")
        .attribute("tenant", "acme")
        .attribute("empty", "")
        .cost(7);
    recent.note_at(&request, 0);
    recent.note_at(&Request::new(), 1);
    let remembered = recent.at(2);
    assert_eq!((remembered.requests.len(), remembered.note), (2, None));
    let (first, second) = (&remembered.requests[0], &remembered.requests[1]);
    assert_eq!((first.at(), second.at()), (at(0), at(1)));
    assert_eq!(format!("{:?}", first.request()), format!("{request:?}"));
    assert_eq!(format!("{:?}", second.request()), format!("{:?}", Request::new()));
}

#[test]
fn only_the_last_ones_are_remembered_and_none_that_is_old() {
    for requests_max in [1, 5, 16, 100] {
        let recent = recent(requests_max, Privacy::Raw);
        let ids: Vec<_> = (0..1000).map(|id| id.to_string()).collect();
        for (seconds, id) in (0..).zip(&ids) {
            recent.note_at(&Request::new().user_id(id), seconds);
        }
        let expected = &ids[1000 - requests_max..];
        assert_eq!(users(&recent.at(999)), expected);
        // 300 seconds later only the last is young enough, and then none.
        assert_eq!(users(&recent.at(999 + 300)), ids[999..]);
        assert!(recent.at(999 + 301).requests.is_empty());
    }
}

#[test]
fn a_request_that_is_too_long_is_skipped_and_counted() {
    let recent = recent(10, Privacy::Raw);
    let name = "user_id".len();
    let (longest, longer) = ("x".repeat(REQUEST_BYTES_MAX - name), "x".repeat(REQUEST_BYTES_MAX));
    recent.note_at(&Request::new().user_id(&longer), 0);
    recent.note_at(&Request::new().user_id(&longest), 0);
    recent.note_at(&Request::new().attribute("a", &longer), 0);
    let remembered = recent.at(0);
    assert_eq!((users(&remembered), remembered.left_out), (vec![longest], 2));
}

#[test]
fn requests_are_kept_as_the_privacy_setting_allows() {
    let request = Request::new().user_id("42").ip("203.0.113.9").attribute("tenant", "acme");
    let request = request.endpoint("/a");
    let cut = recent(10, Privacy::Truncated);
    cut.note_at(&request, 0);
    let hashed = recent(10, Privacy::Hashed);
    hashed.note_at(&request, 0);
    let (cut, hashed) = (cut.at(0), hashed.at(0));
    assert_eq!((cut.note, hashed.note), (Some(CUT), Some(HASHED)));
    let text = format!("{cut:?}");
    assert!(
        text.contains("42") && text.contains("acme") && !text.contains("203.0.113.9"),
        "{text}"
    );
    let text = format!("{:?}", hashed.requests[0].request());
    let none = |secret: &&str| !text.contains(*secret);
    assert!(["\"42\"", "203.0.113", "acme"].iter().all(none) && text.contains("/a"), "{text}");
}

#[test]
fn switched_off_nothing_is_remembered() {
    let off = recent(0, Privacy::Raw);
    let remembered = off.list();
    assert!(remembered.requests.is_empty() && remembered.note == Some(OFF));
}

#[test]
fn many_threads_at_once() {
    let recent = recent(1000, Privacy::Raw);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let recent = &recent;
            scope.spawn(move || {
                let id = thread.to_string();
                for _ in 0..10_000 {
                    recent.note_at(&Request::new().user_id(&id), 0);
                }
            });
        }
        for _ in 0..20 {
            let remembered = recent.at(0);
            assert!(remembered.requests.len() <= 1000);
            assert!(users(&remembered).iter().all(|id| id.parse::<u64>().unwrap() < 4));
        }
    });
    let remembered = recent.at(0);
    assert!(remembered.requests.len() as u64 + remembered.left_out >= 1000);
}

fn rule(rule_id: u64, pattern: &str, per_minute: u64) -> Rule {
    Rule::new(rule_id, pattern, Quota::per_minute(per_minute).unwrap()).unwrap()
}

#[test]
fn a_rule_is_tried_at_the_times_of_the_requests() {
    let recent = recent(100, Privacy::Raw);
    // a asks at 0, 10, 20 ... 50; b at 0 only. With one a minute, a is denied five times.
    for seconds in [0, 10, 20, 30, 40, 50] {
        recent.note_at(&Request::new().user_id("a"), seconds);
    }
    recent.note_at(&Request::new().user_id("b"), 55);
    recent.note_at(&Request::new().ip("192.0.2.1"), 56);
    recent.note_at(&Request::new().user_id("a"), 60);
    let requests = recent.at(60).requests;
    let per_user = rule(1, "user:{user_id}", 1);
    let among = RuleSet::new(vec![per_user.clone()]).unwrap();
    let figures = replay(&per_user, &among, &requests);
    let top =
        |subject: &str, requests, denied| TopSubject { subject: subject.into(), requests, denied };
    let expected = Figures {
        applies: 8,
        allowed: 3,
        denied: 5,
        subjects: 2,
        subjects_denied: 1,
        top: vec![top("a", 7, 5), top("b", 1, 0)],
        first_denied_at: Some(timestamp(at(10))),
    };
    assert_eq!(figures, expected);
    // Rules without placeholders have one subject.
    let global = rule(2, "global", 5);
    let among = RuleSet::new(vec![global.clone()]).unwrap();
    let figures = replay(&global, &among, &requests);
    assert_eq!((figures.applies, figures.top[0].subject.as_str()), (9, "global"));
}

/// A rule for the `default` plan applies where no other names the plan.
#[test]
fn other_rules_decide_what_a_default_is_for() {
    let recent = recent(100, Privacy::Raw);
    for plan in ["free", "pro", ""] {
        recent.note_at(&Request::new().user_id("a").plan(plan), 0);
    }
    let requests = recent.at(0).requests;
    let default = rule(1, "user:{user_id}", 1).with_plan("default").unwrap();
    let pro = rule(2, "user:{user_id}", 1).with_plan("pro").unwrap();
    let alone = RuleSet::new(vec![default.clone()]).unwrap();
    let among = RuleSet::new(vec![default.clone(), pro]).unwrap();
    assert_eq!(replay(&default, &alone, &requests).applies, 3);
    assert_eq!(replay(&default, &among, &requests).applies, 2);
}

#[test]
fn the_number_of_subjects_in_a_report_is_bounded() {
    let recent = recent(1000, Privacy::Raw);
    let ids: Vec<_> = (0..500).map(|id| id.to_string()).collect();
    for id in &ids {
        recent.note_at(&Request::new().user_id(id).cost(2), 0);
    }
    let per_user = rule(1, "user:{user_id}", 1);
    let among = RuleSet::new(vec![per_user.clone()]).unwrap();
    let figures = replay(&per_user, &among, &recent.at(0).requests);
    assert_eq!((figures.subjects, figures.subjects_denied, figures.top.len()), (500, 500, TOP_MAX));
}
